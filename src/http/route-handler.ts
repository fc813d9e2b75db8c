/** What Elysia calls for a route: authorization, the body, re-authentication, then the subject's function. */

import { forCaller } from "../lib/caller.ts";
import { isPreflight, preflightHeaders } from "./cors.ts";
import type { EdgeDeps, RegisteredPath, SharedState } from "./edge-deps.ts";
import type { Exchange } from "./exchange.ts";
import { confirmationRequired, fullAccessRequired, methodNotAllowed } from "./failure.ts";
import { parseFields } from "./fields.ts";
import { Reply } from "./reply.ts";
import type { Access, Call, Credentials, Guard, Method, Route } from "./route.ts";

/** As Elysia calls it. */
export interface EdgeHandler {
  readonly beforeHandle?: readonly ElysiaFunction[];
  readonly handle: ElysiaFunction;
}
type ElysiaFunction = (context: never) => Promise<unknown>;

export type PathParams = Readonly<Record<string, string | null>> | undefined;
/** Puts the path and its parameters into the request's context. */
export type EnterPath = (exchange: Exchange, params: PathParams) => void;

/** What handlers and hooks use of Elysia's context. */
export interface EdgeContext {
  readonly exchange: Exchange;
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
  // The engine may take as long as a query may; routes that ask it declare 503.
  const asksEngine = route.answers[503] !== undefined;
  return {
    beforeHandle: [
      async function authorize({ exchange, params }: EdgeContext) {
        enter(exchange, params);
        await forCaller(exchange.request.signal, () => authorizeCall(route, exchange));
      },
      async function readBody({ exchange }: EdgeContext) {
        exchange.body = await bodyOf(route, exchange);
        if (!exchange.admission?.isConfirmed) requireConfirmation(route, exchange);
      },
    ],
    async handle({ exchange }: EdgeContext) {
      const work = () => forCaller(exchange.request.signal, () => runRoute(route, exchange));
      try {
        return await (asksEngine ? exchange.unhurried(work) : work());
      } catch (error) {
        throw asError(error);
      }
    },
  };
}

/** Elysia fails on a thrown undefined or null before its error handler runs. */
const asError = (thrown: unknown) => thrown ?? new Error(`A route threw ${thrown}.`);

async function authorizeCall(route: Route, exchange: Exchange): Promise<void> {
  const { guard, rateLimiter, shared } = exchange.deps;
  if (shared !== undefined) await shared.look();
  const admission = guard.authorise(route.access, exchange);
  const { callerId, hasFullAccess } = admission;
  if (callerId !== undefined && route.bucket !== "none") {
    rateLimiter?.count(callerId, route.bucket, exchange.now.getTime());
  }
  if (route.makesCredential === true && !hasFullAccess) throw fullAccessRequired();
  exchange.admission = admission;
}

async function runRoute(route: Route, exchange: Exchange): Promise<unknown> {
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
    if (makesCredential(route, call)) requireCredentialRights(deps.guard, route.access, credentials());
    return (route.handle as (call: Call) => unknown)(call);
  };
  return deps.shared === undefined ? await run() : await runShared(route, run, deps.shared);
}

async function runShared(route: Route, run: () => unknown, shared: SharedState): Promise<unknown> {
  if (!canChange(route)) return await run();
  if (route.takesLong !== true) return await shared.change(run);
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
 * Checks the caller once more, together with the change: the body may have taken minutes, and its key may have expired.
 *
 * @throws {HttpFailure} 401, 403.
 */
function requireCredentialRights(guard: Guard, access: Access, credentials: Credentials): void {
  const { hasFullAccess, isConfirmed } = guard.authorise(access, credentials);
  if (!hasFullAccess) throw fullAccessRequired();
  if (!isConfirmed) throw confirmationRequired();
}

/** @throws {HttpFailure} the route requires password re-authentication. */
function requireConfirmation({ asksAgain }: Route, { body }: Exchange): void {
  if (asksAgain === undefined) return;
  if (asksAgain === true || asksAgain((body ?? {}) as Record<string, unknown>)) throw confirmationRequired();
}

function isAllowed({ guard }: EdgeDeps, access: Access, credentials: Credentials): boolean {
  try {
    guard.authorise(access, credentials);
    return true;
  } catch {
    return false;
  }
}

/** Reads and checks the body of a request. @throws {RequestRefused | HttpFailure} 400, 413, 415. */
async function bodyOf(route: Route, exchange: Exchange): Promise<unknown> {
  if (route.method === "GET") return undefined;
  if (!route.body && !route.takesRawBody) return undefined;
  const body = await exchange.parsedBody(route.takesRawBody === true);
  if (route.takesRawBody || !route.body) return body;
  return parseFields(route.body, body, { partial: route.isPartial });
}

/** The handler of a path's other methods: OPTIONS and preflights are answered, the rest is 405. */
export function unroutedHandler(registered: RegisteredPath, enter: EnterPath): EdgeHandler {
  return {
    async handle({ exchange, params }: EdgeContext) {
      enter(exchange, params);
      return answerUnrouted(registered, exchange);
    },
  };
}

function answerUnrouted({ dialect, methods }: RegisteredPath, exchange: Exchange): Reply {
  const { request, deps } = exchange;
  const allowed = allowedMethods({ dialect, methods });
  const headers = { Allow: allowed.join(", ") };
  if (dialect.cors !== undefined && isPreflight(request)) {
    const preflight = { ...headers, ...preflightHeaders(request, dialect.cors) };
    return new Reply(dialect.cors.preflightStatus, undefined, preflight);
  }
  const any = methods.get("GET") ?? [...methods.values()][0]!;
  if (request.method === "OPTIONS") {
    if (dialect.options !== undefined) {
      const reply = dialect.options();
      return new Reply(reply.status, reply.body, { ...headers, ...reply.headers });
    }
    deps.guard.authorise(forReading(any.access), exchange);
    const description = {
      name: any.tag,
      description: any.summary,
      renders: ["application/json"],
      parses: ["application/json"],
    };
    return new Reply(200, description, headers);
  }
  if (any.access.on !== "public" && any.access.on !== "console") deps.guard.identify(any.access, exchange);
  throw methodNotAllowed(request.method, allowed);
}

/** OPTIONS needs only the right to read (contract: management-api 2.4). */
function forReading(access: Access): Access {
  if (!("scopes" in access)) return access;
  return { ...access, scopes: access.scopes.map((scope) => scope.replace(/:write$/, ":read")) };
}

const methodOrder: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Methods as an `Allow` header lists them. */
function allowedMethods({ dialect, methods }: Pick<RegisteredPath, "dialect" | "methods">): string[] {
  const hasHead = methods.has("GET") && dialect.headIsGet;
  return [...methodOrder.filter((method) => methods.has(method)), ...(hasHead ? ["HEAD"] : []), "OPTIONS"];
}
