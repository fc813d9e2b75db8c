/** What Elysia would do otherwise: each test is a property that a new version of it, or a careless route, could break. */

import { expect, test } from "bun:test";
import { createEdge } from "../../src/http/edge.ts";
import type { EdgeDeps } from "../../src/http/edge-deps.ts";
import { groupByPath } from "../../src/http/paths.ts";
import { publicRoute, RouteResponse } from "../../src/http/route.ts";
import { managementProfile } from "../../src/http/route-profile.ts";
import { TestServer } from "../support/management-server.ts";

const spec = (handle: () => unknown) => ({ summary: "Test", tag: "Test", answers: {}, handle });
const json = { "Content-Type": "application/json" };

function serverWith(...routes: ReturnType<typeof publicRoute>[]) {
  return new TestServer({ routes });
}

async function send(server: TestServer, method: string, path: string, init: RequestInit = {}) {
  return await server.app.handle(new Request(`http://localhost${path}`, { method, ...init }));
}

test("all routes compose: one that does not would end the process at its first request", () => {
  using server = new TestServer();
  const app = createEdge(groupByPath(server.routes), false, {} as EdgeDeps);
  expect(app.routes.length).toBeGreaterThan(400);
  for (const route of app.routes) expect(route.compile()).toBeFunction();
  // Otherwise Elysia parses cookies, headers, query and body of each request.
  const { inference } = app as unknown as { inference: Record<string, boolean> };
  expect(Object.keys(inference).filter((name) => inference[name])).toEqual(["set"]);
});

test("HEAD of an endless stream ends, has no body and does not claim an empty one", async () => {
  let isCancelled = false;
  const stream = () =>
    new Response(
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(10)),
        cancel: () => {
          isCancelled = true;
        },
      }),
      { headers: { "Content-Type": "text/event-stream" } },
    );
  using server = serverWith(publicRoute("GET", "/api/stream", spec(stream)));
  const response = await send(server, "HEAD", "/api/stream");
  expect([response.status, await response.text(), response.headers.get("content-length")]).toEqual([
    200,
    "",
    null,
  ]);
  expect(isCancelled).toBe(true);
});

test("a handler that returns a promise is awaited, however its source is written", async () => {
  const slow = () => Promise.resolve({ is: "awaited" });
  using server = serverWith(
    publicRoute(
      "GET",
      "/api/slow",
      spec(() => (slow ? slow() : 1)),
    ),
  );
  expect(await (await send(server, "GET", "/api/slow")).json()).toEqual({ is: "awaited" });
});

test("a path returns 405 instead of using a less exact path that has the method", async () => {
  using server = serverWith(
    publicRoute(
      "POST",
      "/api/things/explain",
      spec(() => "exact"),
    ),
    publicRoute(
      "GET",
      "/api/things/:id",
      spec(() => "any"),
    ),
    publicRoute(
      "DELETE",
      "/api/things/*",
      spec(() => "below"),
    ),
  );
  const allowed = async (method: string, path: string) => {
    const response = await send(server, method, path, { headers: json });
    return `${response.status} ${response.headers.get("allow") ?? ""}`.trim();
  };
  for (const path of ["/api/things/explain", "/api/things/explain/"]) {
    expect(await allowed("GET", path)).toBe("405 POST, OPTIONS");
    expect(await allowed("HEAD", path)).toBe("405 POST, OPTIONS");
    expect(await allowed("DELETE", path)).toBe("405 POST, OPTIONS");
    expect(await allowed("POST", path)).toBe("200");
  }
  expect(await allowed("DELETE", "/api/things/7")).toBe("405 GET, HEAD, OPTIONS");
  expect(await allowed("DELETE", "/api/things/7/x")).toBe("200");
  expect(await allowed("PROPFIND", "/api/things/7")).toBe("405 GET, HEAD, OPTIONS");
});

test("whatever a handler throws is the contract's 500, with its request id", async () => {
  for (const thrown of [undefined, null, "text", 5, { code: "NOT_FOUND" }, { status: 418 }, new Error("x")]) {
    const fail = () => {
      throw thrown;
    };
    using server = serverWith(publicRoute("GET", "/api/fail", spec(fail)));
    const response = await send(server, "GET", "/api/fail", { headers: { "X-Request-Id": "r1" } });
    expect([response.status, response.headers.get("x-request-id")]).toEqual([500, "r1"]);
    expect(await response.json()).toMatchObject({ code: "error", extra: { request_id: "r1" } });
  }
});

test("a response after an error keeps its own status and headers", async () => {
  const reply = () => new RouteResponse(202, { a: 1 }, { "X-Own": "1" });
  using server = serverWith(publicRoute("GET", "/api/reply", spec(reply)));
  const response = await send(server, "GET", "/api/reply/");
  expect([response.status, response.headers.get("x-own")]).toEqual([202, "1"]);
  expect((await send(server, "GET", "/api/nothing")).status).toBe(404);
});

test("a parameter that is not valid text names no record", async () => {
  using server = new TestServer();
  const headers = { Authorization: `Bearer ${server.first.personal_api_key}` };
  expect((await send(server, "GET", "/api/projects/1/feature_flags/%ff/", { headers })).status).toBe(404);
});

test("two routes cannot share a method and a path", () => {
  const route = publicRoute(
    "GET",
    "/api/twice",
    spec(() => 1),
  );
  expect(() => groupByPath([route, route])).toThrow("GET /api/twice is registered twice.");
  const other = {
    ...publicRoute(
      "POST",
      "/api/twice",
      spec(() => 1),
    ),
    profile: { ...managementProfile },
  };
  expect(() => groupByPath([route, other])).toThrow("/api/twice has two route profiles.");
});
