/** The page's files: where they are found, how they are sent, under which policy, how large they are. */

import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { ServerProcess } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const firstPageMax = 65_000;
const allMax = 340_000;
/** What pages may add to the ones before them. */
const addedMax = { overview: 40_000, explore: 30_000, sql: 120_000 };

useServer();

const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(`${server.url}${path}`, { method, headers, redirect: "manual", decompress: false });

async function getFiles(html: string): Promise<string[]> {
  return [...html.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)].map(([, path]) => path!);
}

/** Every file that scripts name, too: parts that load late. */
async function allFiles(html: string): Promise<string[]> {
  const known = new Set(await getFiles(html));
  for (const path of known) {
    if (!path.endsWith(".js")) continue;
    const text = await (await get(path)).text();
    for (const [, name] of text.matchAll(/"(?:\.\/|\/console\/a\/)([\w.-]+\.(?:js|css|svg))"/g)) {
      known.add(`/console/a/${name}`);
    }
  }
  return [...known];
}

const gzipped = async (path: string) =>
  (await (await get(path, { "Accept-Encoding": "gzip" })).bytes()).length;

test("the page is under the policy, and every path under /console/ is the page", async () => {
  for (const path of ["/console/", "/console/flags", "/console/shared", "/console/no/such/page"]) {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    expect(answer.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; frame-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(answer.headers.get("x-robots-tag")).toBe("noindex, nofollow");
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    const html = await answer.text();
    expect(html).not.toMatch(/style=|<style|<script>|<script (?!.*src=)/);
  }
});

test("the preview of surveys has no origin, and runs no scripts but its own", async () => {
  const answer = await get("/console/survey-preview");
  const policy = answer.headers.get("content-security-policy")!.split("; ");
  for (const rule of [
    "sandbox allow-scripts",
    "default-src 'none'",
    "script-src 'self'",
    "frame-ancestors 'self'",
  ])
    expect(policy).toContain(rule);
  expect(await answer.text()).toMatch(/<script src="\/console\/a\/survey-frame-/);
});

test("a browser at the root is redirected to the console; other clients get a description", async () => {
  const browser = await get("/", { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
  expect(browser.status).toBe(302);
  expect(browser.headers.get("location")).toBe("/console/");
  for (const accept of ["*/*", "application/json"]) {
    const other = await get("/", { Accept: accept });
    expect(other.status).toBe(200);
    expect(await other.json()).toMatchObject({
      name: "Flagkeep",
      documentation: expect.stringMatching(/\/docs$/),
    });
  }
  const bare = await get("/console");
  expect([bare.status, bare.headers.get("location")]).toEqual([302, "/console/"]);
});

test("files are compressed beforehand, never change, and unknown ones are not found", async () => {
  const html = await (await get("/console/")).text();
  const files = await getFiles(html);
  expect(files.some((path) => path.endsWith(".css"))).toBe(true);
  expect(files.some((path) => path.endsWith(".svg"))).toBe(true);
  for (const path of files) {
    const plain = await get(path);
    expect(plain.status).toBe(200);
    expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(plain.headers.get("vary")).toBe("Accept-Encoding");
    const bytes = await plain.bytes();
    const gzip = await get(path, { "Accept-Encoding": "gzip, deflate" });
    expect(gzip.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(await gzip.bytes()).equals(bytes)).toBe(true);
    const brotli = await get(path, { "Accept-Encoding": "gzip, br" });
    expect(brotli.headers.get("content-encoding")).toBe("br");
    const rejected = await get(path, { "Accept-Encoding": "br;q=0, gzip;q=0" });
    expect(rejected.headers.get("content-encoding")).toBeNull();
    const again = await get(path, { "If-None-Match": plain.headers.get("etag")! });
    expect(again.status).toBe(304);
    const head = await get(path, {}, "HEAD");
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(bytes.length)]);
  }
  for (const path of ["/console/a/nothing.js", "/console/a/", "/console/a/../index.html%00"]) {
    expect((await get(path)).status, path).not.toBe(500);
  }
  expect((await get("/console/a/nothing.js")).status).toBe(404);
  expect((await get("/console/", {}, "POST")).status).toBe(405);
});

test("the first page and all of it stay small", async () => {
  const html = await (await get("/console/")).text();
  const sum = async (paths: string[]) =>
    (await Promise.all(paths.map(gzipped))).reduce((total, size) => total + size, 0);
  const first = (await gzipped("/console/")) + (await sum(await getFiles(html)));
  const all = await sum(await allFiles(html));
  console.log(`console: first page ${first} bytes, all ${all} bytes (gzip)`);
  expect(first).toBeLessThanOrEqual(firstPageMax);
  expect(all).toBeLessThanOrEqual(allMax);
});

test("what Overview, Explore and SQL load in addition stays small", async () => {
  const html = await (await get("/console/")).text();
  const known = new Set<string>();
  /** The scripts that these import and that no page before has loaded. */
  const added = async (paths: readonly string[]) => {
    const found = paths.filter((path) => !known.has(path));
    for (const path of found) {
      known.add(path);
      const script = await (await get(path)).text();
      const imported = [...script.matchAll(/from"(\/console\/a\/[\w.-]+\.js)"/g)].map(([, other]) => other!);
      found.push(...imported.filter((other) => !known.has(other) && !found.includes(other)));
    }
    return found;
  };
  const first = await added((await getFiles(html)).filter((path) => path.endsWith(".js")));
  const scripts = (await Promise.all(first.map(async (path) => (await get(path)).text()))).join("");
  for (const [name, max] of Object.entries(addedMax)) {
    const entry = new RegExp(`/console/a/${name}-\\w+\\.js`).exec(scripts)![0];
    const sizes = await Promise.all((await added([entry])).map(gzipped));
    const bytes = sizes.reduce((total, size) => total + size, 0);
    console.log(`console: ${name} adds ${bytes} bytes (gzip)`);
    expect(bytes).toBeGreaterThan(2_000);
    expect(bytes).toBeLessThanOrEqual(max);
  }
});

test("it can be switched off", async () => {
  await using without = await ServerProcess.start({ args: ["--console", "off"] });
  for (const path of ["/console/", "/console", "/console/a/x.js"]) {
    expect((await fetch(`${without.url}${path}`)).status).toBe(404);
  }
  const root = await fetch(`${without.url}/`, { headers: { Accept: "text/html" } });
  expect([root.status, root.headers.get("content-type")]).toEqual([200, "application/json"]);
});
