/** The real browser library, served by the compiled executable to a page on another origin, in a real browser. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { rolloutPosition } from "../../src/flags/evaluate/bucketing.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { until } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { server, useServer } from "../support/use-server.ts";
import { createSdkFlags } from "./project-flags.ts";

const browserTest = testWhen(chromiumPath !== undefined, "posthog-js in a browser", "no Chromium here");

let browser: Browser;
let site: ReturnType<typeof serveSite>;
if (chromiumPath !== undefined) useServer();
beforeAll(async () => {
  if (chromiumPath === undefined) return;
  await createSdkFlags(server);
  site = serveSite();
  browser = await startBrowser();
}, 60_000);
afterAll(async () => {
  await browser?.close();
  await site?.stop(true);
});

/** A page on an origin of its own; `?` says how the library is started. */
function serveSite() {
  return Bun.serve({
    hostname: "localhost",
    port: 0,
    fetch(request) {
      const { searchParams, pathname } = new URL(request.url);
      if (pathname === "/favicon.ico") return new Response(null, { status: 204 });
      const script = searchParams.get("script") ?? "/static/array.js";
      return new Response(pageText(script, searchParams.get("options") ?? "{}"), {
        headers: { "Content-Type": "text/html; charset=utf-8" },
      });
    },
  });
}

/** A page that loads the library and starts it once it is there, as the usual snippet does. */
function pageText(script: string, options: string): string {
  return `<!doctype html><title>Shop</title><h1>Shop</h1>
<button id="buy" class="primary large" data-thing="cart">Buy now</button>
<a id="away" href="/elsewhere">Away</a>
<script>
  window.posthog = [];
  posthog.__SV = 1;
  posthog._i = [["${server.token}", Object.assign({
    api_host: "${server.url}",
    opt_out_useragent_filter: true,
    request_queue_config: { flush_interval_ms: 250 },
    loaded: (library) => { window.library = library; },
  }, ${options}), "posthog"]];
</script>
<script crossorigin="anonymous" src="${server.url}${script}"></script>`;
}

interface Visit extends AsyncDisposable {
  page: Page;
  /** Requests to anywhere but the page's own origin. */
  requests: { method: string; url: string; status: number }[];
  failures: string[];
  /** The anonymous id of this visit. */
  id: string;
}

/** Opens the page in a browser without memory, and waits until flags are there. */
async function visit(options: object = {}, script = "/static/array.js"): Promise<Visit> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const requests: Visit["requests"] = [];
  const failures: string[] = [];
  page.on("response", (response) => {
    const url = response.url();
    if (url.startsWith(site.url.origin)) return;
    requests.push({ method: response.request().method(), url, status: response.status() });
  });
  page.on("requestfailed", (request) => failures.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on("console", (message) => {
    if (message.type() === "error") failures.push(message.text());
  });
  page.on("pageerror", (error) => failures.push(String(error)));
  const address = new URL(site.url);
  address.searchParams.set("script", script);
  address.searchParams.set("options", JSON.stringify(options));
  await page.goto(address.href);
  await page.waitForFunction("window.library && window.library.featureFlags.hasLoadedFlags");
  const id = (await page.evaluate("library.get_distinct_id()")) as string;
  return { page, requests, failures, id, [Symbol.asyncDispose]: () => context.close() };
}
const run = <Result>(page: Page, code: string) => page.evaluate(code) as Promise<Result>;

/**
 * Captures an event and leaves the page in the same moment: on a busy machine the queue could be flushed in between, by
 * an ordinary request, which the browser drops when the page goes.
 */
async function captureAndLeave(page: Page, event: string) {
  await run(
    page,
    `void setTimeout(() => (library.capture(${JSON.stringify(event)}), location.assign("about:blank")))`,
  );
  await page.waitForURL("about:blank");
}

/** The stored events of a distinct id, by name, when they satisfy a condition. */
async function getEvents(distinctId: string, ...names: string[]) {
  return await until(
    async () => {
      const events = await server.events(`order=seq&distinct_id=${encodeURIComponent(distinctId)}`);
      const found = new Set(events.map(({ event }) => event));
      return names.every((name) => found.has(name)) && events;
    },
    `${names.join(", ")} of ${distinctId} are stored`,
  );
}
async function getPerson(distinctId: string) {
  const response = await server.api(`/api/projects/1/persons/?distinct_id=${encodeURIComponent(distinctId)}`);
  const { results } = (await response.json()) as {
    results: { distinct_ids: string[]; properties: Record<string, unknown> }[];
  };
  return results[0];
}

