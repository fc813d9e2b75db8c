/** Serves route records: a path that exists answers 405 to other methods, and never the route of a sibling. */

import { forCaller, isCallerGone } from "../lib/caller.ts";
import { gzipped, isCompressible, packedResponse, takesGzip } from "./compress.ts";
import { addCors, isPreflight, preflightHeaders } from "./cors.ts";
import type { Dialect } from "./dialect.ts";
import { type ErrorLog, failureOf, logDefect } from "./errors.ts";
import { type Connection, Exchange, type ExchangeDeps } from "./exchange.ts";
import {
  callerGone,
  confirmationRequired,
  fullAccessRequired,
  methodNotAllowed,
  notFound,
} from "./failure.ts";
import { parseFields } from "./fields.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { Reply } from "./reply.ts";
import type { Access, Call, Credentials, Guard, Method, Route } from "./route.ts";

/** What several fronts share: a request sees what the others have changed, and what it changes is theirs before its answer. */
export interface SharedState {
  /** Takes over what others have changed; where that cannot be asked, what is known is all there is. */
  look(): Promise<void>;
  /** Runs a change while nobody else changes anything, and resolves when it is everybody's. */
  change<Result>(run: () => Result | Promise<Result>): Promise<Result>;
  /** Resolves when everything that was changed before the call is everybody's. */
  settle(): Promise<void>;
}

export interface DispatchDeps extends ExchangeDeps {
  /** Absent: this front is alone. */
  readonly shared?: SharedState;
  readonly guard: Guard;
  readonly log: ErrorLog;
  /** Gets what a request threw, whatever the response. */
  readonly onError?: (error: unknown) => void;
  /** Absent: no limits. */
  readonly rateLimiter?: RateLimiter;
  /** Told of every request that has its answer. */
  readonly onSeen?: (seen: SeenRequest) => void;
  /** What is known about the connection a request came over. */
  readonly connectionOf: (request: Request) => Connection;
}

/** A request that has its answer. */
export interface SeenRequest {
  readonly request: Request;
  readonly requestId: string;
  /** Path of the route record; `other` for paths that are none. */
  readonly route: string;
  /** Whether it brought events. */
  readonly isCapture: boolean;
  readonly status: number;
  /** Why it was refused, for people. */
  readonly reason: string | undefined;
  /** By the clock of `performance.now`. */
  readonly startedAt: number;
  readonly address: () => string | undefined;
}

/** A path with what it answers; all its methods speak one dialect. */
export interface ServedPath {
  /** As the route record has it. */
  readonly path: string;
  readonly dialect: Dialect;
  readonly methods: ReadonlyMap<Method, Route>;
}

/** The paths of routes. */
export interface ServedPaths {
  /** Those without places for names or ids, in every spelling: they are found without a router. */
  readonly exact: ReadonlyMap<string, ServedPath>;
  /** As they are written down. */
  readonly others: readonly (readonly [path: string, served: ServedPath])[];
}

/** What is served at which path. @throws two routes want the same, or one path speaks two dialects: a fault of ours. */
export function pathsOf(routes: readonly Route[]): ServedPaths {
  const byPath = new Map<string, { path: string; dialect: Dialect; methods: Map<Method, Route> }>();
  for (const route of routes) {
    for (const path of [route.path, ...route.aliases]) {
      const served = byPath.get(path) ?? {
        path: route.path,
        dialect: route.dialect,
        methods: new Map<Method, Route>(),
      };
      if (served.methods.has(route.method)) throw new Error(`${route.method} ${path} is registered twice.`);
      if (served.dialect !== route.dialect) throw new Error(`${path} speaks two dialects.`);
      served.methods.set(route.method, route);
      byPath.set(path, served);
    }
  }
  const all = [...byPath];
  const isExact = ([path]: readonly [string, ServedPath]) => path.search(places) === -1;
  const exact = all
    .filter(isExact)
    .flatMap(([path, served]) => spellingsOf(path).map((spelling) => [spelling, served] as const));
  return { exact: new Map(exact), others: all.filter((one) => !isExact(one)) };
}

