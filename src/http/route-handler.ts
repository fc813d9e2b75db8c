/** Elysia handlers of a route: authorization, body, re-authentication, then the module's function. */

import { withAbortSignal } from "../lib/cancellation.ts";
import { isPreflight, preflightHeaders } from "./cors.ts";
import type { EdgeDeps, RegisteredPath, SharedState } from "./edge-deps.ts";
import { parseFields } from "./fields.ts";
import { confirmationRequired, fullAccessRequired, methodNotAllowed } from "./http-error.ts";
import type { RequestContext } from "./request-context.ts";
import type { Access, Call, Credentials, Guard, Method, Route } from "./route.ts";
import { RouteResponse } from "./route-response.ts";

/** As Elysia calls it. */
export interface EdgeHandler {
  readonly beforeHandle?: readonly ElysiaFunction[];
  readonly handle: ElysiaFunction;
}
type ElysiaFunction = (context: never) => Promise<unknown>;

export type PathParams = Readonly<Record<string, string | null>> | undefined;
/** Stores the path and its parameters in the request's context. */
export type EnterPath = (exchange: RequestContext, params: PathParams) => void;

/** The part of Elysia's context that handlers and hooks use. */
export interface EdgeContext {
  readonly exchange: RequestContext;
  readonly params: PathParams;
}

/**
 * The handler of a route. The order of the checks is the contract's: 401, 404, 403, 429, then the body.
 *
 * Source: contract, management-api 1.
 */
export function routeHandler(route: Route, enter: EnterPath): EdgeHandler {
  const run = route.handle as (call: Call) => unknown;
  if (route.readsBody) {
    return {
      // One function without hooks: the hot path.
      async handle({ exchange, params }: EdgeContext) {
        enter(exchange, params);
        try {
          return await run(exchange);
        } catch (error) {
          throw asError(error);
        }
      },
    };
  }
  // The engine may take as long as a query; routes that use it declare 503. A route without a body has nothing to wait
  // for from its client.
  const takesLong = route.answers[503] !== undefined || (route.isLongRunning && route.method === "GET");
  return {
    beforeHandle: [
      async function authorize({ exchange, params }: EdgeContext) {
        enter(exchange, params);
        await withAbortSignal(exchange.request.signal, () => authorizeCall(route, exchange));
      },
      async function readBody({ exchange }: EdgeContext) {
        exchange.body = await getBody(route, exchange);
        if (!exchange.admission?.isConfirmed) assertConfirmation(route, exchange);
      },
    ],
    async handle({ exchange }: EdgeContext) {
      const work = () => withAbortSignal(exchange.request.signal, () => runRoute(route, exchange));
      try {
        return await (takesLong ? exchange.withoutIdleTimeout(work) : work());
      } catch (error) {
        throw asError(error);
      }
    },
  };
}

/** Elysia fails on a thrown undefined or null before its error handler runs. */
const asError = (thrown: unknown) => thrown ?? new Error(`A route threw ${thrown}.`);

async function authorizeCall(route: Route, exchange: RequestContext): Promise<void> {
  const { guard, rateLimiter, shared } = exchange.deps;
  if (shared !== undefined) await shared.check();
  const admission = guard.authorize(route.access, exchange);
  const { callerId, hasFullAccess } = admission;
  if (callerId !== undefined && route.bucket !== "none") {
    rateLimiter?.count(callerId, route.bucket, exchange.now.getTime());
  }
  if (route.makesCredential === true && !hasFullAccess) throw fullAccessRequired();
  exchange.admission = admission;
}

async function runRoute(route: Route, exchange: RequestContext): Promise<unknown> {
  const { deps, request, params, query } = exchange;
  const { parts, hasFullAccess, isConfirmed } = exchange.admission!;
  // Only sessions, which have a cookie, compare the base URL, and computing it is not free.
  const baseUrl = request.headers.has("cookie") ? exchange.baseUrl : undefined;
  const credentials = () => ({ request, params, query, baseUrl, now: deps.now() });
  const call = Object.assign(exchange, parts, {
    seesCredentials: hasFullAccess && isConfirmed,
    isStillAllowed: () => isAllowed(deps, route.access, credentials()),
  });
  const run = () => {
    if (makesCredential(route, call)) assertCredentialRights(deps.guard, route.access, credentials());
    return (route.handle as (call: Call) => unknown)(call);
  };
  return deps.shared === undefined ? await run() : await runShared(exchange, route, run, deps.shared);
}

