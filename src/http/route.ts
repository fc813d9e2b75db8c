/**
 * A route as data: path, dialect, guard, schemas, documentation and the function behind it.
 *
 * The same records serve requests (`dispatch.ts`), write the OpenAPI document (`openapi.ts`) and are
 * walked by the authorisation test, so none of the three can forget a route.
 */

import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { Organization } from "../accounts/organizations.ts";
import type { PersonalKey } from "../accounts/personal-keys.ts";
import type { Project } from "../accounts/project-directory.ts";
import type { Scope } from "../accounts/scopes.ts";
import type { Limits, Session } from "../accounts/sessions/sessions.ts";
import type { User } from "../accounts/users.ts";
import type { Access, Caller } from "./auth.ts";
import type { WrappedBody } from "./decode/unwrap.ts";
import { type Dialect, managementDialect } from "./dialect.ts";

export { Reply } from "./reply.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a handler gets. */
export interface Call<Body = unknown> {
  readonly request: Request;
  /** Address as clients see it, with the query. */
  url: string;
  /** Where clients reach this server, without a slash at the end. */
  baseUrl: string;
  requestId: string;
  /** Whether the request came through a trusted proxy, so that `address` is not the proxy's own. */
  readonly isVouchedFor: boolean;
  /** Address of the client; undefined where there is no connection. */
  address: string | undefined;
  now: Date;
  params: Record<string, string>;
  query: URLSearchParams;
  body: Body;
  /**
   * Reads the body as it was sent, for routes without a `body` of their own.
   *
   * @param kind which limit of size holds.
   * @throws {RequestRefused} it cannot be read or is too large.
   */
  wrapped(kind: "events" | "api"): Promise<WrappedBody & { limitBytes: number }>;
  /** The JSON text in such a body, with all wrappings taken off. @throws {RequestRefused} */
  text(): Promise<string>;
  /** Reads the body to its end and keeps nothing. @throws {RequestRefused} */
  discard(bytesMax: number): Promise<void>;
}
export interface UserCall<Body = unknown> extends Call<Body> {
  user: User;
  /** Whether the caller may still do this; for answers that go on for long. */
  isStillAllowed: () => boolean;
  /** What the key, or the session, is limited to. */
  limits: Limits;
  /** The key that was sent; absent for somebody who is signed in. */
  key?: PersonalKey;
  session?: Session;
}
/** A call of somebody who is signed in to the console. */
export interface SessionCall<Body = unknown> extends UserCall<Body> {
  session: Session;
}
export interface OrganizationCall<Body = unknown> extends UserCall<Body> {
  organization: Organization;
}
export interface ProjectCall<Body = unknown> extends UserCall<Body> {
  project: Project;
}
/** A call on a route that also takes the project's secret key: there may be no user. */
export interface ProjectOrSecretCall<Body = unknown> extends Call<Body> {
  project: Project;
  caller: Caller;
}

/** One status a route can answer with. */
export interface Answer {
  description: string;
  schema?: TSchema;
  example?: unknown;
}

interface Documentation {
  summary: string;
  description?: string;
  /** Section of the documentation. */
  tag: string;
  query?: TObject;
  answers: Record<number, Answer>;
  bodyExample?: unknown;
}

/** A route as it is written down; `handle` answers with JSON, a `Reply`, or a `Response` of its own. */
export interface RouteSpec<AnyCall, Body extends TObject = TObject> extends Documentation {
  /** Checked before `handle`. Absent: the body is ignored. */
  body?: Body;
  /** Missing fields of the body are no fault. */
  isPartial?: boolean;
  /** `handle` gets the body unchecked: uploads, and bodies that only the subject understands. */
  takesRawBody?: boolean;
  /** What somebody who is signed in has to be asked the password for again; of some routes it is the body that decides. */
  asksAgain?: AsksAgain;
  handle: (call: AnyCall) => unknown;
}

/** Whether a session must have been confirmed lately. @param body checked, or raw where the route takes it so. */
export type AsksAgain = true | ((body: Record<string, unknown>) => boolean);

export interface Route extends Documentation {
  dialect: Dialect;
  method: Method;
  /** With `:names`, without a slash at the end. */
  path: string;
  /** Other paths that mean the same. */
  aliases: readonly string[];
  access: Access;
  /** Group of the rate limit. */
  bucket: "management" | "local_evaluation" | "remote_config";
  body?: TObject;
  isPartial?: boolean;
  takesRawBody?: boolean;
  asksAgain?: AsksAgain;
  /** `handle` reads the body by itself; `body` documents it and checks nothing. */
  readsBody?: boolean;
  handle: (call: never) => unknown;
}

const projectPath = "/api/projects/:project_id";
const environment = "/api/environments/:project_id";
const organizationPath = "/api/organizations/:organization_id";

