/** Explore in the browser: who is behind a figure, the statement of a question, the period before. */

import { beforeAll, describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { server } from "../support/use-server.ts";
import { axeFindings, openConsole, useConsole } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("explore", () => {
  const hostile = `<img src=x onerror="document.title='owned'">`;

  useConsole();
  beforeAll(async () => {
    const named = { $set: { name: hostile } };
    await server.batch([
      { event: hostile, distinct_id: "user-1", properties: named },
      { event: hostile, distinct_id: "user-2" },
      { event: hostile, distinct_id: "user-2" },
      { event: "paid", distinct_id: "user-2", properties: { $browser: "Firefox" } },
    ]);
    await server.eventsWhenStored(4);
  });

  const address = (question: object) =>
    `/console/explore?question=${encodeURIComponent(JSON.stringify(question))}`;

  test("a figure shows its persons, who can be saved as a static cohort", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto(address({ kind: "trends", series: [{ event: hostile, math: "total" }], view: "table" }));
    await page.getByRole("button", { name: "3", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 people").waitFor();
    await dialog.getByRole("link", { name: hostile }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByLabel("Name of the cohort").fill("Both");
    await dialog.getByRole("button", { name: "Save as cohort" }).click();
    await page.getByRole("heading", { level: 1, name: "Both" }).waitFor();
    await page.getByRole("table", { name: "Members" }).getByText("user-2").first().waitFor();
    expect(await page.title()).not.toBe("owned");
    await context.close();
    expect(errors).toEqual([]);
  });

  test("two series of one event, broken down, have names of their own", async () => {
    const { page, context, errors } = await openConsole();
    const series = ["total", "dau"].map((math) => ({ event: "paid", math }));
    await page.goto(address({ kind: "trends", series, breakdown: "$browser", view: "table" }));
    const names = async () => await page.getByRole("columnheader").allTextContents();
    await page.getByRole("columnheader", { name: "A · paid · Firefox" }).waitFor();
    expect(await names()).toEqual(["Period", "A · paid · Firefox", "B · paid · Firefox"]);
    await page.goto(
      address({ kind: "trends", series: [{ event: hostile }], breakdown: "$browser", view: "table" }),
    );
    await page.getByRole("columnheader", { name: "No value" }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a formula and a second breakdown, with the statement that computes them", async () => {
    const { page, context, errors } = await openConsole();
    const series = ["total", "dau"].map((math) => ({ event: hostile, math }));
    await page.goto(address({ kind: "trends", series, view: "table" }));
    const formula = page.getByLabel("Formula");
    await formula.fill("A / B *");
    await page.getByText("Use A to B, numbers, parentheses and the operators +-*/%.").waitFor();
    await formula.fill("A / B * 10");
    await page.getByRole("columnheader", { name: "Formula (A / B * 10)" }).waitFor();
    await page.getByRole("cell", { name: "15", exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "15", exact: true }).count()).toBe(0);
    expect(new URL(page.url()).searchParams.get("q")).toContain("f=A / B * 10");
    await formula.fill("");
    await page.getByRole("combobox", { name: "Breakdown by" }).fill("$browser");
    await page.getByRole("combobox", { name: "Second breakdown" }).fill("$lib");
    await page.getByText("No event has $lib.").waitFor();
    await page.goto(
      address({
        kind: "trends",
        series: [{ event: "paid", math: "total" }],
        view: "table",
        formula: "A * 7",
        breakdown: "$browser",
        secondBreakdown: "$browser",
      }),
    );
    await page.getByRole("columnheader", { name: "Firefox · Firefox" }).waitFor();
    await page.getByRole("cell", { name: "7", exact: true }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByRole("cell", { name: "7", exact: true }).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a name that no event has suggests the known one", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto(
      address({ kind: "trends", series: [{ event: "paid", math: "total" }], breakdown: "browser" }),
    );
    await page.getByText("No event has browser. Did you mean $browser?").waitFor();
    expect(await page.getByText("None", { exact: true }).count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Use $browser" }).click();
    await page.getByText("1 total", { exact: true }).waitFor();
    expect(await page.getByLabel("Breakdown by").inputValue()).toBe("$browser");
    await page.goto(address({ kind: "trends", series: [{ event: "piad", math: "total" }] }));
    await page.getByText("There are no events named piad. Did you mean paid?").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a measure of a property is not computed before the property is chosen", async () => {
    const { page, context, errors } = await openConsole();
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/query/")) asked.push(request.url());
    });
    await page.goto(address({ kind: "trends", series: [{ event: "paid", math: "sum" }] }));
    await page.getByText("Choose a property for “Sum of”.").waitFor();
    await page.getByLabel("A: Measure").selectOption("Total count");
    await page.getByText("1 total", { exact: true }).waitFor();
    expect(asked).toHaveLength(1);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the total of a retention counts people once, and the scale ends at the highest cell after column 0", async () => {
    const at = (daysAgo: number, who: string) => ({
      event: "opened",
      distinct_id: who,
      timestamp: new Date(Date.now() - daysAgo * 86_400_000).toISOString(),
    });
    const days = [at(3, "r-1"), at(2, "r-1"), at(3, "r-2"), at(3, "r-3"), at(2, "r-2"), at(1, "r-1")];
    await server.batch(days);
    await until(
      async () =>
        (await server.query("SELECT 1 AS n FROM events WHERE event = 'opened'")).length === days.length,
      "the events are stored",
    );
    const { page, context, errors } = await openConsole();
    await page.goto(address({ kind: "retention", target: "opened", returning: "opened" }));
    await page.getByText("3 people", { exact: true }).waitFor();
    expect(await page.getByRole("columnheader").allTextContents()).toContain("Day 0");
    const depths = await page
      .locator(".heat tbody td[style]")
      .evaluateAll((cells) =>
        cells.map((cell) => [
          cell.textContent,
          /(\d+)%/.exec((cell as HTMLElement).style.background)?.[1] ??
            (cell as HTMLElement).style.background,
        ]),
      );
    const deepest = Math.max(...depths.map(([, depth]) => Number(depth)));
    expect(depths.filter(([, depth]) => Number(depth) === deepest).map(([text]) => text)).toEqual(["66.7%"]);
    expect(await page.locator(".heat td.empty-cell").count()).toBeGreaterThan(0);
    await page.getByRole("img", { name: /^Retention curve/ }).waitFor();
    await page.getByText("First time", { exact: true }).click();
    await page.waitForURL(/n=first/);
    await page.getByText("3 people", { exact: true }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a person active on two days counts once, and averages are not added up", async () => {
    const at = (daysAgo: number, amount: number) => ({
      event: "came back",
      distinct_id: "user-7",
      timestamp: new Date(Date.now() - daysAgo * 86_400_000).toISOString(),
      properties: { amount },
    });
    await server.batch([at(0, 30), at(1, 10), at(1, 20)]);
    await until(
      async () => (await server.query("SELECT 1 AS n FROM events WHERE event = 'came back'")).length === 3,
      "the events are stored",
    );
    const { page, context, errors } = await openConsole();
    const figures: [series: object, number: string, summary: string][] = [
      [{ math: "dau" }, "1", "0 to 1."],
      [{ math: "avg", math_property: "amount" }, "20", "0 to 30."],
      [{ math: "sum", math_property: "amount" }, "60", "60 total"],
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
    expect(errors).toEqual([]);
  });

  test("the last step of a funnel, and the statement that computes it", async () => {
    const { page, context, errors } = await openConsole();
    const series = [hostile, "paid"].map((event) => ({ event, math: "total" }));
    await page.goto(address({ kind: "funnel", series }));
    await page.getByText("50% converted (1 of 2)").waitFor();
    const steps = page.getByRole("table", { name: "Funnel" });
    expect((await steps.getByRole("columnheader").allTextContents()).slice(-2)).toEqual([hostile, "paid"]);
    await steps.getByText("50% from previous step").waitFor();
    await steps.getByText("1 dropped off (50%)").waitFor();
    await steps.getByText(/^median /).waitFor();
    await steps.getByRole("button", { name: "1", exact: true }).click();
    await page.getByRole("dialog", { name: "People: paid" }).getByText("user-2").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
    await page.getByText("2 rows").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a retention figure lists returning persons, and its statement runs", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto(address({ kind: "retention", target: hostile, returning: "paid" }));
    await page.getByText("2 people").waitFor();
    await page.getByRole("button", { name: "100%", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: /^People: / });
    await dialog.getByText("user-1").or(dialog.getByText(hostile)).first().waitFor();
    await dialog.getByText("user-2").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByText(/^1 row\b/).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the query is in a short address, and in a column that can be hidden", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/explore?q=e=paid&m=visitors&b=$browser");
    await page.getByText("Firefox").first().waitFor();
    expect(await page.getByLabel("A: Measure").inputValue()).toBe("dau");
    const column = (await page.getByRole("region", { name: "Query" }).boundingBox())!;
    const answer = (await page.locator(".answer").boundingBox())!;
    expect([Math.round(column.width), answer.x > column.x]).toEqual([320, true]);
    await page.getByLabel("Interval").selectOption("week");
    await page.waitForURL((url) => url.search === "?q=e=paid%26m=visitors%26b=$browser%26i=week");
    await page.reload();
    await page.getByText("Firefox").first().waitFor();
    expect(await page.getByLabel("Interval").inputValue()).toBe("week");
    await page.getByRole("button", { name: "Query", exact: true }).click();
    await page.getByRole("region", { name: "Query" }).waitFor({ state: "detached" });
    await page.reload();
    await page.getByText("Firefox").first().waitFor();
    expect(await page.getByRole("region", { name: "Query" }).count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("events are chosen from a list with volumes, recent ones first; a misspelled one is corrected", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/explore");
    const field = page.getByRole("combobox", { name: "A: Event" });
    await field.click();
    const list = page.getByRole("listbox", { name: "A: Event" });
    await list.getByText("Events, last 30 days").waitFor();
    await list.getByRole("option", { name: /paid\s*\d/ }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await field.fill("piad");
    await list.getByText("Did you mean").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await field.inputValue()).toBe("paid");
    await page.getByText("1 total", { exact: true }).waitFor();
    await field.click();
    await list.getByText("Recent").waitFor();
    expect(await list.getByRole("option").first().textContent()).toContain("paid");
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "hidden" });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("dragging over a chart selects its days; SQL is in its menu", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/explore?q=e=paid");
    const area = page.locator(".u-over");
    await area.waitFor();
    const { x, y, width } = (await area.boundingBox())!;
    await page.mouse.move(x + width * 0.5, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + width - 2, y + 60, { steps: 6 });
    await page.mouse.up();
    await page.waitForURL(/r=\d{4}-\d\d-\d\d:\d{4}-\d\d-\d\d/);
    const range = page.getByLabel("Range", { exact: true }).locator("option:checked");
    expect(await range.textContent()).toMatch(/^\d+ \w+.* – \d+ \w+/);
    await page.getByText("1 total", { exact: true }).waitFor();
    // A drag is no click on a point.
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.getByRole("button", { name: "Chart actions: Trends" }).click();
    await page.getByRole("button", { name: "SQL", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
    await page.getByText(/^\d+ rows?\b/).waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("dormant persons are below the zero line", async () => {
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await server.batch([{ event: "came once", distinct_id: "user-9", timestamp: yesterday }]);
    await until(
      async () => (await server.query("SELECT 1 AS n FROM events WHERE event = 'came once'")).length === 1,
      "the event is stored",
    );
    const { page, context, errors } = await openConsole();
    await page.goto(address({ kind: "lifecycle", series: [{ event: "came once", math: "total" }] }));
    await page.getByRole("img", { name: /^Lifecycle/ }).waitFor();
    await page.getByRole("button", { name: "Show as table" }).click();
    await page.getByRole("button", { name: "-1", exact: true }).click();
    await page
      .getByRole("dialog", { name: /^People: Dormant, / })
      .getByText("user-9")
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open as SQL" }).click();
    await page.getByText("2 rows").waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the previous period is shown, and is in the address", async () => {
    const { page, context, errors } = await openConsole();
    await page.goto("/console/explore");
    await page.getByLabel("Compare to previous period").check();
    await page.getByText("0 in the previous period").waitFor();
    await page.reload();
    await page.getByText("0 in the previous period").waitFor();
    // Of several series, the tooltip names each one's previous value.
    const series = ["paid", hostile].map((event) => ({ event, math: "total" }));
    await page.goto(address({ kind: "trends", series }));
    await page.getByLabel("Compare to previous period").check();
    await page.getByText("0 in the previous period").waitFor();
    await page.locator(".u-over").hover();
    const rows = page.locator(".plot-tip").getByRole("rowheader");
    await rows.nth(3).waitFor();
    expect((await rows.allInnerTexts()).slice(2)).toEqual([
      expect.stringMatching(/^paid, \d+ \w{3}$/),
      expect.stringMatching(/^<img .+, \d+ \w{3}$/),
    ]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
