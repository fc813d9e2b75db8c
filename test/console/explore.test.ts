/** Explore in the browser: who is behind a figure, the statement of a question, the period before. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { TestAppliance, until } from "../support/appliance.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { axeFindings, openSignedIn, ownerCookie } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("explore", () => {
  let appliance: TestAppliance;
  let browser: Browser;
  let cookie: string;
  const hostile = `<img src=x onerror="document.title='owned'">`;

  beforeAll(async () => {
    appliance = await TestAppliance.start();
    cookie = await ownerCookie(appliance);
    browser = await startBrowser();
    const named = { $set: { name: hostile } };
    await appliance.batch([
      { event: hostile, distinct_id: "user-1", properties: named },
      { event: hostile, distinct_id: "user-2" },
      { event: hostile, distinct_id: "user-2" },
      { event: "paid", distinct_id: "user-2" },
    ]);
    await appliance.eventsWhenStored(4);
  });
  afterAll(async () => {
    await browser?.close();
    await appliance?.[Symbol.asyncDispose]();
  });

  const address = (question: object) =>
    `/console/explore?question=${encodeURIComponent(JSON.stringify(question))}`;

  test("a figure shows its persons, who can be kept as a fixed cohort", async () => {
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    await page.goto(address({ kind: "trends", series: [{ event: hostile, math: "total" }], view: "table" }));
    await page.getByRole("button", { name: "3", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 persons").waitFor();
    await dialog.getByRole("link", { name: hostile }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByLabel("Name of the cohort").fill("Both");
    await dialog.getByRole("button", { name: "Keep as a fixed cohort" }).click();
    await page.getByRole("heading", { level: 1, name: "Both" }).waitFor();
    await page.getByRole("table", { name: "Members" }).getByText("user-2").first().waitFor();
    expect(await page.title()).not.toBe("owned");
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("two series of one event, broken down, have names of their own", async () => {
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    const series = ["total", "dau"].map((math) => ({ event: "paid", math }));
    await page.goto(address({ kind: "trends", series, breakdown: "plan", view: "table" }));
    const names = async () => await page.getByRole("columnheader").allTextContents();
    await page.getByRole("columnheader", { name: "Series A" }).waitFor();
    expect(await names()).toEqual(["Period", "Series A · paid · None", "Series B · paid · None"]);
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("who came on two days is one person, and averages are not added up", async () => {
    const at = (daysAgo: number, amount: number) => ({
      event: "came back",
      distinct_id: "user-7",
      timestamp: new Date(Date.now() - daysAgo * 86_400_000).toISOString(),
      properties: { amount },
    });
    await appliance.batch([at(0, 30), at(1, 10), at(1, 20)]);
    await until(
      async () => (await appliance.query("SELECT 1 AS n FROM events WHERE event = 'came back'")).length === 3,
      "the events are stored",
    );
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    const figures: [series: object, number: string, summary: string][] = [
      [{ math: "dau" }, "1", "0 to 1."],
      [{ math: "avg", math_property: "amount" }, "20", "0 to 30."],
      [{ math: "sum", math_property: "amount" }, "60", "60 in all."],
    ];
    for (const [math, number, summary] of figures) {
      const question = { kind: "trends", series: [{ event: "came back", ...math }] };
      await page.goto(address({ ...question, view: "number" }));
      await page.locator(".big-number").getByText(number, { exact: true }).waitFor();
      await page.goto(address(question));
      await page.getByText(summary, { exact: true }).waitFor();
      await page.locator(".u-over").hover();
    }
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("the last step of a funnel, and the statement that computes it", async () => {
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    const series = [hostile, "paid"].map((event) => ({ event, math: "total" }));
    await page.goto(address({ kind: "funnel", series }));
    await page.getByText("1 of 2 came to the end").waitFor();
    await page.getByRole("row", { name: "paid" }).getByRole("button", { name: "1", exact: true }).click();
    await page.getByRole("dialog", { name: "Persons: paid" }).getByText("user-2").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
    await page.getByText("2 rows").waitFor();
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("a figure of a retention shows who came back, and its statement runs", async () => {
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    await page.goto(address({ kind: "retention", target: hostile, returning: "paid" }));
    await page.getByText("2 persons began").waitFor();
    await page.getByRole("button", { name: "100 %", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: /^Persons: / });
    await dialog.getByText("user-1").or(dialog.getByText(hostile)).first().waitFor();
    await dialog.getByText("user-2").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByText(/^1 row\b/).waitFor();
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("those who stayed away hang below the line of zero", async () => {
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await appliance.batch([{ event: "came once", distinct_id: "user-9", timestamp: yesterday }]);
    await until(
      async () => (await appliance.query("SELECT 1 AS n FROM events WHERE event = 'came once'")).length === 1,
      "the event is stored",
    );
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    await page.goto(address({ kind: "lifecycle", series: [{ event: "came once", math: "total" }] }));
    const chart = page.getByRole("img", { name: /^Lifecycle/ });
    await chart.waitFor();
    const places = await chart.evaluate((svg) => {
      const zero = Number(svg.querySelector(".zero")!.getAttribute("y1"));
      const bars = [...svg.querySelectorAll("rect")].map((bar) => [
        Number(bar.getAttribute("y")),
        Number(bar.getAttribute("height")),
      ]) as [number, number][];
      const shown = bars.filter(([, height]) => height > 0);
      return shown.map(([top, height]) =>
        top >= zero ? "below" : top + height <= zero ? "above" : "across",
      );
    });
    expect(places.sort()).toEqual(["above", "below"]);
    await page.getByRole("button", { name: "Show as table" }).click();
    await page.getByRole("button", { name: "-1", exact: true }).click();
    await page
      .getByRole("dialog", { name: /^Persons: Dormant, / })
      .getByText("user-9")
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByText("2 rows").waitFor();
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("the period before is shown beside, and stands in the address", async () => {
    const { page, context, troubles } = await openSignedIn(browser, cookie, { url: appliance.url });
    await page.goto("/console/explore");
    await page.getByLabel("Compare with the period before").check();
    await page.getByText("0 in the period before").waitFor();
    await page.reload();
    await page.getByText("0 in the period before").waitFor();
    await context.close();
    expect(troubles).toEqual([]);
  });
});
