/** What the page shows when the engine is away, the connection is lost, or the session is over. */

import { beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { chromiumPath } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { browser } from "../support/use-browser.ts";
import { server } from "../support/use-server.ts";
import { axeFindings, cookie, openConsole, openPage, password, useConsole } from "./support.ts";

describe.skipIf(chromiumPath === undefined)("states", () => {
  const open = (expectedStatus: number[]) => openConsole({ expectedStatus });

  useConsole();
  beforeAll(async () => {
    await server.capture({ event: "signed up", distinct_id: "user-1" });
    await server.eventsWhenStored(1);
    await server.api(`/api/projects/${server.initialized.project.id}/feature_flags/`, {
      method: "POST",
      body: { key: "new-checkout", filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
    });
  });

  /** Answers as the front does while the engine starts again, until it is told to stop. */
  const engineAway = async (page: Page, path: RegExp) => {
    await page.route(path, (route) =>
      route.fulfill({
        status: 503,
        headers: { "Retry-After": "1" },
        json: {
          type: "server_error",
          code: "engine_unavailable",
          detail: "The engine is starting.",
          attr: null,
        },
      }),
    );
    return async () => await page.unroute(path);
  };

  const pages: readonly (readonly [path: string, api: RegExp, ready: string | RegExp])[] = [
    ["persons", /\/persons\//, "user-1"],
    ["explore", /\/query\//, /^\d+ total$/],
    ["sql?q=SELECT 41 %2B 1 AS answer", /\/query\//, "42"],
  ];
  for (const [path, api, ready] of pages) {
    test(`${path}: reports that analytics are restarting, and retries automatically`, async () => {
      const { page, context, errors } = await open([503]);
      const isBack = await engineAway(page, api);
      await page.goto(`/console/${path}`);
      await page.getByText("Analytics is restarting. Flags and event capture keep working.").waitFor();
      expect(await axeFindings(page)).toEqual([]);
      await isBack();
      if (path.startsWith("sql")) await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("main").getByText(ready).first().waitFor();
      await context.close();
      expect(errors).toEqual([]);
    });
  }

  test("the session is requested before the page's script is loaded, once, and again if that failed", async () => {
    const first = ["/api/session/", "/api/users/@me/", "/api/projects/"];
    for (const rejected of [undefined, ...first]) {
      const { page, context, errors } = await open([503]);
      const asked: string[] = [];
      await page.route(
        (url) => first.includes(url.pathname),
        async (route) => {
          const { pathname } = new URL(route.request().url());
          const isFirst = !asked.includes(pathname);
          asked.push(pathname);
          if (isFirst && pathname === rejected) await route.fulfill({ status: 503 });
          else await route.continue();
        },
      );
      await page.goto("/console/persons");
      await page.getByRole("main").getByText("user-1").first().waitFor();
      expect(asked.toSorted()).toEqual([...first, rejected ?? []].flat().toSorted());
      const [session, pageScript] = await page.evaluate(() =>
        [/\/api\/session\/$/, /\/a\/persons-/].map(
          (name) =>
            performance.getEntriesByType("resource").find((entry) => name.test(entry.name))!.startTime,
        ),
      );
      expect(session).toBeLessThan(pageScript!);
      await context.close();
      expect(errors).toEqual([]);
    }
  });

  test("a user without a session gets no error on the way to the form", async () => {
    for (const value of [undefined, "fks_of_another_time"]) {
      const { page, context, errors } = await openPage(browser, { url: server.url });
      const name = cookie.split("=")[0]!;
      if (value !== undefined) await context.addCookies([{ name, value, url: server.url }]);
      await page.goto("/console/persons");
      await page.getByLabel("Password", { exact: true }).waitFor();
      await context.close();
      expect(errors).toEqual([]);
    }
  });

  test("the engine is killed on each page: each has its data soon after, and nothing is broken", async () => {
    const { page, context, errors } = await open([503]);
    const visited: readonly (readonly [string, string | RegExp])[] = [
      ["persons", "user-1"],
      ["explore", /^\d+ total$/],
      ["events", "signed up"],
      ["flags", "new-checkout"],
      ["instance", "Ingestion lag"],
      ["sql?q=SELECT 41 %2B 1 AS answer", "42"],
    ];
    for (const [path, ready] of visited) {
      await page.goto(`/console/${path}`);
      await page.getByRole("main").getByText(ready).first().waitFor();
      const [pid] = await until(async () => {
        const pids = await server.enginePids();
        return pids.length > 0 && pids;
      }, "the engine runs");
      process.kill(pid!, "SIGKILL");
      await page.reload();
      if (path.startsWith("sql")) {
        // A statement is not run again by itself: no one may want it any more.
        await until(async () => (await server.query("SELECT 1 AS one")).length === 1, "queries are answered");
        await page.getByRole("button", { name: "Run" }).click();
      }
      await page.getByRole("main").getByText(ready).first().waitFor();
      await page.getByText("Analytics is restarting").waitFor({ state: "detached" });
    }
    await context.close();
    expect(errors).toEqual([]);
  });

  test("flags work while the engine is away; old data stay with their age", async () => {
    const { page, context, errors } = await open([503]);
    await page.goto("/console/persons");
    await page.getByText("user-1").first().waitFor();
    const isBack = await engineAway(page, /\/(persons|query|reach|usage)\//);
    await page.getByRole("link", { name: "Flags" }).first().click();
    await page.getByRole("switch", { name: "new-checkout" }).waitFor();
    await page.getByRole("link", { name: "new-checkout" }).click();
    await page.getByText("Can't estimate reach right now. You can still save.").first().waitFor();
    await page.getByRole("link", { name: "People" }).click();
    await page.getByText("Showing data from").waitFor();
    await page.getByText("user-1").first().waitFor();
    await isBack();
    await page.getByText("Showing data from").waitFor({ state: "detached" });
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a proxy without its server, a rate limit and an overloaded server keep the page; requests are retried", async () => {
    for (const [status, message] of [
      [502, "Flagkeep could not be reached."],
      [429, "Expected available in 1 second."],
      [503, "Too many large requests are in progress. Retry the request."],
    ] as const) {
      const { page, context, errors } = await open([status]);
      await page.goto("/console/persons");
      await page.getByText("user-1").first().waitFor();
      await page.route(/\/persons\//, (route) =>
        status === 502
          ? route.fulfill({ status, contentType: "text/html", body: "<h1>Bad Gateway</h1>" })
          : route.fulfill({
              status,
              headers: { "Retry-After": "1" },
              json: { code: status === 503 ? "overloaded" : "throttled", detail: message },
            }),
      );
      await page.getByRole("link", { name: "Flags" }).first().click();
      await page.getByRole("link", { name: "People" }).click();
      await page.getByText(message).waitFor();
      expect(await page.getByText("Analytics is restarting").count()).toBe(0);
      await page.getByText("user-1").first().waitFor();
      await page.unroute(/\/persons\//);
      await page.getByText(message).waitFor({ state: "detached" });
      await context.close();
      expect(errors).toEqual([]);
    }
  });

  test("a page opened before an upgrade reports that one of its files is missing", async () => {
    const { page, context, errors } = await open([404]);
    await page.goto("/console/flags");
    await page.getByRole("switch", { name: "new-checkout" }).waitFor();
    await page.route(/\/a\/persons-/, (route) => route.fulfill({ status: 404 }));
    await page.getByRole("link", { name: "People" }).click();
    await page.getByRole("heading", { level: 1, name: "People" }).waitFor();
    await page.getByText("Flagkeep was updated").waitFor();
    expect(await page.getByRole("switch").count()).toBe(0);
    expect(await axeFindings(page)).toEqual([]);
    await page.unroute(/\/a\/persons-/);
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByRole("main").getByText("user-1").first().waitFor();
    await context.close();
    expect(errors).toEqual([]);
  });

  test("a page whose script is blocked, or whose browser runs none, is not blank", async () => {
    const { page, context } = await open([]);
    await page.route(/\/console\/a\/.*\.js$/, (route) => route.abort());
    await page.goto("/console/flags");
    const title = page.getByRole("heading", { level: 1, name: "The console couldn't be loaded" });
    await title.waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.unroute(/\/console\/a\/.*\.js$/);
    await page.reload();
    await page.getByRole("switch", { name: "new-checkout" }).waitFor();
    expect(await page.locator(".not-started").count()).toBe(0);
    await context.close();

    const scriptless = await browser.newContext({ javaScriptEnabled: false });
    const plain = await scriptless.newPage();
    await plain.goto(`${server.url}/console/flags`);
    await plain
      .getByText("Check the connection, and that your browser runs scripts from this address.")
      .waitFor();
    await scriptless.close();
  });

  test("without a connection a change is rejected immediately, never queued", async () => {
    const { page, context, errors } = await open([]);
    await page.goto("/console/flags");
    const toggle = page.getByRole("switch", { name: "new-checkout" });
    await toggle.waitFor();
    await context.setOffline(true);
    await toggle.click();
    await page.getByText("No connection to the server. Nothing was changed.").waitFor();
    expect(await toggle.getAttribute("aria-checked")).toBe("true");
    await context.setOffline(false);
    await page.reload();
    expect(await toggle.getAttribute("aria-checked")).toBe("true");
    await context.close();
    expect(errors.filter((text) => !text.includes("ERR_INTERNET_DISCONNECTED"))).toEqual([]);
  });

  test("when the session ends the page asks to sign in and stays where it was", async () => {
    const { page, context, errors } = await open([401]);
    await page.goto("/console/flags?search=new");
    await page.getByRole("switch", { name: "new-checkout" }).waitFor();
    await context.clearCookies();
    // The next request of the page finds out: its look at the health comes every ten seconds.
    await page.getByLabel("E-mail").waitFor({ timeout: 30_000 });
    await page.getByLabel("E-mail").fill(server.initialized.user.email);
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await page.getByRole("switch", { name: "new-checkout" }).waitFor();
    expect(page.url()).toContain("/console/flags?search=new");
    await context.close();
    expect(errors).toEqual([]);
  });
});
