/** Puts the HTTP side of the appliance together: plugins, management routes, probes, documentation. */

import { type AnyElysia, Elysia } from "elysia";
import { type DispatchDeps, requestIdOf, serveRoutes } from "./dispatch.ts";
import { docsPage } from "./docs-page.ts";
import { failureResponse } from "./errors.ts";
import { type DocumentedRoute, openApiDocument } from "./openapi.ts";
import { publicRoute, Reply, type Route } from "./route.ts";
import { dictionary, object, text } from "./shapes.ts";

export interface AppDeps extends Omit<DispatchDeps, "now"> {
  now?: () => Date;
  /** Routes as records: guarded, documented, with the management API's error answers. */
  routes: readonly Route[];
  /** Whole Elysia plugins, for routes with rules of their own (capture, flag evaluation). */
  plugins?: readonly AnyElysia[];
  /** What the documentation tells about the routes of the plugins. */
  documented?: readonly DocumentedRoute[];
  /** Whether requests can be served: stores open, engine started. */
  isReady: () => boolean;
}

const Probe = object({ status: text() });

/**
 * Assembles the application; it listens nowhere yet.
 *
 * Tests call `app.handle(new Request("http://localhost/..."))`: with a host of one letter Elysia finds no route.
 */
export function createApp(deps: AppDeps): Elysia {
  const dispatch: DispatchDeps = { ...deps, now: deps.now ?? (() => new Date()) };
  const served = [...deps.routes, ...probeRoutes(deps.isReady)];
  const routes = [...served, ...documentationRoutes([...served, ...(deps.documented ?? [])], deps.publicUrl)];
  // By itself Elysia looks for the path behind a host of usual length, and finds none behind `api` or `::1`.
  const app = new Elysia({ name: "flagkeep", handler: { standardHostname: false } }).onError(
    { as: "global" },
    ({ error, request }) =>
      failureResponse(error, { request, requestId: requestIdOf(request), log: deps.log }),
  );
  for (const plugin of deps.plugins ?? []) app.use(plugin);
  return app.use(serveRoutes(routes, dispatch)) as unknown as Elysia;
}

/** Probes for process supervisors and load balancers. */
function probeRoutes(isReady: () => boolean): Route[] {
  return [
    publicRoute("GET", "/_liveness", {
      summary: "Tell that the process answers",
      tag: "Probes",
      answers: { 200: { description: "Alive.", schema: Probe, example: { status: "alive" } } },
      handle: () => ({ status: "alive" }),
    }),
    publicRoute("GET", "/_readiness", {
      summary: "Tell whether requests can be served",
      tag: "Probes",
      answers: {
        200: { description: "Ready.", schema: Probe, example: { status: "ready" } },
        503: { description: "Still starting, or stopping.", schema: Probe, example: { status: "starting" } },
      },
      handle: () => (isReady() ? { status: "ready" } : new Reply(503, { status: "starting" })),
    }),
  ];
}

/** The document is written at the first request: most processes are never asked for it. */
function documentationRoutes(described: readonly DocumentedRoute[], publicUrl: string | undefined): Route[] {
  const routes: Route[] = [];
  const document = once(() => openApiDocument([...described, ...routes], publicUrl ?? "/"));
  const schemaText = once(() => JSON.stringify(document()));
  const page = once(() => docsPage(document()));
  routes.push(
    publicRoute("GET", "/api/schema", {
      summary: "Read this documentation as an OpenAPI 3.1 document",
      tag: "Documentation",
      answers: { 200: { description: "The document.", schema: dictionary(), example: { openapi: "3.1.0" } } },
      handle: () => new Response(schemaText(), { headers: { "Content-Type": "application/json" } }),
    }),
    publicRoute("GET", "/docs", {
      summary: "Read this documentation as a page",
      tag: "Documentation",
      answers: { 200: { description: "HTML." } },
      handle: () =>
        new Response(page(), {
          headers: {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
          },
        }),
    }),
  );
  return routes;
}

function once<Result>(make: () => Result): () => Result {
  let made: { result: Result } | undefined;
  return () => {
    made ??= { result: make() };
    return made.result;
  };
}
