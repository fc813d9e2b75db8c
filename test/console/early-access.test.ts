/** Early access features: created, released, enrolled in and deleted. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { looksRight, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("early access", () => {
  const owner = ownersBrowser();

  test("a feature is created, released, enrolled in and deleted", async () => {
    const { page, context, errors } = await owner.open(400);
    await page.goto("/console/early-access");
    await page.getByText("No early access features yet").waitFor();
    await looksRight(page);
    await page.keyboard.press("n");
    const form = page.getByRole("dialog", { name: "New feature" });
    await form.getByLabel("Name").fill("<i>Editor</i>");
    await form.getByLabel("Documentation URL").fill("ftp://example.com/x");
    await form.getByRole("button", { name: "Create feature" }).press("Enter");
    await form.getByText("Enter a URL that starts with http:// or https://.").waitFor();
    await form.getByLabel("Documentation URL").fill("https://example.com/x");
    await form.getByRole("button", { name: "Create feature" }).press("Enter");

    await page.getByRole("heading", { level: 1, name: "<i>Editor</i>" }).waitFor();
    await page.getByText("The flag ignores enrollment.").waitFor();
    await page.getByLabel("Stage").selectOption("Beta");
    await page.getByText("The flag is on for enrolled people.").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("The flag ignores enrollment.").waitFor();
    await page.getByLabel("Stage").selectOption("Beta");
    await page.getByText("The flag is on for enrolled people.").waitFor();
    await page.getByLabel("Distinct ID").fill("kim");
    await page.getByLabel("Distinct ID").press("Enter");
    await page.getByText("kim is enrolled.").waitFor();
    await until(async () => {
      await page.reload();
      await page.getByText("0 opted out").waitFor();
      return await page.getByRole("link", { name: "kim", exact: true }).isVisible();
    }, "the person is enrolled");
    await page.getByText("1 enrolled · 0 opted out").waitFor();
    await page.getByRole("heading", { name: "Changes of enrollment per day" }).waitFor();
    await looksRight(page);

    await page.getByRole("link", { name: "Early access", exact: true }).first().click();
    await page.getByRole("table", { name: "Early access" }).getByText("Beta").waitFor();
    await page.getByLabel("Stage").selectOption("Alpha");
    await page.getByText("No feature matches.").waitFor();
    await page.getByLabel("Stage").selectOption("All stages");
    await page.getByRole("link", { name: "<i>Editor</i>" }).click();
    await page.getByRole("button", { name: "Edit" }).click();
    const edit = page.getByRole("dialog");
    await edit.getByLabel("Description").fill("Write with others.");
    await edit.getByRole("button", { name: "Save" }).press("Enter");
    await page.getByText("Write with others.").waitFor();
    await page.getByRole("button", { name: "Delete feature" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete feature" }).click();
    await page.getByText("No early access features yet").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    // With its flag and stage, and so with the people who enrolled.
    await page.getByRole("table", { name: "Early access" }).getByText("Beta").waitFor();
    await page.getByRole("link", { name: "<i>Editor</i>" }).click();
    await page.getByText("1 enrolled · 0 opted out").waitFor();
    await looksRight(page);
    expect(errors).toEqual([]);
    await context.close();
  });
});