/** The same route for clients of old: flags without a project in the path mean the current one. */
const oldAlias = (path: string): string[] =>
  path.startsWith("/feature_flags") ? [path.replace("/feature_flags", "/api/feature_flag")] : [];

const listOf = (scope: Scope | readonly Scope[]): readonly Scope[] =>
  typeof scope === "string" ? [scope] : scope;

/**
 * A route under `/api/projects/:project_id` (and its alias under `/api/environments`).
 *
 * @param scope what a key must hold; of several, any one.
 * @param path  below the project, e.g. `/cohorts/:id`.
 * @param spec.alsoNeeds a scope that is needed as well.
 * @param spec.aliases   whole paths that mean the same; without `:project_id` the current project is meant.
 */
export function projectRoute<Body extends TObject>(
  method: Method,
  path: string,
  scope: Scope | readonly Scope[],
  spec: RouteSpec<ProjectCall<Static<Body>>, Body> & { alsoNeeds?: Scope; aliases?: readonly string[] },
): Route {
  const { alsoNeeds, aliases = [], ...rest } = spec;
  return {
    ...rest,
    dialect: managementDialect,
    method,
    path: projectPath + path,
    aliases: [environment + path, ...oldAlias(path), ...aliases],
    access: { on: "project", scopes: listOf(scope), alsoNeeds },
    bucket: "management",
  };
}

/** A route under `/api/projects/:project_id` that the project's secret key may use as well. */
export function projectOrSecretRoute<Body extends TObject>(
  method: Method,
  path: string,
  scope: Scope,
  spec: RouteSpec<ProjectOrSecretCall<Static<Body>>, Body> & {
    bucket: Route["bucket"];
    aliases?: readonly string[];
  },
): Route {
  return {
    ...spec,
    dialect: managementDialect,
    method,
    path: projectPath + path,
    aliases: [environment + path, ...oldAlias(path), ...(spec.aliases ?? [])],
    access: { on: "project", scopes: [scope], takesSecretKey: true, takesProjectHeader: true },
  };
}

/** A route under `/api/organizations/:organization_id`. */
export function organizationRoute<Body extends TObject>(
  method: Method,
  path: string,
  scope: Scope,
  spec: RouteSpec<OrganizationCall<Static<Body>>, Body>,
): Route {
  return {
    ...spec,
    dialect: managementDialect,
    method,
    path: organizationPath + path,
    aliases: [],
    access: { on: "organization", scopes: [scope] },
    bucket: "management",
  };
}

/** A route that belongs to no project and no organisation; `path` is whole. */
export function userRoute<Body extends TObject>(
  method: Method,
  path: string,
  scopes: readonly Scope[],
  spec: RouteSpec<UserCall<Static<Body>>, Body> & { ignoresNarrowing?: boolean; needsFullAccess?: boolean },
): Route {
  const { ignoresNarrowing, needsFullAccess, ...rest } = spec;
  return {
    ...rest,
    dialect: managementDialect,
    method,
    path,
    aliases: [],
    access: { on: "user", scopes, ignoresNarrowing, needsFullAccess },
    bucket: "management",
  };
}

/** A route for the console's page, signed in or not; `path` is whole. No key may call it. */
export function consoleRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<Call<Static<Body>>, Body>,
): Route {
  return {
    ...spec,
    dialect: managementDialect,
    method,
    path,
    aliases: [],
    access: { on: "console" },
    bucket: "management",
  };
}

/** A route for somebody who is signed in; `path` is whole. No key may call it. */
export function sessionRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<SessionCall<Static<Body>>, Body>,
): Route {
  return {
    ...spec,
    dialect: managementDialect,
    method,
    path,
    aliases: [],
    access: { on: "session" },
    bucket: "management",
  };
}

/** A route for everybody; `path` is whole. */
export function publicRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<Call<Static<Body>>, Body>,
): Route {
  return {
    ...spec,
    dialect: managementDialect,
    method,
    path,
    aliases: [],
    access: { on: "public" },
    bucket: "management",
  };
}

/** A route of client libraries: the project's public key, if anything, says who calls. `path` is whole. */
export interface ClientRouteSpec extends Documentation {
  body?: TObject;
  aliases?: readonly string[];
  handle: (call: Call) => unknown;
}

/**
 * Makes the function that writes routes of client libraries down in one dialect.
 *
 * Their bodies are laxer than any schema: `handle` reads them by itself.
 */
export const clientRoutes =
  (dialect: Dialect) =>
  (method: Method, path: string, spec: ClientRouteSpec): Route => ({
    aliases: [],
    ...spec,
    dialect,
    method,
    path,
    access: { on: "public" },
    bucket: "management",
    readsBody: true,
  });
