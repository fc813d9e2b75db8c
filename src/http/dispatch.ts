/**
 * Serves route records through Elysia: one Elysia route per path, so that the most exact path is chosen
 * before the method, and a path that exists answers 405 and never the route of a sibling.
 */

import { Elysia } from "elysia";
import type { Metadata } from "../accounts/metadata.ts";
import type { Scope } from "../accounts/scopes.ts";
import { confirmedUntil } from "../accounts/sessions/sessions.ts";
import { forCaller } from "../lib/caller.ts";
import { allowOrigin, isPreflight, preflightResponse } from "./api-cors.ts";
import { type Access, type Authorised, authorise, type Credentials, identify } from "./auth.ts";
import { readBody } from "./body.ts";
import { ClientAddresses } from "./decode/client-ip.ts";
import { type ErrorLog, failureResponse } from "./errors.ts";
import { confirmationRequired, methodNotAllowed } from "./failure.ts";
import { parseFields } from "./fields.ts";
import { Query } from "./query.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { type Call, type Method, Reply, type Route } from "./route.ts";

export interface DispatchDeps {
  metadata: Metadata;
  log: ErrorLog;
  /** Absent: no limits. */
  rateLimiter?: RateLimiter;
  /** Where clients reach this server; absent: what the request says. */
  publicUrl?: string;
  /** Proxies whose word counts on where a request comes from; none when absent. */
  trustedProxies?: readonly string[];
  now: () => Date;
}

const requestIdForm = /^[\x21-\x7e]{1,128}$/;

/** The id of a request: the client's, when it is short and printable, else a new one. */
export function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && requestIdForm.test(given) ? given : Bun.randomUUIDv7();
}

/** An Elysia plugin that serves the routes, with and without a slash at the end. */
export function serveRoutes(routes: readonly Route[], deps: DispatchDeps): Elysia {
  const byPath = new Map<string, Map<Method, Route>>();
  for (const route of routes) {
    for (const path of [route.path, ...route.aliases]) {
      const methods = byPath.get(path) ?? new Map<Method, Route>();
      if (methods.has(route.method)) throw new Error(`${route.method} ${path} is registered twice.`);
      byPath.set(path, methods.set(route.method, route));
    }
  }
  const addresses = new ClientAddresses(deps.trustedProxies ?? []);
  const plugin = new Elysia({ name: "management" });
  for (const [path, methods] of byPath) {
    const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
    plugin.all(
      numbered(path),
      ({ request, params, server }) => {
        const address = addresses.find(server?.requestIP(request)?.address, () =>
          request.headers.get("x-forwarded-for"),
        );
        return forCaller(request.signal, () =>
          serve(methods, request, renamed(params, names), address, deps),
        );
      },
      { parse: "none" },
    );
  }
  return plugin as unknown as Elysia;
}

/** The router wants one name per place, while routes call the same place `id` and `feature_flag_id`. */
function numbered(path: string): string {
  let place = 0;
  return path.replace(/:\w+/g, () => `:p${place++}`);
}

function renamed(params: Record<string, string | undefined>, names: readonly string[]) {
  return Object.fromEntries(names.map((name, place) => [name, params[`p${place}`]]));
}

async function serve(
  methods: ReadonlyMap<Method, Route>,
  request: Request,
  params: Record<string, string | undefined>,
  address: string | undefined,
  deps: DispatchDeps,
): Promise<Response> {
  const requestId = requestIdOf(request);
  let response: Response;
  try {
    response = isPreflight(request)
      ? preflightResponse(request)
      : await answer(methods, request, params, { requestId, address }, deps);
  } catch (error) {
    response = failureResponse(error, { request, requestId, log: deps.log });
  }
  if (request.method === "HEAD") response = new Response(null, response);
  response.headers.set("X-Request-Id", requestId);
  allowOrigin(request, response);
  return response;
}

async function answer(
  methods: ReadonlyMap<Method, Route>,
  request: Request,
  params: Record<string, string | undefined>,
  from: { requestId: string; address: string | undefined },
  deps: DispatchDeps,
): Promise<Response> {
  const requested = new URL(request.url);
  const query = new Query(requested.search);
  const now = deps.now();
  const credentials: Credentials = { request, params, query, now, publicUrl: deps.publicUrl };
  const method = request.method === "HEAD" ? "GET" : request.method;
  const route = methods.get(method as Method);
  if (!route) return answerOther(methods, credentials, deps);
  const authorised = authorise(deps.metadata, route.access, credentials);
  const { caller } = authorised;
  if (caller !== undefined && caller.kind !== "project_secret") {
    const { id } = caller.kind === "session" ? caller.session : caller.key;
    deps.rateLimiter?.count(id, route.bucket, now.getTime());
  }
  const body = await bodyOf(route, request);
  if (
    caller?.kind === "session" &&
    route.asksAgain !== undefined &&
    confirmedUntil(caller.session, now) === null
  ) {
    if (route.asksAgain === true || route.asksAgain((body ?? {}) as Record<string, unknown>)) {
      throw confirmationRequired();
    }
  }
  const baseUrl = deps.publicUrl ?? requested.origin;
  const call = {
    request,
    url: baseUrl + requested.pathname + requested.search,
    baseUrl,
    ...from,
    now,
    params,
    query,
    body,
    ...partsOf(authorised),
  };
  return toResponse(await (route.handle as (call: Call) => unknown)(call as unknown as Call));
}

/** OPTIONS, and methods that the path does not have. */
function answerOther(
  methods: ReadonlyMap<Method, Route>,
  credentials: Credentials,
  deps: DispatchDeps,
): Response {
  const allowed = allowedMethods([...methods.keys()]);
  const any = methods.get("GET") ?? [...methods.values()][0]!;
  if (credentials.request.method === "OPTIONS") {
    authorise(deps.metadata, forReading(any.access), credentials);
    return Response.json(
      {
        name: any.tag,
        description: any.summary,
        renders: ["application/json"],
        parses: ["application/json"],
      },
      { headers: { Allow: allowed.join(", ") } },
    );
  }
  if (any.access.on !== "public" && any.access.on !== "console") {
    identify(deps.metadata, credentials, { takesSecretKey: any.access.on === "project" });
  }
  throw methodNotAllowed(credentials.request.method, allowed);
}

/** To ask what a path can do, the right to read is enough (contract: management-api 2.4). */
function forReading(access: Access): Access {
  if (!("scopes" in access)) return access;
  return { ...access, scopes: access.scopes.map((scope) => scope.replace(/:write$/, ":read") as Scope) };
}

/** Methods as an `Allow` header lists them. */
function allowedMethods(methods: readonly Method[]): string[] {
  return [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"];
}

function partsOf({ caller, project, organization }: Authorised): Record<string, unknown> {
  if (caller === undefined || caller.kind === "project_secret") return { caller, project, organization };
  const { kind: _, ...person } = caller;
  return { caller, project, organization, ...person };
}

async function bodyOf(route: Route, request: Request): Promise<unknown> {
  if (route.method === "GET") return undefined;
  if (!route.body && !route.takesRawBody) return undefined;
  const body = await readBody(request);
  if (route.takesRawBody || !route.body) return body;
  return parseFields(route.body, body, { partial: route.isPartial });
}

function toResponse(result: unknown): Response {
  if (result instanceof Response) return result;
  const reply = result instanceof Reply ? result : new Reply(200, result);
  if (reply.body === undefined) return new Response(null, { status: reply.status, headers: reply.headers });
  return Response.json(reply.body, { status: reply.status, headers: reply.headers });
}