async function runShared(
  exchange: RequestContext,
  route: Route,
  run: () => unknown,
  shared: SharedState,
): Promise<unknown> {
  if (!canChange(route)) return await run();
  if (route.isLongRunning !== true)
    return await shared.change((now) => {
      exchange.now = now;
      return run();
    });
  const result = await run();
  await shared.settle();
  return result;
}

/** A route that needs only read scopes changes nothing, whatever its method. */
function canChange({ method, access }: Route): boolean {
  if (method === "GET") return false;
  return !(
    "scopes" in access &&
    access.scopes.length > 0 &&
    access.scopes.every((scope) => scope.endsWith(":read"))
  );
}

/** Whether this request of a route creates a credential. */
function makesCredential({ makesCredential: marker }: Route, call: Call): boolean {
  return typeof marker === "function" ? (marker as (call: Call) => boolean)(call) : marker === true;
}

/**
 * Authorizes the caller again, together with the change: the body may have taken minutes, and the key may have expired.
 *
 * @throws {HttpError} 401, 403.
 */
function assertCredentialRights(guard: Guard, access: Access, credentials: Credentials): void {
  const { hasFullAccess, isConfirmed } = guard.authorize(access, credentials);
  if (!hasFullAccess) throw fullAccessRequired();
  if (!isConfirmed) throw confirmationRequired();
}

/** @throws {HttpError} the route requires password re-authentication. */
function assertConfirmation({ requiresReauthentication }: Route, { body }: RequestContext): void {
  if (requiresReauthentication === undefined) return;
  if (requiresReauthentication === true || requiresReauthentication((body ?? {}) as Record<string, unknown>))
    throw confirmationRequired();
}

function isAllowed({ guard }: EdgeDeps, access: Access, credentials: Credentials): boolean {
  try {
    guard.authorize(access, credentials);
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads and validates the body of a request. @throws {RequestRejectedError | HttpError} 400, 413, 415.
 */
async function getBody(route: Route, exchange: RequestContext): Promise<unknown> {
  if (route.method === "GET") return undefined;
  if (!route.body && !route.takesRawBody) return undefined;
  const body = await exchange.parsedBody(route.takesRawBody === true);
  if (route.takesRawBody || !route.body) return body;
  return parseFields(route.body, body, { partial: route.isPartial });
}

/** The handler of a path's other methods: OPTIONS and preflights are handled, all others get 405. */
export function unroutedHandler(registered: RegisteredPath, enter: EnterPath): EdgeHandler {
  return {
    async handle({ exchange, params }: EdgeContext) {
      enter(exchange, params);
      return answerUnrouted(registered, exchange);
    },
  };
}

function answerUnrouted({ profile, methods }: RegisteredPath, exchange: RequestContext): RouteResponse {
  const { request, deps } = exchange;
  const allowed = allowedMethods({ profile, methods });
  const headers = { Allow: allowed.join(", ") };
  if (profile.cors !== undefined && isPreflight(request)) {
    const preflight = { ...headers, ...preflightHeaders(request, profile.cors) };
    return new RouteResponse(profile.cors.preflightStatus, undefined, preflight);
  }
  const any = methods.get("GET") ?? [...methods.values()][0]!;
  if (request.method === "OPTIONS") {
    if (profile.options !== undefined) {
      const reply = profile.options();
      return new RouteResponse(reply.status, reply.body, { ...headers, ...reply.headers });
    }
    deps.guard.authorize(forReading(any.access), exchange);
    const description = {
      name: any.tag,
      description: any.summary,
      renders: ["application/json"],
      parses: ["application/json"],
    };
    return new RouteResponse(200, description, headers);
  }
  if (any.access.on !== "public" && any.access.on !== "console") deps.guard.identify(any.access, exchange);
  throw methodNotAllowed(request.method, allowed);
}

/** OPTIONS requires only read permission (contract: management-api 2.4). */
function forReading(access: Access): Access {
  if (!("scopes" in access)) return access;
  return { ...access, scopes: access.scopes.map((scope) => scope.replace(/:write$/, ":read")) };
}

const methodOrder: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Methods for an `Allow` header. */
function allowedMethods({ profile, methods }: Pick<RegisteredPath, "profile" | "methods">): string[] {
  const hasHead = methods.has("GET") && profile.headIsGet;
  return [...methodOrder.filter((method) => methods.has(method)), ...(hasHead ? ["HEAD"] : []), "OPTIONS"];
}
