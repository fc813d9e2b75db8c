/** Dashboards: the list and its generated group, templates, the grid, tiles of all kinds, copies. */

import { beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

interface Tile {
  id: number;
  layouts: { sm?: { x: number; y: number; w: number; h: number } };
  insight: { name: string } | null;
  text: { body: string } | null;
}

describe.skipIf(chromiumPath === undefined)("dashboards", () => {
  const owner = ownersBrowser();
  const { path, post } = owner;
  const getTiles = async (id: number | string) =>
    ((await (await owner.server.api(path(`dashboards/${id}/`))).json()) as { tiles: Tile[] }).tiles;
  /** "name x,y w×h", in reading order. */
  const stored = async (id: number) =>
    (await getTiles(id)).map(({ layouts: { sm }, insight, text }) =>
      [insight?.name ?? text?.body, sm && `${sm.x},${sm.y} ${sm.w}×${sm.h}`].join(" "),
    );
  const getBox = async (page: Page, name: string) =>
    (await page.getByRole("region", { name, exact: true }).boundingBox())!;
  const trend = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "paid", math: "total" }] };

  beforeAll(async () => {
    await owner.server.capture({ event: "paid", distinct_id: "user-1", properties: { $browser: "Firefox" } });
    await owner.server.eventsWhenStored(1);
    for (const key of ["new-checkout", "dark-mode"]) {
      await post("feature_flags/", { key, filters: { groups: [] } });
    }
  });

  test("generated ones stand apart and in no picker; both are searched", async () => {
    await post("dashboards/", { name: "Orders" });
    const { page, context, errors } = await owner.open();
    await page.goto("/console/dashboards");
    await page.getByRole("link", { name: "Orders" }).waitFor();
    const group = page.getByText("Flag usage (2)");
    await group.waitFor();
    expect(await page.getByRole("link", { name: "dark-mode" }).isVisible()).toBe(false);
    await group.click();
    await page.getByRole("link", { name: "dark-mode", exact: true }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("searchbox").fill("checkout");
    await page.getByText("No dashboard matches.").waitFor();
    await page.getByText("Flag usage (1)").waitFor();
    await page.getByRole("link", { name: "new-checkout", exact: true }).click();
    await page.getByText("Total Volume").first().waitFor();

    await page.goto("/console/explore");
    await page.getByRole("button", { name: "Save to dashboard" }).click();
    const picker = page.getByRole("dialog").getByLabel("Dashboard", { exact: true });
    await picker.locator("option", { hasText: "Orders" }).waitFor({ state: "attached" });
    expect((await picker.locator("option").allTextContents()).join()).not.toContain("Generated");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("templates fill a new dashboard", async () => {
    const { page, context, errors } = await owner.open();
    const make = async (template: string, tile: string) => {
      await page.goto("/console/dashboards");
      await page.getByRole("button", { name: "New dashboard" }).first().click();
      const dialog = page.getByRole("dialog", { name: "New dashboard" });
      await dialog.getByLabel("Template").selectOption({ label: template });
      expect(await dialog.getByLabel("Name").inputValue()).toBe(template);
      if (template === "Flag rollout") await dialog.getByLabel("Flag key").fill("new-checkout");
      await dialog.getByRole("button", { name: "Create" }).click();
      await page.getByRole("heading", { level: 1, name: template }).waitFor();
      await page.getByRole("heading", { level: 2, name: tile }).waitFor();
      return await page.getByRole("heading", { level: 2 }).allTextContents();
    };
    expect(await make("Web", "Browsers")).toEqual([
      "Visitors",
      "Page views",
      "Pages",
      "Referrers",
      "Browsers",
    ]);
    expect(await make("Product", "Retention")).toEqual([
      "Active people",
      "Weekly active people",
      "Lifecycle",
      "Retention",
    ]);
    expect(await make("Flag rollout", "Flag changes")).toEqual([
      "Evaluations",
      "People per variant",
      "Errors per variant",
      "Flag changes",
    ]);
    // What happened to flags in the range.
    await page.getByRole("link", { name: /^new-checkout: created/ }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("tiles are moved and resized by keyboard and by mouse", async () => {
    const { id } = await post("dashboards/", { name: "Grid" });
    for (const name of ["One", "Two", "Three"]) {
      await post("insights/", { name, query: trend, dashboards: [id] });
    }
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/dashboards/${id}`);
    const grip = page.getByRole("button", { name: "Move One", exact: true });
    await grip.focus();
    await page.keyboard.press("ArrowDown");
    await page.getByText("Column 1, row 6, 6 wide, 5 high").waitFor();
    // The focus stays on what is moved, wherever it is now.
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Move One");
    await until(
      async () => (await stored(id)).join() === "Three 0,0 6×5,Two 6,0 6×5,One 0,5 6×5",
      "the move is stored",
    );
    await page.getByRole("button", { name: "Resize One", exact: true }).focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowUp"]) await page.keyboard.press(key);
    await until(async () => (await stored(id))[2] === "One 0,5 8×4", "the size is stored");
    await page.reload();
    await grip.waitFor();
    const before = await getBox(page, "One");
    const two = await getBox(page, "Two");
    expect(before.width).toBeGreaterThan(two.width);

    // To the right of the first row: the one there goes below.
    const { x, y } = (await grip.boundingBox())!;
    await page.mouse.move(x + 5, y + 5);
    await page.mouse.down();
    await page.mouse.move(x + 5 + two.x - before.x, y + 5 + two.y - before.y, { steps: 5 });
    await page.mouse.up();
    await until(
      async () => (await stored(id)).join() === "One 4,0 8×4,Three 0,4 6×5,Two 6,4 6×5",
      "the drag is stored",
    );
    const handle = page.getByRole("button", { name: "Resize Three", exact: true });
    await handle.evaluate((element) => element.scrollIntoView({ block: "center" }));
    const corner = (await handle.boundingBox())!;
    await page.mouse.move(corner.x + 12, corner.y + 12);
    await page.mouse.down();
    await page.mouse.move(corner.x + 12 - two.width / 2, corner.y + 12 + 96, { steps: 5 });
    // Escape leaves everything as it was.
    await page.keyboard.press("Escape");
    await page.mouse.up();
    await page.mouse.move(corner.x + 12, corner.y + 12);
    await page.mouse.down();
    await page.mouse.move(corner.x + 12, corner.y + 12 + 2 * 96, { steps: 5 });
    await page.mouse.up();
    await until(async () => (await stored(id))[1] === "Three 0,4 6×7", "the drag of the corner is stored");
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("tiles of all kinds are added, edited and removed; a copy has them too", async () => {
    const { id } = await post("dashboards/", { name: "Kinds" });
    await post("insights/", { name: "Payments of all", query: trend });
    const { page, context, errors } = await owner.open();
    await page.goto(`/console/dashboards/${id}`);
    await page.getByText("No tiles yet").waitFor();
    const dialog = page.getByRole("dialog", { name: "Add tile" });
    const add = async (kind: string) => {
      await page.getByRole("button", { name: "Add tile" }).first().click();
      await dialog.getByText(kind, { exact: true }).click();
    };
    const done = () => dialog.getByRole("button", { name: "Add tile" }).click();
    await add("Insight");
    await dialog.getByRole("searchbox").fill("of all");
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Payments of all" }).click();
    await page.getByText("1 total").waitFor();
    await add("Insight");
    await dialog.getByRole("searchbox").fill("of all");
    await dialog.getByText("No insight matches.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await add("SQL");
    await dialog.getByLabel("Name").fill("The answer");
    await dialog.getByLabel("Statement").fill("SELECT 40 + 2 AS n");
    await done();
    await page.getByRole("cell", { name: "42" }).waitFor();
    await add("Text");
    await dialog.getByLabel("Text", { exact: true }).last().fill("<b>Goal</b>\nSell more.");
    await done();
    await page.getByRole("heading", { name: "<b>Goal</b>" }).waitFor();
    await add("Flag changes");
    await done();
    await page.getByRole("link", { name: /^dark-mode: created/ }).waitFor();

    await page.getByRole("button", { name: "Actions: <b>Goal</b>" }).click();
    await page.getByRole("button", { name: "Edit text" }).click();
    await page.getByRole("dialog", { name: "Edit text" }).getByLabel("Text").fill("Goal\nSell less.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Sell less.").waitFor();

    await page.getByRole("button", { name: "Actions of the dashboard" }).click();
    await page.getByRole("button", { name: "Duplicate" }).click();
    await page.getByRole("heading", { level: 1, name: "Kinds (copy)" }).waitFor();
    await page.getByText("Sell less.").waitFor();
    const copy = page.url().split("/").at(-1)!;
    expect((await getTiles(copy)).map(({ insight, text }) => insight?.name ?? text?.body)).toEqual([
      "Payments of all",
      "The answer",
      "Goal\nSell less.",
      "{{flag_changes}}",
    ]);
    await page.getByRole("button", { name: "Actions: Goal" }).click();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("heading", { name: "Goal" }).waitFor({ state: "detached" });
    expect(await getTiles(id)).toHaveLength(4);
    await context.close();
    expect(errors).toEqual([]);
  });
});
