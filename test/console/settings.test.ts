/** Settings: keys of the project and of oneself, and the password. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { routeScopes } from "../../src/accounts/route-scopes.ts";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser, password } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("settings", () => {
  const owner = ownersBrowser();
  const { open } = owner;

  const givePassword = async (page: Page) => {
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
  };
  const isUsed = async (secret: string) => {
    const path = `/api/projects/${owner.server.initialized.project.id}/feature_flags/local_evaluation/`;
    return (await owner.server.api(path, { key: secret })).status;
  };

  test("the secret key is hidden until re-authentication, and is rotated with a grace period", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/settings?tab=keys");
    const card = page.locator("section", { has: page.getByRole("heading", { name: "Secret key" }) });
    await card.getByText("Enter your password to reveal it.").waitFor();
    await card.getByRole("button", { name: "Show" }).click();
    await givePassword(page);
    const old = owner.server.initialized.project.secret_api_key;
    await card.getByText(old).waitFor();

    await card.getByRole("button", { name: "New secret key" }).click();
    const question = page.getByRole("dialog", { name: "New secret key: Secret key" });
    expect(await question.getByLabel("Keep old key valid for").inputValue()).toBe(String(7 * 86_400));
    expect(await axeFindings(page)).toEqual([]);
    expect(await isUsed(old)).toBe(200);
    await question.getByRole("button", { name: "New secret key" }).click();
    await card.getByText("Old key valid until").waitFor();
    const present = (await card.locator("code").first().textContent()) ?? "";
    expect(present).toStartWith("phs_");
    expect([present === old, await isUsed(present), await isUsed(old)]).toEqual([false, 200, 200]);

    await card.getByRole("button", { name: "Revoke old key" }).click();
    const end = page.getByRole("dialog", { name: "Revoke old key: Secret key" });
    await end.getByRole("button", { name: "Revoke old key" }).click();
    await card.getByRole("button", { name: "New secret key" }).waitFor();
    expect([await isUsed(present), await isUsed(old)]).toEqual([200, 401]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("pages are listed at the side; keys are on one page, dangers at the end", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/settings");
    const list = page.getByRole("tablist", { name: "Kinds of settings" });
    await list.waitFor();
    expect(await list.getByRole("tab").allTextContents()).toEqual([
      "Project",
      "API keys",
      "Change approval",
      "Webhooks",
      "My account",
      "Team",
      "Roles",
      "Organization",
    ]);
    const headings = async () => await page.getByRole("heading", { level: 2 }).allTextContents();
    await page.getByRole("heading", { name: "Danger zone" }).waitFor();
    expect((await headings()).at(-1)).toBe("Danger zone");
    const [first, second] = await Promise.all(
      ["Project", "API keys"].map(async (name) => (await list.getByRole("tab", { name }).boundingBox())!),
    );
    expect([second!.x, second!.y > first!.y]).toEqual([first!.x, true]);
    await list.getByRole("tab", { name: "Project" }).press("ArrowDown");
    await page.getByRole("heading", { name: "Personal keys" }).waitFor();
    await page.getByRole("heading", { name: "Secret key" }).waitFor();
    expect(await headings()).toEqual(["Project key", "Secret key", "Personal keys"]);
    expect(new URL(page.url()).searchParams.get("tab")).toBe("keys");
    // On a phone they are above the content.
    await page.setViewportSize({ width: 360, height: 740 });
    const [keys, approval] = await Promise.all(
      ["API keys", "Change approval"].map(
        async (name) => (await list.getByRole("tab", { name }).boundingBox())!,
      ),
    );
    expect([approval!.y, approval!.x > keys!.x]).toEqual([keys!.y, true]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a wrong current password is reported at its field, and the session stays", async () => {
    const { page, context, errors } = await open(401);
    await page.goto("/console/settings?tab=account");
    await page.getByLabel("Current password").fill("something else entirely");
    await page.getByLabel("New password").fill("another few quiet words");
    await page.keyboard.press("Enter");
    await page.getByText("The password is wrong.").waitFor();
    expect(await page.getByLabel("Current password").getAttribute("aria-invalid")).toBe("true");
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a key is created with any scope of a route, and asks for confirmation before its value is replaced", async () => {
    await owner.confirm();
    const { page, context, errors } = await open();
    await page.goto("/console/settings?tab=keys");
    await page.getByRole("button", { name: "New key" }).click();
    const form = page.getByRole("dialog", { name: "New key" });
    const offered = await form.getByRole("radio", { name: /^(Read|Write)$/ }).count();
    expect(offered).toBe(routeScopes.length);
    await form.getByLabel("Label").fill("importer");
    await form.getByRole("group", { name: "event", exact: true }).getByText("Write").click();
    expect(await form.getByLabel("Access").inputValue()).toBe("custom");
    // To the end of the day that is named, which cannot be over before the key is used.
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    await form.getByLabel("Expires").fill(tomorrow);
    await form.getByRole("button", { name: "Create key" }).click();
    const shown = page.getByRole("dialog", { name: "Copy your key" });
    const value = (await shown.locator("code").textContent()) ?? "";
    await page.keyboard.press("Escape");
    const own = "/api/personal_api_keys/@current/";
    expect(await (await owner.server.api(own, { key: value })).json()).toMatchObject({
      label: "importer",
      scopes: ["feature_flag:read", "feature_flag:write", "cohort:read", "event:read", "event:write"],
      expires_at: `${tomorrow}T23:59:59.000000Z`,
    });

    const line = page.getByRole("listitem").filter({ hasText: "importer" });
    await line.getByRole("button", { name: "Roll key" }).click();
    const question = page.getByRole("dialog", { name: "Roll key" });
    await question.getByText("is rejected immediately").waitFor();
    expect((await owner.server.api(own, { key: value })).status).toBe(200);
    await question.getByRole("button", { name: "Cancel" }).click();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a key without a scope cannot be sent", async () => {
    const { page, context, errors } = await open();
    const sent: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") sent.push(request.url());
    });
    await page.goto("/console/settings?tab=keys");
    await page.getByRole("button", { name: "New key" }).click();
    const form = page.getByRole("dialog", { name: "New key" });
    await form.getByLabel("Label").fill("nothing");
    for (const resource of ["feature flag", "cohort"])
      await form.getByRole("group", { name: resource, exact: true }).getByText("None").click();
    const button = form.getByRole("button", { name: "Create key" });
    expect(await button.getAttribute("aria-disabled")).toBe("true");
    await button.click({ force: true });
    await form.getByLabel("Label").press("Enter");
    await form.getByText("(Choose at least one scope.)").waitFor();
    expect(sent).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
