/** What is taken along as a file: rows of statements and events, as CSV and Parquet; where a statement is wrong. */

import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { axeFindings, cookie, openConsole, openSignedIn, useConsole } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("downloads", () => {
  const rowsCount = 10_050;

  useConsole();
  beforeAll(async () => {
    await server.batch([
      { event: "paid", distinct_id: "user-1", properties: { plan: "it's" } },
      { event: "paid", distinct_id: "user-2", properties: { plan: "free" } },
    ]);
    await server.eventsWhenStored(2);
  });

  const getFile = async (page: Page, name: string) => {
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name, exact: true }).click(),
    ]);
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
  };

  test("all rows of a statement, those beyond the table's limit too", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto(`/console/sql?q=SELECT range AS n FROM range(${rowsCount})`);
    await page.getByText("first 10,000 of more").waitFor();
    const csv = await getFile(page, "CSV");
    expect(csv.name).toBe("answer.csv");
    expect(csv.bytes.toString().trim().split("\n")).toHaveLength(rowsCount + 1);
    const parquet = await getFile(page, "Parquet");
    expect(parquet.name).toBe("answer.parquet");
    expect(parquet.bytes.subarray(0, 4).toString()).toBe("PAR1");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a short result is the same CSV as a long one, and no cell of it runs in a spreadsheet", async () => {
    const { page, context, errors } = await openConsole();
    const statement = `SELECT '=1+1' AS "@name", '+a,b' AS b, -5 AS n, '-5e3' AS m, E'x\\n=y' AS t, NULL AS z`;
    await page.goto(`/console/sql?q=${encodeURIComponent(statement)}`);
    await page.getByText("1 row").waitFor();
    const csv = await getFile(page, "CSV");
    expect(csv.bytes.toString()).toBe(`'@name,b,n,m,t,z\n'=1+1,"'+a,b",-5,-5e3,"x\n=y",\n`);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("stored events that fit the filters", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto(`/console/events?event=paid&property=plan&value=${encodeURIComponent("it's")}&range=24`);
    await page.getByRole("table", { name: "Events", exact: true }).getByText("user-1").last().waitFor();
    const csv = (await getFile(page, "CSV")).bytes.toString();
    expect(csv.split(/\r?\n/)[0]).toContain("distinct_id");
    expect(csv).toContain("user-1");
    expect(csv).not.toContain("user-2");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a rejection names the field and links to it", async () => {
    const options = { url: server.url, expectedStatus: [400] };
    const { page, context, errors } = await openSignedIn(browser, cookie, options);
    await page.goto(`/console/sql?q=${encodeURIComponent("SELECT event,\n  plam\nFROM events")}`);
    const place = page.getByRole("button", { name: "Line 2, column 3" });
    await place.waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await place.click();
    await page.locator(".cm-focused").waitFor();
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("distinct_id");
    await page.keyboard.press("Control+Enter");
    await page.getByText("2 rows").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });
});
