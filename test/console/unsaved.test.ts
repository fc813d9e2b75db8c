/** Text typed into the forms of pages outlives reloads and other pages, until it is saved, discarded or signed out. */

import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("unsaved fields", () => {
  const owner = ownersBrowser();
  const getKept = (page: Page) => page.evaluate((): Record<string, string> => ({ ...sessionStorage }));
  const typed = "Typed for a long time";

  const forms = [
    {
      name: "a cohort",
      address: "/console/cohorts/new",
      label: "Name",
      link: "Cohorts",
      comeBack: (page: Page) => page.getByRole("link", { name: "New cohort" }).first().click(),
      save: "Save cohort",
      saved: (page: Page) => page.waitForURL(/cohorts\/\d+$/),
    },
    {
      name: "project settings",
      address: "/console/settings?tab=project",
      label: "Name",
      link: "Settings",
      comeBack: (page: Page) => page.getByRole("tab", { name: "Project", exact: true }).click(),
      save: "Save",
      saved: (page: Page) => page.getByText("Saved").first().waitFor(),
    },
    {
      name: "New flag",
      address: "/console/flags?new=1",
      label: "Description",
      link: "Flags",
      comeBack: (page: Page) => page.getByRole("button", { name: "New flag" }).first().click(),
      save: "Create flag",
      saved: (page: Page) => page.waitForURL(/flags\/\d+$/),
    },
  ];

  for (const { name, address, label, link, comeBack, save, saved } of forms) {
    test(`${name}: reload, another page, saving`, async () => {
      const { page, context, errors } = await owner.open();
      const field = page.getByLabel(label, { exact: true }).first();
      await page.goto(address);
      await field.fill(typed);
      await page.reload();
      await field.waitFor();
      expect(await field.inputValue()).toBe(typed);
      // A dialog hides the menu; closing it is not Cancel.
      if (name === "New flag") await page.keyboard.press("Escape");
      await page.getByRole("link", { name: "Activity", exact: true }).first().click();
      await page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();
      await page.getByRole("link", { name: link, exact: true }).first().click();
      await comeBack(page);
      await field.waitFor();
      expect(await field.inputValue()).toBe(typed);
      if (name === "New flag") await page.getByLabel("Key", { exact: true }).fill("typed-long");
      await page.getByRole("button", { name: save, exact: true }).last().click();
      await saved(page);
      await page.waitForFunction(() => sessionStorage.length === 0);
      await page.goto(address);
      await field.waitFor();
      expect(await field.inputValue()).toBe(name === "project settings" ? typed : "");
      expect(errors).toEqual([]);
      await context.close();
    });
  }

  test("Discard, Cancel and signing out leave nothing; passwords are never kept", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/settings?tab=account");
    const firstName = page.getByLabel("First name");
    await firstName.fill(typed);
    await page.getByText("1 unsaved change", { exact: true }).waitFor();
    await page.getByLabel("Current password").fill("never kept");
    await page.getByLabel("New password").fill("never kept");
    const kept = JSON.stringify(await getKept(page));
    expect(kept).toContain(typed);
    expect(kept).not.toContain("never kept");
    await page.getByRole("button", { name: "Discard" }).click();
    expect(await firstName.inputValue()).toBe("Ann");
    expect(await getKept(page)).toEqual({});

    await page.goto("/console/flags?new=1");
    await page.getByLabel("Key", { exact: true }).fill("cancelled");
    expect(JSON.stringify(await getKept(page))).toContain("cancelled");
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(await getKept(page)).toEqual({});

    await page.goto("/console/settings?tab=account");
    await firstName.fill(typed);
    // The tests share one session: it stays on the server.
    await page.route("**/api/session/", (route) =>
      route.request().method() === "DELETE" ? route.fulfill({ status: 204 }) : route.continue(),
    );
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await getKept(page)).toEqual({});
    expect(errors).toEqual([]);
    await context.close();
  });

  test("what another user left in this tab is dropped, and text beyond the storage is kept in the page", async () => {
    const { page, context, errors } = await owner.open();
    await page.addInitScript(() => {
      if (sessionStorage.length > 0) return;
      const drafts = [["account 1 /console/settings", { firstName: "Theirs" }]];
      sessionStorage.setItem("flagkeep:unsaved", JSON.stringify({ user: "another", drafts }));
    });
    await page.goto("/console/settings?tab=account");
    const firstName = page.getByLabel("First name");
    await firstName.waitFor();
    expect(await firstName.inputValue()).toBe("Ann");
    expect(await getKept(page)).toEqual({});

    await page.evaluate(() => {
      for (let size = 2 ** 23; size >= 1; size /= 2) {
        try {
          sessionStorage.setItem(`filler ${size}`, "x".repeat(size));
        } catch {}
      }
    });
    await firstName.fill(typed);
    await page.getByRole("link", { name: "Activity", exact: true }).first().click();
    await page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();
    await page.goBack();
    await firstName.waitFor();
    expect(await firstName.inputValue()).toBe(typed);
    const asks = await page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
    expect(asks).toBe(true);
    expect(errors).toEqual([]);
    await context.close();
  });
});
