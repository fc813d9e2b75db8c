/** Puts the HTTP side together: all routes, probes, documentation; finds the path of a request. */

import { once } from "../lib/once.ts";
import { version } from "../version.ts";
import { Bodies, type BodyLimits } from "./body.ts";
import { managementDialect, ownFilesDialect } from "./dialect.ts";
import { type DispatchDeps, noParams, pathsOf, serve } from "./dispatch.ts";
import { docsPage } from "./docs-page.ts";
import type { ErrorLog } from "./errors.ts";
import type { Connection, Places } from "./exchange.ts";
import { openApiDocument } from "./openapi.ts";
import { prefixIn } from "./path.ts";
import { probeRoutes, type RoleReadiness } from "./probes.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { Reply } from "./reply.ts";
import { clientRoutes, publicRoute, type Route } from "./route.ts";
import { dictionary, object, text } from "./shapes.ts";

export interface AppDeps {
  guard: DispatchDeps["guard"];
  log: ErrorLog;
  /** Everything that is served, except probes and documentation. */
  routes: readonly Route[];
  /** What can be served; absent: everything. */
  roles?: () => readonly RoleReadiness[];
  limits?: BodyLimits;
  places: Places;
  rateLimiter?: RateLimiter;
  /** Absent: this front is alone. */
  shared?: DispatchDeps["shared"];
  onSeen?: DispatchDeps["onSeen"];
  onError?: DispatchDeps["onError"];
  /** Path of the page that browsers are sent to from `/`; absent: there is none. */
  homePage?: string;
  /** Address in the documentation; absent: the path by which clients come. */
  publicUrl?: string;
  now?: () => Date;
}

/** Contract: ingestion 8, and the default of `--body-limit` and `--api-body-limit`. */
const defaultLimits: BodyLimits = {
  bytesMax: 20 * 1024 * 1024,
  apiBytesMax: 1024 * 1024,
  inFlightBytesMax: 256 * 1024 * 1024,
};
/** Of a request that came over no connection, as in tests. */
const noConnection: Connection = { peer: () => undefined, allowSilence: () => undefined };

/** The application: answers requests wherever they come from. */
export interface App {
  /** Answers a request; never throws. */
  handle(request: Request): Promise<Response>;
  /** Where requests come from, from now on. */
  connect(connectionOf: (request: Request) => Connection): void;
}

/**
 * Assembles the application; it listens nowhere yet.
 *
 * Tests call `app.handle(new Request("http://localhost/..."))`.
 */
export function createApp(deps: AppDeps): App {
  let connectionOf = (_: Request) => noConnection;
  const dispatch: DispatchDeps = {
    guard: deps.guard,
    log: deps.log,
    places: deps.places,
    rateLimiter: deps.rateLimiter,
    shared: deps.shared,
    onSeen: deps.onSeen,
    onError: deps.onError,
    bodies: new Bodies(deps.limits ?? defaultLimits),
    now: deps.now ?? (() => new Date()),
    connectionOf: (request) => connectionOf(request),
  };
  const served = [...deps.routes, rootRoute(deps.homePage), ...probeRoutes(deps.roles ?? (() => []))];
  const routes = [...served, ...documentationRoutes(served, deps.publicUrl)];
  const { exact, others } = pathsOf(routes);
  const nowhere = { path: "other", dialect: managementDialect, methods: new Map() };
  // Loaded with the first path that has a place for an id: what SDKs send and ask for most has none.
  const routerFor = async (isSecure: boolean) =>
    (await import("./router.ts")).routerOf(others, nowhere, isSecure, dispatch);
  const router = once(() => routerFor(false));
  const secureRouter = once(() => routerFor(true));
  return {
    async handle(request) {
      const served = exact.get(pathnameOf(request.url));
      if (served !== undefined) return await serve(served, request, noParams, dispatch);
      const found = await (request.url.startsWith("https:") ? secureRouter() : router());
      return await found.fetch(request);
    },
    connect(known) {
      connectionOf = known;
    },
  };
}

/** The path of an absolute address, as it is written there. */
function pathnameOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.indexOf("?", start);
  return end === -1 ? url.slice(start) : url.slice(start, end);
}

/** What somebody meets who knows nothing but the address. */
function rootRoute(homePage: string | undefined): Route {
  return clientRoutes(ownFilesDialect)("GET", "/", {
    summary: "Tell what this server is",
    tag: "Documentation",
    answers: {
      200: {
        description: "Name, version and where the documentation is; browsers are sent to the console.",
        schema: object({ name: text(), version: text(), documentation: text() }),
        example: { name: "Flagkeep", version: "0.1.0", documentation: "/docs" },
      },
    },
    handle({ request, baseUrl }) {
      const headers = { Vary: "Accept", "Cache-Control": "no-store" };
      if (homePage !== undefined && /\btext\/html\b/.test(request.headers.get("accept") ?? "")) {
        return new Reply(302, undefined, { ...headers, Location: prefixIn(baseUrl) + homePage });
      }
      const body = { name: "Flagkeep", version, documentation: `${baseUrl}/docs` };
      return new Reply(200, body, headers);
    },
  });
}

/** Writes a text once for clients that come by one way; few servers have a second. */
function lastOf(write: (prefix: string) => string): (prefix: string) => string {
  let last: { prefix: string; text: string } | undefined;
  return (prefix) => {
    if (last?.prefix !== prefix) last = { prefix, text: write(prefix) };
    return last.text;
  };
}

/** The document is written at the first request: most processes are never asked for it. */
function documentationRoutes(described: readonly Route[], publicUrl: string | undefined): Route[] {
  const routes: Route[] = [];
  const serverOf = (prefix: string) => publicUrl ?? (prefix || "/");
  const documentBelow = (prefix: string) => openApiDocument([...described, ...routes], serverOf(prefix));
  const schemaText = lastOf((prefix) => JSON.stringify(documentBelow(prefix)));
  const page = lastOf((prefix) => docsPage(documentBelow(prefix), prefix));
  routes.push(
    publicRoute("GET", "/api/schema", {
      summary: "Read this documentation as an OpenAPI 3.1 document",
      tag: "Documentation",
      answers: { 200: { description: "The document.", schema: dictionary(), example: { openapi: "3.1.0" } } },
      handle: ({ baseUrl }) => Reply.json(schemaText(prefixIn(baseUrl))),
    }),
    publicRoute("GET", "/docs", {
      summary: "Read this documentation as a page",
      tag: "Documentation",
      answers: { 200: { description: "HTML." } },
      handle: ({ baseUrl }) =>
        Reply.of("text/html; charset=utf-8", page(prefixIn(baseUrl)), {
          "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        }),
    }),
  );
  return routes;
}
