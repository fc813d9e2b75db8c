/**
 * Registers paths with Elysia so that a path returns 405 for methods it does not have, and never uses a sibling's
 * route.
 *
 * Elysia looks up the method first: `GET …/explain`, where only POST exists, would match `GET …/:id`.
 */

import type { RegisteredPath, RegisteredPaths } from "./edge-deps.ts";
import type { RequestContext } from "./request-context.ts";
import type { Method, Route } from "./route.ts";
import { type EdgeHandler, type PathParams, routeHandler, unroutedHandler } from "./route-handler.ts";
import type { RouteProfile } from "./route-profile.ts";

/** Groups routes by path, aliases included. @throws {Error} two routes share method and path, or a path has two profiles. */
export function groupByPath(routes: readonly Route[]): RegisteredPaths {
  const byPath = new Map<string, { path: string; profile: RouteProfile; methods: Map<Method, Route> }>();
  for (const route of routes) {
    const { profile, method } = route;
    for (const path of [route.path, ...route.aliases]) {
      const registered = byPath.get(path) ?? { path: route.path, profile, methods: new Map() };
      if (registered.methods.has(method)) throw new Error(`${method} ${path} is registered twice.`);
      if (registered.profile !== profile) throw new Error(`${path} has two route profiles.`);
      registered.methods.set(method, route);
      byPath.set(path, registered);
    }
  }
  return byPath;
}

/** The part of Elysia that is used here. */
interface RouteRegistry {
  route(method: string, path: string, handler: never, hooks: never): unknown;
}

const pathParamPattern = /:(\w+)|\*$/g;

/** Clients send both: a redirected POST would become a GET. */
const pathVariants = (path: string) => (/[/*]$/.test(path) ? [path] : [path, `${path}/`]);

/** Registers every method of every path, with and without a trailing slash. */
export function registerPaths(app: RouteRegistry, paths: RegisteredPaths): void {
  const wildcards = [...paths]
    .filter(([path]) => path.search(pathParamPattern) !== -1)
    .map(([path, registered]) => ({ path, parts: path.split("/"), registered }));
  for (const [path, registered] of paths) {
    const overlapping = wildcards.filter((other) => other.path !== path && matches(other.parts, path));
    const shadowed = new Set(overlapping.flatMap((other) => servedMethods(other.registered)));
    for (const variant of pathVariants(path)) registerPath(app, { path: variant, registered, shadowed });
  }
}

/** Whether a path with parameters also matches another, more specific path. */
function matches(parts: readonly string[], path: string): boolean {
  const others = path.split("/");
  for (const [index, part] of parts.entries()) {
    if (part === "*") return true;
    if (!part.startsWith(":") && part !== others[index]) return false;
  }
  return parts.length === others.length;
}

interface PathRegistration {
  path: string;
  registered: RegisteredPath;
  /** Methods of other, less specific paths. */
  shadowed: ReadonlySet<string>;
}

function registerPath(app: RouteRegistry, { path, registered, shadowed }: PathRegistration): void {
  const names = [...path.matchAll(pathParamPattern)].map(([all, name]) => name ?? all);
  const enter = (exchange: RequestContext, params: PathParams) => {
    exchange.registered = registered;
    if (names.length > 0) exchange.params = namedParams(params, names);
  };
  const pattern = numbered(path);
  for (const [method, route] of registered.methods) {
    const handler = routeHandler(route, enter);
    addRoute(app, method, pattern, handler);
    if (method === "GET" && registered.profile.headIsGet) addRoute(app, "HEAD", pattern, handler);
  }
  const own = new Set(servedMethods(registered));
  const unrouted = unroutedHandler(registered, enter);
  for (const method of shadowed) if (!own.has(method)) addRoute(app, method, pattern, unrouted);
  addRoute(app, "ALL", pattern, unrouted);
}

/**
 * @throws {Error} a function is not async. Elysia decides by the source text whether to await a function, and uses the
 * promise of any other one as its result.
 */
function addRoute(
  app: RouteRegistry,
  method: string,
  path: string,
  { beforeHandle = [], handle }: EdgeHandler,
): void {
  for (const used of [...beforeHandle, handle])
    if (!(used instanceof AsyncFunction)) throw new Error(`A handler of ${method} ${path} is not async.`);
  // Bodies are read by `RequestContext`, with a limit and a budget.
  const hooks =
    beforeHandle.length === 0 ? { parse: "none" } : { parse: "none", beforeHandle: [...beforeHandle] };
  app.route(method, path, handle as never, hooks as never);
}

const AsyncFunction = (async () => undefined).constructor as FunctionConstructor;

function servedMethods({ methods, profile }: RegisteredPath): string[] {
  return methods.has("GET") && profile.headIsGet ? [...methods.keys(), "HEAD"] : [...methods.keys()];
}

/** Elysia requires one name per position; routes name the same position `id` and `feature_flag_id`. */
function numbered(path: string): string {
  let position = 0;
  return path.replace(/:\w+/g, () => `:p${position++}`);
}

/** Replaces a part that is not valid text, such as `%ff`: it matches no record. */
const unreadable = "\uFFFD";

function namedParams(params: PathParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name, position) => [name, params?.[name === "*" ? "*" : `p${position}`] ?? unreadable]),
  );
}
