/** What a new version of Elysia, another build or another way of listening would break. */

import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../package.json";
import { createApp } from "../../src/http/app.ts";
import { createEdge } from "../../src/http/edge.ts";
import type { CompletedRequest, EdgeDeps } from "../../src/http/edge-deps.ts";
import { groupByPath } from "../../src/http/paths.ts";
import { publicRoute } from "../../src/http/route.ts";
import { listen } from "../../src/http/server.ts";
import { TrustedProxies } from "../../src/http/trusted-proxies.ts";
import { TestServer } from "../support/management-server.ts";
import { executable } from "../support/server.ts";

const openRoute = (path: string, handle: () => unknown) =>
  publicRoute("GET", path, { summary: "Test", tag: "Test", answers: {}, handle });

function appWith(onSeen: (seen: CompletedRequest) => void) {
  return createApp({
    guard: { authorize: () => ({ parts: {}, isConfirmed: true }) } as never,
    log: { error: () => undefined },
    routes: [openRoute("/api/open", () => ({ is: "open" }))],
    origins: new TrustedProxies([]),
    onSeen,
  });
}

test("the executable keeps the names of functions: from their source Elysia infers what they use", async () => {
  for (const name of ["createLifecycle", "responseValue", "exchange"])
    expect(await Bun.spawn(["grep", "-qa", name, executable]).exited, name).toBe(0);
  // A name that minification would shorten: a function's own parameter.
  expect(await Bun.spawn(["grep", "-qa", "createLifecycle(isSecure,deps)", executable]).exited).toBe(0);
});

test("every response passes the hooks: no handler is a value, and Bun serves no routes of its own", async () => {
  using server = new TestServer();
  const edge = createEdge(groupByPath(server.routes), false, {} as EdgeDeps);
  const AsyncFunction = (async () => undefined).constructor;
  for (const { method, path, handler } of edge.routes)
    expect([method, path, handler instanceof AsyncFunction]).toEqual([method, path, true]);
  const serve = spyOn(Bun, "serve");
  const listening = listen(server.app, { hostname: "127.0.0.1", port: 0, bodyBytesMax: 1024 });
  try {
    const [options] = serve.mock.calls[0] as unknown as [Record<string, unknown>];
    expect(["routes", "static"].filter((name) => name in options)).toEqual([]);
    const headers = { "X-Request-Id": "r1" };
    for (const path of ["/", "/docs", "/api/schema", "/_liveness", "/nothing"])
      expect((await fetch(new URL(path, listening.url), { headers })).headers.get("x-request-id")).toBe("r1");
  } finally {
    serve.mockRestore();
    await listening.stop(true);
  }
});

test("the application carries no stores: Elysia merges their members at each plugin", () => {
  const { decorator, store } = createEdge(new Map(), false, {} as EdgeDeps);
  expect(decorator).toEqual({ exchange: undefined } as never);
  expect(store).toEqual({});
});

test("early failures have the request's context, too", async () => {
  const seen: string[] = [];
  const app = appWith(({ requestId, route, status }) => seen.push(`${requestId} ${route} ${status}`));
  const headers = { "X-Request-Id": "r2", Origin: "https://example.com" };
  for (const [method, path] of [
    ["GET", "/api/nothing"],
    ["PROPFIND", "/api/nothing"],
    ["POST", "/api/open"],
  ] as const) {
    const response = await app.handle(new Request(`http://localhost${path}`, { method, headers }));
    expect([path, response.headers.get("x-request-id")]).toEqual([path, "r2"]);
    expect(await response.json()).toMatchObject({ type: "invalid_request" });
  }
  expect(seen).toEqual(["r2 other 404", "r2 other 404", "r2 /api/open 405"]);
});

test("a request is recorded before its response: nothing is scheduled after it", async () => {
  const seen: number[] = [];
  const app = appWith(({ status }) => seen.push(status));
  const scheduled = spyOn(globalThis, "setImmediate");
  try {
    expect((await app.handle(new Request("http://localhost/api/open"))).status).toBe(200);
    expect(seen).toEqual([200]);
    expect(scheduled).not.toHaveBeenCalled();
  } finally {
    scheduled.mockRestore();
  }
});

test("Elysia has an exact version, and that one is installed", async () => {
  expect(packageJson.dependencies.elysia).toMatch(/^\d+\.\d+\.\d+$/);
  const installed = await Bun.file(join(import.meta.dir, "../../node_modules/elysia/package.json")).json();
  expect(installed.version).toBe(packageJson.dependencies.elysia);
});
