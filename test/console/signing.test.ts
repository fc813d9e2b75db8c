/** Signing in: the one-time link, the form, the key in place of a password, and the way out. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { flagkeep } from "../support/server.ts";
import { browser, useBrowser } from "../support/use-browser.ts";
import { server, useServer } from "../support/use-server.ts";
import { axeFindings, openPage, password, themes, widths } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("signing in", () => {
  useBrowser();
  useServer();
  const url = () => server.url;

  test("the form of a link shows its user when the response arrives, without overwriting typed text", async () => {
    const call = ["users", "link", "later@example.com", "--data-dir", server.dataDir, "--json"];
    const { console_url } = JSON.parse((await flagkeep(call)).stdout);
    const { page, context } = await openPage(browser, { url: url() });
    const answered = Promise.withResolvers<void>();
    await page.route("**/api/session/setup/look/", async (route) => {
      await answered.promise;
      await route.continue();
    });
    await page.goto(console_url);
    await page.getByRole("heading", { name: "Set up your account" }).waitFor();
    expect(await page.getByLabel("Password").count()).toBe(0);
    answered.resolve();
    await page.getByLabel("Password").waitFor();
    expect(await page.getByLabel("E-mail").inputValue()).toBe("later@example.com");
    // Only the first owner may correct the address.
    await page.getByText(/^You are joining Default Organization\. This link works once\./).waitFor();
    expect(await page.getByLabel("E-mail").getAttribute("readonly")).not.toBeNull();
    await page.goto("/console/");
    await page.goto(`${url()}/console/setup#${server.initialized.console_url.split("#")[1]}`);
    await page.getByText(/^Create the owner account\. This link works once\./).waitFor();
    expect(await page.getByLabel("E-mail").getAttribute("readonly")).toBeNull();
    await context.close();
  });

  test("the link of init sets the password once, Enter sends the forms", async () => {
    const { page, context, errors } = await openPage(browser, { url: url(), expectedStatus: [401] });
    const link = `${url()}/console/setup#${server.initialized.console_url.split("#")[1]}`;
    await page.goto(link);
    await page.getByLabel("Name").fill("Ann Bell");
    await page.getByLabel("Password").fill("short");
    await page.keyboard.press("Enter");
    await page.locator("[aria-invalid=true]").waitFor();
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await page.getByRole("navigation", { name: "Menu" }).waitFor();
    expect(await page.evaluate(() => document.cookie)).toBe("");

    // The start page is chosen after signing in; a menu that is open then would close.
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();

    await page.goto(`${url()}/console/`);
    await page.goto(link);
    await page.getByText("This link was used or has expired.").waitFor();

    await page.goto(`${url()}/console/flags`);
    await page.getByLabel("E-mail").fill(server.initialized.user.email);
    await page.getByLabel("Password").fill("something else entirely");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
    expect(page.url()).toEndWith("/console/flags");
    await context.close();
    expect(errors.filter((text) => !text.includes("400"))).toEqual([]);
  });

  test("a personal key is exchanged for a session and kept nowhere", async () => {
    const { page, context, errors } = await openPage(browser, { url: url() });
    await page.goto("/console/");
    await page.getByRole("button", { name: "Use a personal key instead" }).click();
    await page.getByLabel("Personal key").fill(server.initialized.personal_api_key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Get started" }).waitFor();
    const stored = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    );
    expect(stored).not.toContain("phx_");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a key without user:read: the form reports it, and stays", async () => {
    const answer = await server.api("/api/personal_api_keys/", {
      method: "POST",
      body: {
        label: "reads flags",
        scopes: ["feature_flag:read"],
      },
    });
    const { value } = (await answer.json()) as { value: string };
    const { page, context, errors } = await openPage(browser, { url: url(), expectedStatus: [403] });
    await page.goto("/console/");
    await page.getByRole("button", { name: "Use a personal key instead" }).click();
    await page.getByLabel("Personal key").fill(value);
    await page.keyboard.press("Enter");
    await page.getByText("API key missing required scope 'user:read'").waitFor();
    await page.getByLabel("Personal key").fill(server.initialized.personal_api_key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Get started" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  for (const theme of themes) {
    for (const width of widths) {
      test(`axe finds nothing on the forms, ${theme}, ${width}`, async () => {
        const { page, context, errors } = await openPage(browser, {
          url: url(),
          theme,
          width,
          expectedStatus: [401],
        });
        await page.goto("/console/");
        await page.getByRole("heading", { name: "Sign in" }).waitFor();
        expect(await axeFindings(page)).toEqual([]);
        await page.goto("/console/setup#nothing");
        await page.getByRole("alert").waitFor();
        expect(await axeFindings(page)).toEqual([]);
        await context.close();
        expect(errors).toEqual([]);
      });
    }
  }
});
