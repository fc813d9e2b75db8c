/** Assembles the HTTP application: all routes, probes, documentation. */

import { once } from "../lib/once.ts";
import { version } from "../version.ts";
import { Bodies, type BodyLimits } from "./body.ts";
import { ownFilesDialect } from "./dialect.ts";
import { docsPage } from "./docs-page.ts";
import type { EdgeApp } from "./edge.ts";
import type { Connection, EdgeDeps, Places, RegisteredPaths } from "./edge-deps.ts";
import type { ErrorLog } from "./errors.ts";
import { openApiDocument } from "./openapi.ts";
import { prefixIn } from "./path.ts";
import { groupByPath } from "./paths.ts";
import { probeRoutes, type RoleReadiness } from "./probes.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { Reply } from "./reply.ts";
import { clientRoutes, publicRoute, type Route } from "./route.ts";
import { dictionary, object, text } from "./shapes.ts";

export interface AppDeps {
  guard: EdgeDeps["guard"];
  log: ErrorLog;
  /** Everything that is served, except probes and documentation. */
  routes: readonly Route[];
  /** What can be served; absent: everything. */
  roles?: () => readonly RoleReadiness[];
  limits?: BodyLimits;
  places: Places;
  rateLimiter?: RateLimiter;
  /** Absent: this front is alone. */
  shared?: EdgeDeps["shared"];
  onSeen?: EdgeDeps["onSeen"];
  onError?: EdgeDeps["onError"];
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
  const edge: EdgeDeps = {
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
  const paths = [...groupByPath([...served, ...documentationRoutes(served, deps.publicUrl)])];
  // A server that only receives events never composes the management API.
  const parts = [true, false].map((isManagement) => {
    const own = new Map(paths.filter(([path]) => path.startsWith(managementPrefix) === isManagement));
    return {
      open: once(() => applicationOf(own, false, edge)),
      secure: once(() => applicationOf(own, true, edge)),
    };
  });
  const [management, client] = parts as [Part, Part];
  return {
    async handle(request) {
      const { url } = request;
      const part = url.startsWith(managementPrefix, url.indexOf("/", url.indexOf("//") + 2))
        ? management
        : client;
      const application = await (url.startsWith("https:") ? part.secure() : part.open());
      return await application.fetch(request);
    },
    connect(known) {
      connectionOf = known;
    },
  };
}

/** Of all paths of the management API, and of few others. */
const managementPrefix = "/api/";

/** One part of the paths: an application for plain connections, and one for TLS. */
interface Part {
  open: () => Promise<EdgeApp>;
  secure: () => Promise<EdgeApp>;
}

/** Elysia is loaded with the first request, so that the server listens sooner. */
async function applicationOf(paths: RegisteredPaths, isSecure: boolean, deps: EdgeDeps): Promise<EdgeApp> {
  const { createEdge } = await import("./edge.ts");
  return createEdge(paths, isSecure, deps);
}

/** What somebody meets who knows nothing but the address. */
function rootRoute(homePage: string | undefined): Route {
  return clientRoutes(ownFilesDialect)("GET", "/", {
    summary: "Get the server's name and version",
    tag: "Documentation",
    answers: {
      200: {
        description: "Name, version and where the documentation is; browsers are sent to the console.",
        schema: object({ name: text(), version: text(), documentation: text() }),
        example: { name: "Flagkeep", version: "0.2.0", documentation: "/docs" },
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
      summary: "Get the OpenAPI 3.1 document",
      tag: "Documentation",
      answers: { 200: { description: "The document.", schema: dictionary(), example: { openapi: "3.1.0" } } },
      handle: ({ baseUrl }) => Reply.json(schemaText(prefixIn(baseUrl))),
    }),
    publicRoute("GET", "/docs", {
      summary: "Get this documentation as a page",
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
