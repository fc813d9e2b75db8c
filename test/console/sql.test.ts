/** The SQL page: its result table, its tabs, the columns beside the editor, and adding to a dashboard. */

import { describe, expect, test } from "bun:test";
import { sortRows } from "../../src/console/page/lib/sort-rows.ts";
import { chromiumPath } from "../support/browser.ts";
import { axeFindings, ownersBrowser } from "./support.ts";

test("rows are sorted by value, null last in both directions", () => {
  const rows = [10, null, 9, 2.5].map((n) => ({ n }));
  const sorted = (isDescending: boolean) => sortRows(rows, "n", isDescending).map(({ n }) => n);
  expect(sorted(false)).toEqual([2.5, 9, 10, null]);
  expect(sorted(true)).toEqual([10, 9, 2.5, null]);
  const texts = ["b2", "b10", null, "a"].map((t) => ({ t }));
  expect(sortRows(texts, "t", false).map(({ t }) => t)).toEqual(["a", "b2", "b10", null]);
});

describe.skipIf(chromiumPath === undefined)("the SQL page", () => {
  const owner = ownersBrowser();
  const address = (statement: string) => `/console/sql?q=${encodeURIComponent(statement)}`;

  test("numbers have separators and stand at the right; headers sort", async () => {
    const { page, context, errors } = await owner.open();
    const statement = "SELECT * FROM (VALUES ('a', 1234567), ('b', 5), ('c', NULL)) t(name, amount)";
    await page.goto(address(statement));
    const table = page.getByRole("table", { name: "SQL" });
    const cell = table.getByRole("cell", { name: "1,234,567" });
    await cell.waitFor();
    expect(await cell.evaluate((element) => getComputedStyle(element).textAlign)).toBe("end");
    const names = async () =>
      (await table.getByRole("row").allTextContents()).slice(1).map((text) => text[0]);
    await table.getByRole("button", { name: "amount" }).click();
    expect(await names()).toEqual(["a", "b", "c"]);
    await table.getByRole("button", { name: "amount" }).click();
    expect(await names()).toEqual(["b", "a", "c"]);
    await table
      .getByRole("columnheader", { name: "amount" })
      .and(page.locator("[aria-sort=ascending]"))
      .waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("several queries are in tabs that keep their text and results", async () => {
    const { page, context, errors } = await owner.open();
    await page.goto(address("SELECT 41 + 1 AS first"));
    await page.getByRole("cell", { name: "42" }).waitFor();
    await page.getByRole("button", { name: "New query" }).click();
    await page.getByRole("tab", { name: "Query 2", selected: true }).waitFor();
    expect(await page.getByRole("cell", { name: "42" }).isVisible()).toBe(false);
    await page.locator(".cm-content").filter({ visible: true }).click();
    await page.keyboard.type("SELECT 7 AS second");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("cell", { name: "7", exact: true }).waitFor();
    await page.getByRole("tab", { name: "Query 1" }).click();
    await page.getByRole("cell", { name: "42" }).waitFor();
    await page.waitForURL(/first/);
    await page.goto("/console/sql");
    await page.getByRole("tab", { name: "Query 2", selected: true }).waitFor();
    await page.locator(".cm-content").getByText("second").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Close query 2" }).click();
    await page.locator(".cm-content").getByText("first").waitFor();
    expect(await page.getByRole("tab").count()).toBe(1);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("columns show their type and an example; a result is added to a dashboard", async () => {
    await owner.server.capture({ event: "signed up", distinct_id: "user-1" });
    await owner.server.eventsWhenStored(1);
    const { page, context, errors } = await owner.open();
    await page.goto(address("SELECT 40 + 2 AS n"));
    const columns = page.getByRole("complementary", { name: "Views" });
    await columns.getByRole("button", { name: /^event text signed up$/ }).waitFor();
    await columns.getByRole("button", { name: /^timestamp timestamp \d{4}-/ }).waitFor();
    await page.getByRole("button", { name: "Add to dashboard" }).click();
    const dialog = page.getByRole("dialog", { name: "Add to dashboard" });
    await dialog.getByLabel("Name", { exact: true }).fill("The answer");
    await dialog.getByLabel("Name of the dashboard").fill("Answers");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.goto("/console/dashboards");
    await page.getByRole("link", { name: "Answers" }).click();
    await page.getByRole("cell", { name: "42" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });
});