describe("posthog-js in a page on another origin", () => {
  browserTest(
    "a visit: library, configuration, page view, flags and payloads, all from the server",
    async () => {
      await using visited = await visit();
      const { page, requests, failures, id } = visited;
      expect(await run(page, "library.isFeatureEnabled('always')")).toBe(true);
      expect(await run(page, "library.isFeatureEnabled('never')")).toBe(false);
      expect(await run(page, "library.isFeatureEnabled('switched-off')")).toBeFalsy();
      expect(await run(page, "library.getFeatureFlagPayload('always')")).toEqual({
        color: "red",
        sizes: [1, 2],
      });
      const answer = await server.post(
        "/flags/?v=2",
        { token: server.token, distinct_id: id },
        { Origin: site.url.origin },
      );
      const { flags } = (await answer.json()) as {
        flags: Record<string, { enabled: boolean; variant: string | null }>;
      };
      const values = Object.entries(flags).map(([key, flag]) => [
        key,
        flag.enabled && (flag.variant ?? true),
      ]);
      for (const [key, value] of values) {
        expect([key, await run(page, `library.getFeatureFlag('${key}')`)]).toEqual([key, value]);
      }
      const events = await getEvents(id, "$pageview", "$feature_flag_called");
      expect(events[0]).toMatchObject({ event: "$pageview", person: null });
      expect(await getPerson(id)).toBeUndefined();
      expect(failures).toEqual([]);
      expect(requests.every(({ url }) => url.startsWith(server.url))).toBe(true);
      const seen = requests.map(({ method, url, status }) => `${method} ${new URL(url).pathname} ${status}`);
      expect(seen).toContain("GET /static/array.js 200");
      expect(seen).toContain(`GET /array/${server.token}/config.js 200`);
      expect(seen).toContain("POST /flags/ 200");
      expect(seen).toContain("POST /i/v0/e/ 200");
      expect(seen.filter((line) => !/ (200|204|304)$/.test(line))).toEqual([]);
    },
    30_000,
  );

  browserTest(
    "a click is recorded with its elements, and captures are stored once each",
    async () => {
      await using visited = await visit();
      const { page, failures, id } = visited;
      await page.click("#buy");
      for (let i = 0; i < 5; i++) await run(page, `library.capture('looked', { i: ${i} })`);
      const events = await getEvents(id, "$autocapture", "looked");
      const clicks = events.filter(({ event }) => event === "$autocapture");
      expect(clicks).toHaveLength(1);
      expect(clicks[0]!.elements_chain).toContain("button.large.primary");
      expect(clicks[0]!.properties.$event_type).toBe("click");
      const { elements } = clicks[0] as unknown as { elements: object[] };
      expect(elements[0]).toMatchObject({
        tag_name: "button",
        text: "Buy now",
        attributes: { "attr__data-thing": "cart" },
      });
      const looks = await until(async () => {
        const all = await getEvents(id, "looked");
        const found = all.filter(({ event }) => event === "looked");
        return found.length >= 5 && found;
      }, "all five are stored");
      expect(looks.map(({ properties }) => properties.i)).toEqual([0, 1, 2, 3, 4]);
      expect(failures).toEqual([]);
    },
    30_000,
  );

  browserTest(
    "who is identified takes the anonymous events along, and a property turns a flag on",
    async () => {
      await using visited = await visit();
      const { page, failures, id } = visited;
      const user = `kim-${id.slice(-8)}`;
      expect(await run(page, "library.isFeatureEnabled('pro-plan')")).toBe(false);
      await run(page, `library.identify('${user}', { plan: 'pro' }, { first: 'yes' })`);
      await page.waitForFunction("library.isFeatureEnabled('pro-plan') === true");
      const person = await until(async () => {
        const found = await getPerson(user);
        return found?.distinct_ids.includes(id) === true && found;
      }, "both ids are one person");
      expect(person.properties).toMatchObject({ plan: "pro", first: "yes" });
      // Without sending properties: those that are stored count.
      const asked = await server.post("/flags/?v=2", { token: server.token, distinct_id: user });
      expect(await asked.json()).toMatchObject({ flags: { "pro-plan": { enabled: true } } });
      const events = await getEvents(id, "$pageview");
      expect(events[0]!.person!.distinct_ids).toContain(user);
      expect(failures).toEqual([]);
    },
    30_000,
  );

  browserTest(
    "who is identified keeps the value seen before, though the library asks for flags before it sends `$identify`",
    async () => {
      const created = await server.api("/api/projects/1/feature_flags/", {
        method: "POST",
        body: {
          key: "steady",
          ensure_experience_continuity: true,
          filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
        },
      });
      expect(created.status).toBe(201);
      await using visited = await visit();
      const { page, failures, id } = visited;
      // The library sends events every few seconds: they wait here until the test has asked.
      const sending = Promise.withResolvers<void>();
      await page.route(/\/(e|batch|capture)\//, async (route) => {
        await sending.promise;
        await route.continue();
      });
      const isOn = (of: string) => rolloutPosition("steady", of) <= 0.5;
      const user = Array.from({ length: 100 }, (_, n) => `kim-${n}-${id.slice(-8)}`).find(
        (name) => isOn(name) !== isOn(id),
      )!;
      expect(await run(page, "library.isFeatureEnabled('steady')")).toBe(isOn(id));
      const answer = page.waitForResponse((response) => response.url().includes("/flags/"));
      await run(page, `library.identify('${user}')`);
      const { flags } = (await (await answer).json()) as { flags: Record<string, { enabled: boolean }> };
      expect(flags.steady!.enabled).toBe(isOn(id));
      // Nobody is identified yet; a server that asks sees the same, and so does everybody afterwards.
      const asked = async () => {
        const response = await server.post("/flags/?v=2", { token: server.token, distinct_id: user });
        const { flags } = (await response.json()) as { flags: Record<string, { enabled: boolean }> };
        return flags.steady!.enabled;
      };
      expect(await getPerson(user)).toBeUndefined();
      expect(await asked()).toBe(isOn(id));
      sending.resolve();
      await until(() => getPerson(user), "the person is made");
      expect(await asked()).toBe(isOn(id));
      expect(failures).toEqual([]);
    },
    30_000,
  );

  browserTest(
    "groups: the group is made, and flags about it are there after the reload",
    async () => {
      await using visited = await visit();
      const { page, failures, id } = visited;
      expect(await run(page, "library.isFeatureEnabled('large-company')")).toBe(false);
      await run(page, "library.group('company', 'umbrella', { size: 900 })");
      await page.waitForFunction("library.isFeatureEnabled('large-company') === true");
      await run(page, "library.capture('worked')");
      const events = await getEvents(id, "worked", "$groupidentify");
      expect(events.find(({ event }) => event === "worked")!.properties.$groups).toEqual({
        company: "umbrella",
      });
      const group = await until(async () => {
        const response = await server.api(
          "/api/projects/1/groups/find/?group_type_index=0&group_key=umbrella",
        );
        return response.status === 200 && ((await response.json()) as { group_properties: object });
      }, "the group is made");
      expect(group.group_properties).toMatchObject({ size: 900 });
      await run(page, "library.resetGroups()");
      await page.waitForFunction("library.isFeatureEnabled('large-company') === false");
      expect(failures).toEqual([]);
    },
    30_000,
  );

  browserTest(
    "reset starts a new person",
    async () => {
      await using visited = await visit();
      const { page, failures, id } = visited;
      await run(page, `library.identify('reset-${id}')`);
      await run(page, "library.reset()");
      const after = await run<string>(page, "library.get_distinct_id()");
      expect([id, `reset-${id}`]).not.toContain(after);
      await run(page, "library.capture('new life')");
      const [event] = (await getEvents(after, "new life")).filter(({ event: name }) => name === "new life");
      expect(event!.person).toBeNull();
      expect(failures).toEqual([]);
    },
    30_000,
  );

  browserTest(
    "what is captured last before the page is left is stored",
    async () => {
      await using visited = await visit();
      const { page, id } = visited;
      await captureAndLeave(page, "parting word");
      const events = await getEvents(id, "parting word", "$pageleave");
      expect(events.filter(({ event }) => event === "parting word")).toHaveLength(1);
    },
    30_000,
  );

  const ways: [name: string, options: object, script?: string][] = [
    ["without compression", { disable_compression: true }],
    ["without batches", { request_batching: false }],
    ["without memory", { persistence: "memory" }],
    ["with everything in one file", {}, "/static/array.full.js"],
    ["through the project's own address", {}, "/array/TOKEN/array.js"],
  ];
  for (const [name, options, script] of ways) {
    browserTest(
      `${name}: queued, at once and on leaving, each stored once`,
      async () => {
        await using visited = await visit(options, script?.replace("TOKEN", server.token));
        const { page, requests, failures, id } = visited;
        await run(page, "library.capture('queued')");
        await run(page, "library.capture('at once', {}, { send_instantly: true })");
        await getEvents(id, "queued", "at once");
        const rejected = requests.filter(({ status }) => ![200, 204, 304].includes(status));
        expect(rejected).toEqual([]);
        expect(failures).toEqual([]);
        // Without batches the library sends by an ordinary fetch, which the browser drops when the page goes first.
        if ("request_batching" in options) {
          await run(page, "library.capture('on leaving')");
          await getEvents(id, "on leaving");
          await page.goto("about:blank");
        } else await captureAndLeave(page, "on leaving");
        const events = await getEvents(id, "queued", "at once", "on leaving");
        for (const wanted of ["queued", "at once", "on leaving", "$pageview"]) {
          expect([wanted, events.filter(({ event }) => event === wanted).length]).toEqual([wanted, 1]);
        }
      },
      30_000,
    );
  }
});
