/** What client libraries fetch beside flags: configuration, library files, empty lists. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import packageJson from "posthog-js/package.json";
import { clientConfig, TestEvaluation } from "../support.ts";

let server: TestEvaluation;
beforeAll(() => {
  server = new TestEvaluation();
});
afterAll(() => server[Symbol.dispose]());

const origin = "https://shop.example";
const get = (path: string, headers: Record<string, string> = {}) =>
  server.send(path.replace(":token", server.token), { method: "GET", headers: { origin, ...headers } });
const libraryText = (name: string) => readFileSync(`node_modules/posthog-js/dist/${name}`, "utf8");

describe("client configuration", () => {
  for (const path of ["/array/:token/config", "/array/:token/config/", "/array/:token/config?ip=0&_=1"]) {
    test(path, async () => {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      const age = Number(/^public, max-age=(\d+)$/.exec(response.headers.get("cache-control")!)?.[1]);
      expect(age).toBeGreaterThanOrEqual(60);
      expect(age).toBeLessThanOrEqual(300);
      const body = (await response.json()) as Record<string, unknown>;
      expect(body).toMatchObject({ token: server.token, ...clientConfig });
      expect(body.hasFeatureFlags).toBe(true);
      expect(body).toHaveProperty("autocapture_opt_out", false);
    });
  }

  test("as a script it keeps what other projects have set", async () => {
    const response = await get("/array/:token/config.js");
    expect(response.headers.get("content-type")).toContain("javascript");
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    const script = await response.text();
    for (const before of [undefined, { phc_other: { config: { a: 1 }, siteApps: [] } }]) {
      const window = { _POSTHOG_REMOTE_CONFIG: before as Record<string, unknown> | undefined };
      new Function("window", script)(window);
      expect(window._POSTHOG_REMOTE_CONFIG).toEqual({
        ...before,
        [server.token]: {
          config: expect.objectContaining({ token: server.token, ...clientConfig }),
          siteApps: [],
        },
      });
    }
  });

  test("an unchanged one costs a 304, for weak and strong forms of its tag", async () => {
    for (const path of ["/array/:token/config", "/array/:token/config.js"]) {
      const etag = (await get(path)).headers.get("etag")!;
      expect(etag).toMatch(/^(W\/)?"[^"]+"$/);
      for (const tag of [etag, etag.replace("W/", "")]) {
        const again = await get(path, { "if-none-match": tag });
        expect([again.status, await again.text()]).toEqual([304, ""]);
        expect(again.headers.get("access-control-allow-origin")).toBe(origin);
      }
      expect((await get(path, { "if-none-match": '"other"' })).status).toBe(200);
    }
  });

  test("of an unknown project: 404 that a page may read", async () => {
    for (const path of ["config", "config/", "config.js", "array.js"]) {
      const response = await get(`/array/phc_nobody/${path}`);
      expect(response.status).toBe(404);
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      expect(response.headers.get("content-type")).not.toContain("html");
    }
  });
});

describe("the browser library", () => {
  const { version } = packageJson;
  const files: [path: string, name: string][] = [
    ["/static/array.js", "array.js"],
    ["/static/array.full.js", "array.full.js"],
    ["/array/:token/array.js", "array.js"],
    [`/static/${version}/array.js`, "array.js"],
    ["/static/1/array.js", "array.js"],
    ...[
      "surveys",
      "posthog-recorder",
      "lazy-recorder",
      "recorder",
      "exception-autocapture",
      "web-vitals",
      "web-vitals-with-attribution",
      "dead-clicks-autocapture",
      "product-tours",
      "tracing-headers",
      "conversations",
      "logs",
      "loader",
      "loader-bootstrap",
    ].flatMap((kind): [string, string][] => [
      [`/static/${kind}.js?v=${version}`, `${kind}.js`],
      [`/static/${version}/${kind}.js`, `${kind}.js`],
      [`/static/1.449.2/${kind}.js`, `${kind}.js`],
    ]),
  ];
  for (const [path, name] of files) {
    test(path, async () => {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toContain("javascript");
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      expect(await response.text()).toBe(libraryText(name));
    });
  }

  test("is compressed for clients that accept it", async () => {
    const packed = await get("/static/array.js", { "accept-encoding": "br, gzip" });
    expect(packed.headers.get("content-encoding")).toBe("gzip");
    expect(packed.headers.get("vary")).toContain("Accept-Encoding");
    expect(gunzipSync(await packed.bytes()).toString()).toBe(libraryText("array.js"));
    const plain = await get("/static/array.js", { "accept-encoding": "br, gzip;q=0" });
    expect(plain.headers.get("content-encoding")).toBeNull();
  });

  test("has a tag, and is kept for long only under its own version", async () => {
    const response = await get("/static/array.js");
    const etag = response.headers.get("etag")!;
    expect((await get("/static/array.js", { "if-none-match": etag })).status).toBe(304);
    const age = async (path: string) =>
      Number(/max-age=(\d+)/.exec((await get(path)).headers.get("cache-control")!)![1]);
    expect(await age("/static/array.js")).toBeLessThanOrEqual(3_600);
    expect(await age("/static/1.0.0/surveys.js")).toBeLessThanOrEqual(3_600);
    expect(await age("/static/1/surveys.js")).toBeLessThanOrEqual(3_600);
    expect(await age(`/static/${version}/surveys.js`)).toBeGreaterThan(86_400);
  });

  for (const path of [
    "/static/toolbar.js",
    "/static/nothing.js",
    "/static/",
    "/static/constructor",
    "/static/x/array.js",
    "/static/1./array.js",
    "/static/1.2.3/4/array.js",
    "/static/1.2.3/..%2f..%2fpackage.json",
    "/static/array.js/",
  ]) {
    test(`${path}: a plain 404, never a page`, async () => {
      const response = await get(path);
      expect(response.status).toBe(404);
      expect(response.headers.get("content-type")).toStartWith("text/plain");
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    });
  }

  test("includes its license", async () => {
    const response = await get("/static/LICENSE.txt");
    expect(response.headers.get("content-type")).toStartWith("text/plain");
    expect(await response.text()).toBe(readFileSync("node_modules/posthog-js/LICENSE", "utf8"));
  });
});

describe("features that are not offered here", () => {
  const lists: [path: string, body: object][] = [["/api/product_tours", { product_tours: [] }]];
  for (const [path, body] of lists) {
    test(path, async () => {
      for (const spelling of [path, `${path}/`, `${path}/?token=${server.token}&_=17`]) {
        const response = await get(spelling);
        expect(response.status).toBe(200);
        expect(response.headers.get("access-control-allow-origin")).toBe(origin);
        expect(await response.json()).toEqual(body);
      }
    });
  }
});

describe("methods", () => {
  for (const path of ["/array/:token/config", "/static/array.js", "/api/product_tours/"]) {
    test(path, async () => {
      const ask = (method: string, headers: Record<string, string> = {}) =>
        server.send(path.replace(":token", server.token), { method, headers: { origin, ...headers } });
      const head = await ask("HEAD");
      expect([head.status, await head.text()]).toEqual([200, ""]);
      const question = await ask("OPTIONS", {
        "access-control-request-method": "GET",
        "access-control-request-headers": "x-posthog-anything",
      });
      expect(question.status).toBe(204);
      expect(question.headers.get("access-control-allow-headers")).toBe("x-posthog-anything");
      expect((await ask("DELETE")).status).toBe(405);
    });
  }
});
