/** OpenFeature's web SDK and provider, bundled for a page on another origin, in a real browser. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { temporaryFolder } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { preparedFolder } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";
import { changeFlag, createOpenFeatureFlags } from "./project-flags.ts";

const versions = ["@openfeature/ofrep-web-provider@0.4.3", "@openfeature/web-sdk@1.10.0"];
const packages =
  chromiumPath &&
  preparedFolder("flagkeep-test-ofrep-web-0.4.3-1.10.0", [
    "npm",
    "install",
    "--no-audit",
    "--no-fund",
    "--prefix",
    ".",
    ...versions,
  ]);
const missing = chromiumPath === undefined ? "no Chromium here" : "no npm, or no network";
const browserTest = testWhen(packages !== undefined, "OpenFeature in a browser", missing);

/** What the page of the test does: the client is a global, and so is the number of changes that it reported. */
const pageScript = `
import { OpenFeature, ProviderEvents } from "@openfeature/web-sdk";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
const { url, token } = globalThis.server;
globalThis.changes = [];
OpenFeature.addHandler(ProviderEvents.ConfigurationChanged, (event) => globalThis.changes.push(...(event?.flagsChanged ?? [])));
globalThis.setContext = (context) => OpenFeature.setContext(context);
globalThis.ready = OpenFeature.setContext({ targetingKey: "ann" })
  .then(() => OpenFeature.setProviderAndWait(new OFREPWebProvider({ baseUrl: url, headers: [["Authorization", "Bearer " + token]] })))
  .then(() => { globalThis.client = OpenFeature.getClient(); });
`;

let browser: Browser;
let page: Page;
let ids: Record<string, number>;
let site: ReturnType<typeof Bun.serve>;
if (packages !== undefined) useServer();
beforeAll(async () => {
  if (packages === undefined) return;
  ids = await createOpenFeatureFlags(server);
  const script = await bundled(packages);
  const { url, token } = server;
  const html = `<!doctype html><script>globalThis.server = ${JSON.stringify({ url, token })};</script>
<script type="module" src="/page.js"></script>`;
  site = Bun.serve({
    hostname: "localhost",
    port: 0,
    fetch: (request) =>
      new URL(request.url).pathname === "/page.js"
        ? new Response(script, { headers: { "Content-Type": "text/javascript" } })
        : new Response(html, { headers: { "Content-Type": "text/html" } }),
  });
  browser = await startBrowser();
  page = await browser.newPage();
  await page.goto(site.url.href);
  await page.waitForFunction("globalThis.ready");
  await page.evaluate("ready");
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await site?.stop(true);
});

async function bundled(folder: string): Promise<string> {
  const entry = join(temporaryFolder(), "page.js");
  writeFileSync(entry, pageScript);
  const inPackages = (path: string) => Bun.resolveSync(path, folder);
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    plugins: [
      {
        name: "packages of the test",
        setup: (build) =>
          void build.onResolve({ filter: /^@openfeature\// }, ({ path }) => ({ path: inPackages(path) })),
      },
    ],
  });
  return await outputs[0]!.text();
}

const run = <Result>(code: string) => page.evaluate(code) as Promise<Result>;

describe("@openfeature/ofrep-web-provider", () => {
  browserTest("a page gets flags for clients, with values, reasons and metadata", async () => {
    expect(await run("client.getBooleanDetails('always', false)")).toMatchObject({
      value: true,
      variant: "true",
      reason: "STATIC",
      flagMetadata: { id: ids.always, payload: '{"color":"red","sizes":[1,2]}' },
    });
    expect(await run("client.getBooleanDetails('for-browsers', false)")).toMatchObject({ value: true });
    expect(await run("client.getBooleanDetails('for-servers', true)")).toMatchObject({
      value: true,
      errorCode: "FLAG_NOT_FOUND",
    });
    expect(await run("client.getBooleanDetails('pro-plan', true)")).toMatchObject({
      value: false,
      reason: "UNKNOWN",
    });
    expect(await run("client.getBooleanDetails('switched-off', true)")).toMatchObject({
      value: false,
      reason: "DISABLED",
    });
  });

  browserTest("another context is evaluated again", async () => {
    await page.evaluate("setContext({ targetingKey: 'ann', plan: 'pro' })");
    // The provider uses what it has in the browser's storage until the server has answered.
    await page.waitForFunction("client.getBooleanValue('pro-plan', false)");
    expect(await run("client.getBooleanDetails('pro-plan', false)")).toMatchObject({
      value: true,
      reason: "TARGETING_MATCH",
    });
  });

  browserTest("a change arrives by the event stream, without polling", async () => {
    await changeFlag(server, ids.never!, {
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
    await page.waitForFunction("client.getBooleanValue('never', false)", undefined, { timeout: 30_000 });
    expect(await run("changes")).toContain("never");
  });
});
