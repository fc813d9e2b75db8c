/** Start, Live and SQL: what arrives is seen at once, what runs can be ended. */

import { describe, expect, test } from "bun:test";
import { chromiumPath } from "../support/browser.ts";
import { ServerProcess, until } from "../support/server.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { axeFindings, openConsole, openSignedIn, ownerCookie, useConsole } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("live", () => {
  const hostile = `<img src=x onerror="document.title='owned'">`;
  const open = () => openConsole({ expectedStatus: [400, 503] });

  useConsole();

  /** Sends until the page has its stream open and shows one. */
  const sendUntilShown = async (item: Record<string, unknown>, isShown: () => Promise<boolean>) => {
    let number = 0;
    await until(async () => {
      await server.capture({ ...item, distinct_id: `user-${++number}` });
      await Bun.sleep(200);
      return await isShown();
    }, "the event is shown");
  };

  test("the first event completes the first step, which stays complete", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/start");
    await page.getByText("Waiting for the first event…").waitFor();
    expect(await page.getByText("done", { exact: true }).count()).toBe(0);
    await sendUntilShown({ event: "signed up" }, () => page.getByText(/signed up from user-/).isVisible());
    await page.getByText("done", { exact: true }).first().waitFor();
    await page.reload();
    await page.getByText("done", { exact: true }).first().waitFor();
    expect(await page.getByText("Waiting for the first event…").count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("events show as they arrive, as text; a pause keeps counting", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/events");
    const table = page.getByRole("table", { name: "Events", exact: true });
    await sendUntilShown({ event: hostile, properties: { [hostile]: hostile } }, () =>
      table.getByText(hostile).first().isVisible(),
    );
    await table.getByText(hostile).first().waitFor();
    const isLive = page.getByRole("switch", { name: "Live" });
    await isLive.click();
    expect(await isLive.getAttribute("aria-checked")).toBe("false");
    await server.capture({ event: "during the pause", distinct_id: "user-1" });
    await page.getByText("1 event since").waitFor();
    expect(await table.getByText("during the pause").count()).toBe(0);
    await page.getByRole("button", { name: "Resume" }).click();
    expect(await isLive.getAttribute("aria-checked")).toBe("true");
    await table.getByText("during the pause").waitFor();
    await table.getByText(hostile).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(hostile).first().waitFor();
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.locator("img").count()).toBe(0);
    // The panel leaves every column of the table visible: another row can be opened while it is shown.
    const [shown, side] = await Promise.all([table.boundingBox(), dialog.boundingBox()]);
    expect(shown!.x + shown!.width).toBeLessThanOrEqual(side!.x);
    await table.getByText("during the pause").click();
    await dialog.getByRole("heading", { name: "during the pause" }).waitFor();
    expect(await dialog.count()).toBe(1);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });

    await page.goto("/console/events?event=only this");
    await sendUntilShown({ event: "only this" }, () => table.getByText("only this").first().isVisible());
    await server.capture({ event: "something else", distinct_id: "user-1" });
    await server.capture({ event: "only this", distinct_id: "the-last" });
    await table.getByText("the-last").last().waitFor();
    expect(await table.getByText("something else").count()).toBe(0);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("the last minutes are bars that follow the filters, and properties become columns", async () => {
    const { page, context, errors } = await open();
    const properties = { plan: "<i>pro</i>" };
    await server.capture({ event: "of this minute", distinct_id: "user-1", properties });
    await server.capture({ event: "of this minute", distinct_id: "user-2", properties });
    await until(
      async () =>
        (await server.query("SELECT count(*) AS n FROM events WHERE event = 'of this minute'"))[0]?.n === 2,
      "both are stored",
    );
    await page.goto("/console/events?event=of this minute");
    const minutes = page.getByRole("figure", { name: "Events per minute" });
    await minutes.getByRole("img", { name: "2 events in the last 30 minutes" }).waitFor();
    const counts = await minutes
      .locator("[title]")
      .evaluateAll((bars) => bars.map((bar) => Number(/: (\d+) event/.exec(bar.getAttribute("title")!)![1])));
    expect(counts).toHaveLength(30);
    expect(counts.reduce((sum, count) => sum + count)).toBe(2);

    await page.getByLabel("Columns").fill("plan");
    await page.keyboard.press("Enter");
    const table = page.getByRole("table", { name: "Events", exact: true });
    await table.getByRole("columnheader", { name: "plan" }).waitFor();
    await table.getByRole("cell", { name: "<i>pro</i>", exact: true }).first().waitFor();
    expect(new URL(page.url()).searchParams.get("columns")).toBe("plan");
    expect(await table.getByRole("columnheader", { name: "Properties" }).count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("live events show while the engine is down, and the page reports it", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/events");
    const table = page.getByRole("table", { name: "Events", exact: true });
    await table.waitFor();
    await sendUntilShown({ event: "before" }, () => table.getByText("before").first().isVisible());
    for (const pid of await server.enginePids()) process.kill(pid, "SIGSTOP");
    try {
      await sendUntilShown({ event: "while it stands still" }, () =>
        table.getByText("while it stands still").first().isVisible(),
      );
    } finally {
      for (const pid of await server.enginePids()) process.kill(pid, "SIGCONT");
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a statement is run, cancelled immediately, and repaired", async () => {
    const { page, context, errors } = await open();
    await page.goto("/console/sql");
    await page.getByRole("textbox", { name: "Statement" }).click();
    await page.keyboard.type(
      "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
    );
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^running/).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "detached" });
    // The engine is free again at once.
    const started = performance.now();
    await server.query("SELECT 1 AS one");
    expect(performance.now() - started).toBeLessThan(5_000);

    await page.getByRole("textbox", { name: "Statement" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("SELECT 7 AS seven");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("table", { name: "SQL" }).getByText("7", { exact: true }).waitFor();
    const durationMs = (await page.getByText(/^1 row · /).textContent())!;
    await page.getByRole("textbox", { name: "Statement" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type(
      `SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7`,
    );
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^running, (0.[3-9]|[1-9])/).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    // Of the answer that is there, not of the statement that has none.
    await page.getByText(durationMs, { exact: true }).waitFor();
    await page.getByRole("textbox", { name: "Statement" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("SELECT 7 AS seven");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL((url) => url.search.includes("SELECT+7"));
    await context.close();
    expect(errors).toEqual([]);
  });

  test("names become bars; after an error the former result is labeled as such", async () => {
    const { page, context, errors } = await open();
    const statement = "SELECT unnest(['a', 'b']) AS name, 3 AS times";
    // On a busy machine the engine is restarted after the cancelled statements.
    await server.query("SELECT 1 AS one");
    await page.goto(`/console/sql?form=chart&q=${encodeURIComponent(statement)}`);
    const bars = page.getByRole("table", { name: "SQL" });
    await bars.getByRole("row", { name: "a 3" }).waitFor();
    expect(await page.locator(".u-over").count()).toBe(0);
    await page.getByRole("textbox", { name: "Statement" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("SELECT nothing");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Query failed").waitFor();
    await page.getByText("Result of the previous query").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a minute without an event: Start lists rejected requests and reasons", async () => {
    await using fresh = await ServerProcess.start();
    const { page, context, errors } = await openSignedIn(browser, await ownerCookie(fresh), {
      url: fresh.url,
    });
    await page.clock.install();
    await page.goto("/console/start");
    await page.getByText("Waiting for the first event…").waitFor();
    await fresh.post("/capture/", { event: hostile, distinct_id: "d", api_key: "phc_nobody" });
    await page.clock.runFor(61_000);
    await page.getByText("401: API key is not valid: no project has this key, from 127.0.0.1").waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await context.close();
    expect(errors).toEqual([]);
  });
});
