/** Assembles the HTTP application: all routes, probes, documentation. */

import { once } from "../lib/concurrency.ts";
import { version } from "../version.ts";
import { type BodyLimits, BodyReader } from "./body.ts";
import { docsPage } from "./docs-page.ts";
import type { EdgeApp } from "./edge.ts";
import type { Connection, EdgeDeps, OriginResolver, RegisteredPaths } from "./edge-deps.ts";
import type { ErrorLog } from "./error-mapping.ts";
import { openApiDocument } from "./openapi.ts";
import { prefixIn } from "./params.ts";
import { groupByPath } from "./paths.ts";
import { probeRoutes, type RoleReadiness } from "./probes.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { clientRoutes, publicRoute, type Route } from "./route.ts";
import { uiFilesProfile } from "./route-profile.ts";
import { RouteResponse } from "./route-response.ts";
import { object, record, string } from "./schemas.ts";

export interface AppDeps {
  guard: EdgeDeps["guard"];
  log: ErrorLog;
  /** All routes except probes and documentation. */
  routes: readonly Route[];
  /** Readiness per role; absent: everything is ready. */
  roles?: () => readonly RoleReadiness[];
  /** Warnings that readiness reports without failing; absent: none. */
  warnings?: () => readonly string[];
  limits?: BodyLimits;
  origins: OriginResolver;
  rateLimiter?: RateLimiter;
  /** Absent: single node. */
  shared?: EdgeDeps["shared"];
  onSeen?: EdgeDeps["onSeen"];
  onError?: EdgeDeps["onError"];
  /** Path of the page that browsers are redirected to from `/`; absent: no redirect. */
  homePage?: string;
  /** URL in the documentation; absent: the base path of the request. */
  publicUrl?: string;
  now?: () => Date;
}

/** Contract: ingestion 8, and the default of `--body-limit` and `--api-body-limit`. */
const defaultLimits: BodyLimits = {
  bytesMax: 20 * 1024 * 1024,
  apiBytesMax: 1024 * 1024,
  inFlightBytesMax: 256 * 1024 * 1024,
};
/** For requests without a connection, as in tests. */
const noConnection: Connection = { peer: () => undefined, allowSilence: () => undefined };

export interface App {
  /** Handles a request; never throws. */
  handle(request: Request): Promise<Response>;
  /** Sets where to look up the connection of a request. */
  connect(getConnection: (request: Request) => Connection): void;
}

/**
 * Assembles the application without listening.
 *
 * Tests call `app.handle(new Request("http://localhost/..."))`.
 */
export function createApp(deps: AppDeps): App {
  let getConnection = (_: Request) => noConnection;
  const edge: EdgeDeps = {
    guard: deps.guard,
    log: deps.log,
    origins: deps.origins,
    rateLimiter: deps.rateLimiter,
    shared: deps.shared,
    onSeen: deps.onSeen,
    onError: deps.onError,
    bodies: new BodyReader(deps.limits ?? defaultLimits),
    now: deps.now ?? (() => new Date()),
    getConnectionInfo: (request) => getConnection(request),
  };
  const served = [
    ...deps.routes,
    rootRoute(deps.homePage),
    ...probeRoutes(deps.roles ?? (() => []), deps.warnings ?? (() => [])),
  ];
  const paths = [...groupByPath([...served, ...documentationRoutes(served, deps.publicUrl)])];
  // A server that only receives events never composes the management API.
  const parts = [true, false].map((isManagement) => {
    const own = new Map(paths.filter(([path]) => path.startsWith(managementPrefix) === isManagement));
    return {
      open: once(() => getApplication(own, false, edge)),
      secure: once(() => getApplication(own, true, edge)),
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
      getConnection = known;
    },
  };
}

/** Covers the management API and few other paths. */
const managementPrefix = "/api/";

/** A set of paths: one application for plain connections, and one for TLS. */
interface Part {
  open: () => Promise<EdgeApp>;
  secure: () => Promise<EdgeApp>;
}

/** Elysia is loaded with the first request, so that the server listens sooner. */
async function getApplication(paths: RegisteredPaths, isSecure: boolean, deps: EdgeDeps): Promise<EdgeApp> {
  const { createEdge } = await import("./edge.ts");
  return createEdge(paths, isSecure, deps);
}

/** Entry points for clients that only know the server's URL. */
function rootRoute(homePage: string | undefined): Route {
  return clientRoutes(uiFilesProfile)("GET", "/", {
    summary: "Get the server's name and version",
    tag: "Documentation",
    answers: {
      200: {
        description: "Name, version and where the documentation is; browsers are sent to the console.",
        schema: object({ name: string(), version: string(), documentation: string() }),
        example: { name: "Flagkeep", version: "0.2.0", documentation: "/docs" },
      },
    },
    handle({ request, baseUrl }) {
      const headers = { Vary: "Accept", "Cache-Control": "no-store" };
      if (homePage !== undefined && /\btext\/html\b/.test(request.headers.get("accept") ?? "")) {
        return new RouteResponse(302, undefined, { ...headers, Location: prefixIn(baseUrl) + homePage });
      }
      const body = { name: "Flagkeep", version, documentation: `${baseUrl}/docs` };
      return new RouteResponse(200, body, headers);
    },
  });
}

/** Caches the string for the last prefix; few servers are reached by a second one. */
function getLast(write: (prefix: string) => string): (prefix: string) => string {
  let last: { prefix: string; text: string } | undefined;
  return (prefix) => {
    if (last?.prefix !== prefix) last = { prefix, text: write(prefix) };
    return last.text;
  };
}

/** The document is generated on the first request: most processes never need it. */
function documentationRoutes(described: readonly Route[], publicUrl: string | undefined): Route[] {
  const routes: Route[] = [];
  const getServer = (prefix: string) => publicUrl ?? (prefix || "/");
  const documentBelow = (prefix: string) => openApiDocument([...described, ...routes], getServer(prefix));
  const schemaText = getLast((prefix) => JSON.stringify(documentBelow(prefix)));
  const page = getLast((prefix) => docsPage(documentBelow(prefix), prefix));
  routes.push(
    publicRoute("GET", "/api/schema", {
      summary: "Get the OpenAPI 3.1 document",
      tag: "Documentation",
      answers: { 200: { description: "The document.", schema: record(), example: { openapi: "3.1.0" } } },
      handle: ({ baseUrl }) => RouteResponse.json(schemaText(prefixIn(baseUrl))),
    }),
    publicRoute("GET", "/docs", {
      summary: "Get this documentation as a page",
      tag: "Documentation",
      answers: { 200: { description: "HTML." } },
      handle: ({ baseUrl }) =>
        RouteResponse.create("text/html; charset=utf-8", page(prefixIn(baseUrl)), {
          "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        }),
    }),
  );
  return routes;
}
