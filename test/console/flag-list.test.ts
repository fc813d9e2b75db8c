/** The flag list: columns, sorting by header, filters as chips, saved views. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, chooseFilter, ownersBrowser } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("the flag list", () => {
  const owner = ownersBrowser();
  const make = async (body: object) => {
    const path = `/api/projects/${owner.server.initialized.project.id}/feature_flags/`;
    expect((await owner.server.api(path, { method: "POST", body })).status).toBe(201);
  };
  const pro = [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }];
  const variants = [
    { key: "a", rollout_percentage: 50 },
    { key: "b", rollout_percentage: 50 },
  ];

  test("a row shows type, release, who changed it and tags; headers sort; an empty chart is empty", async () => {
    await make({
      key: "beta",
      name: "A description",
      tags: ["web"],
      filters: { groups: [{ properties: pro, rollout_percentage: 50 }], multivariate: { variants } },
    });
    await make({
      key: "alpha",
      active: false,
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
    const { page, context, errors } = await owner.open();
    await page.goto("/console/flags");
    const row = (index: number) => page.getByRole("row").nth(index);
    await row(1).getByRole("link", { name: "alpha" }).waitFor();
    const cells = await row(2).getByRole("cell").allInnerTexts();
    expect(cells.slice(2).map((text) => text.trim())).toEqual([
      "beta\nA description",
      "Variants",
      "50% of plan = pro · 2 variants",
      "",
      "Never",
      expect.stringMatching(/ · Ann$/),
      "web",
    ]);
    expect(await row(1).getAttribute("class")).toContain("off");
    expect(await row(2).locator("svg.sparkline").count()).toBe(0);
    const header = page.getByRole("columnheader", { name: "Flag" });
    expect(await header.getAttribute("aria-sort")).toBeNull();
    await header.getByRole("button").click();
    await page.waitForURL(/order=key/);
    expect(await header.getAttribute("aria-sort")).toBe("ascending");
    await row(1).getByRole("link", { name: "alpha" }).waitFor();
    await header.getByRole("button").click();
    await page.waitForURL(/order=-key/);
    await row(1).getByRole("link", { name: "beta" }).waitFor();
    await page.getByRole("columnheader", { name: "Changed" }).getByRole("button").click();
    await page.waitForURL(/order=-updated_at/);
    // As in addresses of earlier versions.
    await page.goto("/console/flags?order=asked");
    const asked = page.getByRole("columnheader", { name: "Last evaluated" });
    await asked.waitFor();
    expect(await asked.getAttribute("aria-sort")).toBe("descending");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("filters are chips in the address; a filter is removed by its button", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto("/console/flags");
    await page.getByText("2 flags", { exact: true }).waitFor();
    // The keyboard reaches the last choice, and the first.
    await page.locator(".chip-name").filter({ hasText: /^Type/ }).press("Enter");
    const options = page.getByRole("dialog", { name: "Type" }).getByRole("option");
    await page.keyboard.press("End");
    expect(await options.last().getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Home");
    expect(await options.first().getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("Escape");
    await chooseFilter(page, "Status", "Off");
    await page.getByText("1 flag", { exact: true }).waitFor();
    expect(page.url()).toContain("state=off");
    await page.getByRole("button", { name: "Remove filter: Off" }).click();
    await page.getByText("2 flags", { exact: true }).waitFor();
    expect(page.url()).not.toContain("state");
    await chooseFilter(page, "Last evaluated", "In the last 7 days");
    await page.getByText("No flag matches.").waitFor();
    expect(page.url()).toContain("evaluated=7");
    await chooseFilter(page, "Last evaluated", "Not in 30 days");
    await page.getByText("2 flags", { exact: true }).waitFor();
    await chooseFilter(page, "Type", "Variants");
    await page.getByText("1 flag", { exact: true }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.goto("/console/flags?tag=web&evaluated=-30");
    await page.getByRole("button", { name: "Remove filter: web" }).waitFor();
    await page.getByText("1 flag", { exact: true }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a view is saved for the team or for oneself, opened, and removed", async () => {
    const { page, context, errors } = await owner.open(400);
    const dialog = page.getByRole("dialog", { name: "Saved views" });
    await page.goto("/console/flags");
    await page.getByRole("button", { name: "Views" }).click();
    await dialog.getByText("Filter or sort the list to save a view.").waitFor();
    await page.keyboard.press("Escape");
    await page.goto("/console/flags?tag=web&order=key");
    await page.getByRole("button", { name: "Save view" }).click();
    await dialog.getByLabel("Name").fill("Mine");
    await dialog.getByRole("button", { name: "Save view" }).click();
    await dialog.getByRole("link", { name: "Mine" }).waitFor();
    await dialog.getByLabel("Name").fill("Web flags");
    await dialog.getByText("Team", { exact: true }).click();
    await dialog.getByRole("button", { name: "Save view" }).click();
    await dialog.getByRole("listitem").filter({ hasText: "Web flags" }).getByText("Team").waitFor();
    await dialog.getByLabel("Name").fill("Web flags");
    await dialog.getByRole("button", { name: "Save view" }).click();
    await dialog.getByText('Two saved views have the name "Web flags".').waitFor();
    expect(await axeFindings(page)).toEqual([]);

    await page.goto("/console/flags");
    await page.getByRole("button", { name: "Views" }).click();
    await dialog.getByRole("link", { name: "Web flags" }).click();
    await page.waitForURL(/tag=web&order=key|order=key&tag=web/);
    await page.getByText("1 flag", { exact: true }).waitFor();
    // Another browser has the team's view alone.
    const other = await owner.open();
    await other.page.goto("/console/flags");
    await other.page.getByRole("button", { name: "Views" }).click();
    await other.page.getByRole("link", { name: "Web flags" }).waitFor();
    expect(await other.page.getByRole("link", { name: "Mine" }).count()).toBe(0);
    await other.page.getByRole("button", { name: "Remove Web flags" }).click();
    await other.page.getByRole("link", { name: "Web flags" }).waitFor({ state: "detached" });
    await other.context.close();
    const path = `/api/projects/${owner.server.initialized.project.id}/`;
    const { flag_views: views } = (await (await owner.server.api(path)).json()) as { flag_views: unknown[] };
    expect([views, other.errors]).toEqual([[], []]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