/** A path with and without a slash at the end. */
export const spellingsOf = (path: string) => (/[/*]$/.test(path) ? [path] : [path, `${path}/`]);
export const places = /:(\w+)|\*$/g;

/** Of a path without places. */
export const noParams: Record<string, string> = {};

/** Serves a request; never throws. */
export async function serve(
  { path, dialect, methods }: ServedPath,
  request: Request,
  params: Record<string, string>,
  deps: DispatchDeps,
): Promise<Response> {
  const startedAt = performance.now();
  const exchange = new Exchange(request, params, deps.connectionOf(request), deps);
  let result: unknown;
  let reason: string | undefined;
  try {
    result = answer(dialect, methods, exchange, deps);
    if (result instanceof Promise) result = await result;
  } catch (error) {
    deps.onError?.(error);
    const failure = isCallerGone(error, request.signal) ? callerGone() : failureOf(error);
    const { requestId } = exchange;
    reason = failure.message;
    if (failure.status === 500) logDefect(error, { request, requestId, log: deps.log });
    result = dialect.refuse(failure, error, exchange);
  }
  exchange.end();
  const finishing = finished(result, dialect, exchange);
  const response = finishing instanceof Promise ? await finishing : finishing;
  deps.onSeen?.({
    request,
    requestId: exchange.requestId,
    route: path,
    isCapture: dialect.isCapture ?? false,
    status: response.status,
    reason,
    startedAt,
    address: () => exchange.address,
  });
  return response;
}

/** Adds what every answer carries; at once, unless it is to be compressed. */
function finished(
  result: unknown,
  dialect: Dialect,
  { request, requestId }: Exchange,
): Response | Promise<Response> {
  const common: Record<string, string> = {
    "X-Request-Id": requestId,
    "X-Content-Type-Options": "nosniff",
  };
  if (dialect.cors !== undefined) addCors(common, request, dialect.cors);
  if (dialect.caching !== undefined) common["Cache-Control"] = dialect.caching;
  const isHead = request.method === "HEAD";
  if (result instanceof Response) {
    if (isHead) return withHeaders(withoutBody(result), common);
    return packedResponse(result, request).then((response) => withHeaders(response, common));
  }
  const reply = result instanceof Reply ? result : new Reply(200, result);
  const written = reply.written();
  if (written !== undefined) common["Content-Type"] = written.contentType;
  if (isHead && written !== undefined) common["Content-Length"] = String(Buffer.byteLength(written.bytes));
  const headers = Object.assign(common, reply.headers);
  const bytes = isHead ? null : (written?.bytes ?? null);
  const { status } = reply;
  if (bytes !== null && isCompressible(written!.contentType, bytes, headers)) {
    headers.Vary = headers.Vary === undefined ? "Accept-Encoding" : `${headers.Vary}, Accept-Encoding`;
    if (takesGzip(request)) {
      headers["Content-Encoding"] = "gzip";
      return gzipped(bytes).then((packed) => new Response(packed, { status, headers }));
    }
  }
  return new Response(bytes, { status, headers });
}

/** For HEAD. How long the body of a GET would be is not known before it is made: then nothing is said, and not that it is empty. */
function withoutBody(response: Response): Response {
  const { body } = response;
  const head = new Response(null, response);
  if (body === null) return head;
  body.cancel().catch(() => undefined);
  if (!head.headers.has("Content-Length")) head.headers.set("Transfer-Encoding", "chunked");
  return head;
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const vary = response.headers.get("Vary");
  const caching = response.headers.get("Cache-Control");
  for (const name in headers) response.headers.set(name, headers[name]!);
  if (caching !== null) response.headers.set("Cache-Control", caching);
  if (vary !== null && headers.Vary !== undefined) response.headers.append("Vary", vary);
  return response;
}

function answer(
  dialect: Dialect,
  methods: ReadonlyMap<Method, Route>,
  exchange: Exchange,
  deps: DispatchDeps,
): unknown {
  const { request } = exchange;
  if (methods.size === 0) throw notFound();
  if (dialect.cors !== undefined && isPreflight(request)) {
    const headers = {
      Allow: allowedMethods(dialect, methods).join(", "),
      ...preflightHeaders(request, dialect.cors),
    };
    return new Reply(dialect.cors.preflightStatus, undefined, headers);
  }
  const method = request.method === "HEAD" && dialect.headIsGet ? "GET" : request.method;
  const route = methods.get(method as Method);
  if (!route) return answerOther(dialect, methods, exchange, deps);
  // These ask nobody who would have to be told that the caller has gone.
  if (route.readsBody) return (route.handle as (call: Call) => unknown)(exchange);
  // Routes that ask the engine say in their answers that it may be away; it takes the time that a query takes.
  const asksEngine = route.answers[503] !== undefined;
  const work = () => forCaller(request.signal, () => handle(route, exchange, deps));
  return asksEngine ? exchange.unhurried(work) : work();
}

async function handle(route: Route, exchange: Exchange, deps: DispatchDeps): Promise<unknown> {
  if (deps.shared !== undefined) await deps.shared.look();
  const { parts, callerId, isConfirmed, hasFullAccess } = deps.guard.authorise(route.access, exchange);
  if (callerId !== undefined && route.bucket !== "none") {
    deps.rateLimiter?.count(callerId, route.bucket, exchange.now.getTime());
  }
  if (route.makesCredential === true && !hasFullAccess) throw fullAccessRequired();
  exchange.body = await bodyOf(route, exchange);
  if (!isConfirmed) requireConfirmation(route, exchange);
  const { request, params, query } = exchange;
  // Only who is signed in to the console is told by it, and asking for it is not for nothing.
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

/** Whoever may only read changes nothing, by whichever method it asks. */
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
 * Checks the caller once more, together with the change: the body may have taken minutes, and its key may have ended.
 *
 * @throws {HttpFailure} 401, 403.
 */
function requireCredentialRights(guard: Guard, access: Access, credentials: Credentials): void {
  const { hasFullAccess, isConfirmed } = guard.authorise(access, credentials);
  if (!hasFullAccess) throw fullAccessRequired();
  if (!isConfirmed) throw confirmationRequired();
}

/** @throws {HttpFailure} the route wants to know again that it is still the same person. */
function requireConfirmation({ asksAgain }: Route, { body }: Exchange): void {
  if (asksAgain === undefined) return;
  if (asksAgain === true || asksAgain((body ?? {}) as Record<string, unknown>)) throw confirmationRequired();
}

function isAllowed({ guard }: DispatchDeps, access: Access, credentials: Credentials): boolean {
  try {
    guard.authorise(access, credentials);
    return true;
  } catch {
    return false;
  }
}

/** OPTIONS, and methods that the path does not have. */
function answerOther(
  dialect: Dialect,
  methods: ReadonlyMap<Method, Route>,
  credentials: Credentials,
  deps: DispatchDeps,
): Reply {
  const allowed = allowedMethods(dialect, methods);
  const any = methods.get("GET") ?? [...methods.values()][0]!;
  if (credentials.request.method === "OPTIONS") {
    if (dialect.options !== undefined) {
      const { status, body, headers } = dialect.options();
      return new Reply(status, body, { Allow: allowed.join(", "), ...headers });
    }
    deps.guard.authorise(forReading(any.access), credentials);
    const description = {
      name: any.tag,
      description: any.summary,
      renders: ["application/json"],
      parses: ["application/json"],
    };
    return new Reply(200, description, { Allow: allowed.join(", ") });
  }
  if (any.access.on !== "public" && any.access.on !== "console") {
    deps.guard.identify(any.access, credentials);
  }
  throw methodNotAllowed(credentials.request.method, allowed);
}

/** To ask what a path can do, the right to read is enough (contract: management-api 2.4). */
function forReading(access: Access): Access {
  if (!("scopes" in access)) return access;
  return { ...access, scopes: access.scopes.map((scope) => scope.replace(/:write$/, ":read")) };
}

const methodOrder: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Methods as an `Allow` header lists them. */
function allowedMethods(dialect: Dialect, methods: ReadonlyMap<Method, Route>): string[] {
  const hasHead = methods.has("GET") && dialect.headIsGet;
  return [...methodOrder.filter((method) => methods.has(method)), ...(hasHead ? ["HEAD"] : []), "OPTIONS"];
}

async function bodyOf(route: Route, exchange: Exchange): Promise<unknown> {
  if (route.method === "GET") return undefined;
  if (!route.body && !route.takesRawBody) return undefined;
  const body = await exchange.parsedBody(route.takesRawBody === true);
  if (route.takesRawBody || !route.body) return body;
  return parseFields(route.body, body, { partial: route.isPartial });
}
