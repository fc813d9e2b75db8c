/**
 * A route as data: path, dialect, guard, schemas, documentation and handler.
 *
 * The same records serve requests (`edge.ts`), generate the OpenAPI document (`openapi.ts`) and are covered by the
 * authorization test, so none of the three can miss a route.
 */

import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { EncodedBody } from "./decode/decode-body.ts";
import { managementProfile, type RouteProfile } from "./route-profile.ts";

export { RouteResponse } from "./route-response.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a handler receives. */
export interface Call<Body = unknown> {
  readonly request: Request;
  /** URL as clients see it, with the query. */
  url: string;
  /** URL by which clients reach this server, without a trailing slash. */
  baseUrl: string;
  requestId: string;
  /** Whether the request came through a trusted proxy, so that `address` is not the proxy's own. */
  readonly isViaTrustedProxy: boolean;
  /** Address of the client; undefined without a connection. */
  address: string | undefined;
  now: Date;
  params: Record<string, string>;
  query: URLSearchParams;
  body: Body;
  /**
   * Reads the body as sent, for routes without a `body` schema.
   *
   * @param kind selects the size limit.
   * @throws {RequestRejectedError} it cannot be read or is too large.
   */
  wrapped(kind: "events" | "api"): Promise<EncodedBody & { limitBytes: number }>;
  /** The JSON text of such a body, fully decoded. @throws {RequestRejectedError} */
  text(): Promise<string>;
  /** Reads the body to its end and discards it. @throws {RequestRejectedError} */
  discard(bytesMax: number): Promise<void>;
}
/** Access requirement of a route. Any one of several scopes is sufficient. */
export type Access =
  | { on: "public" }
  /** For the console page without a session: no key, no other origin. */
  | { on: "console" }
  /** Requires a session; keys are not accepted. */
  | { on: "session" }
  | {
      on: "user";
      scopes: readonly string[];
      /** Also allows keys limited to projects. */
      allowsScopedKeys?: boolean;
      /** Requires a key with unrestricted permissions. */
      needsFullAccess?: boolean;
    }
  | { on: "organization"; scopes: readonly string[] }
  | {
      on: "project";
      scopes: readonly string[];
      /** Required in addition to one of `scopes`. */
      alsoNeeds?: readonly string[];
      /** Accepts the project's secret key like a personal one. */
      takesSecretKey?: boolean;
      /** Also finds archived projects. */
      takesArchived?: boolean;
      /** For paths without a project and for SDKs: the header that names the project. */
      takesProjectHeader?: boolean;
    };

/** The parts of a request that identify the caller and the target. */
export interface Credentials {
  request: Request;
  params: Record<string, string | undefined>;
  query: URLSearchParams;
  now: Date;
  /** URL by which clients reach this server; absent: from the request. */
  baseUrl?: string;
}

/** Decides who may call which route; implemented by the module that knows keys and users. */
export interface Guard {
  /** @throws {HttpError} 401, 403 or 404. */
  authorize(access: Access, credentials: Credentials): Admission;
  /** Only identifies the caller. @throws {HttpError} 401. */
  identify(access: Access, credentials: Credentials): void;
}

/** What an admitted call may rely on. */
export interface Admission {
  /** Additional input of the handler, such as the user and the project. */
  parts: Record<string, unknown>;
  /** Owner of the rate limit; absent: no limit. */
  callerId?: string;
  /** The caller has re-authenticated recently or has no password. */
  isConfirmed: boolean;
  /** The key or the session has all permissions of its user, everywhere. */
  hasFullAccess: boolean;
}

/** One possible status of a route. */
export interface ResponseSpec {
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
  answers: Record<number, ResponseSpec>;
  bodyExample?: unknown;
}

/** A route declaration; `handle` returns JSON, a `RouteResponse`, or its own `Response`. */
export interface RouteSpec<AnyCall, Body extends TObject = TObject> extends Documentation {
  /** Validated before `handle`. Absent: the body is ignored. */
  body?: Body;
  /** Fields of the body may be missing. */
  isPartial?: boolean;
  /** `handle` receives the body without validation: uploads, and bodies that only the module understands. */
  takesRawBody?: boolean;
  /** Whether a session requires re-authentication; for some routes this depends on the body. */
  requiresReauthentication?: RequiresReauthentication;
  makesCredential?: MakesCredential<AnyCall>;
  /** `handle` may wait long, so it must not block others: other nodes change data meanwhile. */
  isLongRunning?: true;
  handle: (call: AnyCall) => unknown;
}

/** Whether a session must have re-authenticated recently. @param body validated, or raw if the route takes it raw. */
type RequiresReauthentication = true | ((body: Record<string, unknown>) => boolean);

/**
 * Whether the result of a route is a credential: a key, a link, a token, or more permissions for an account.
 *
 * `true`: always; a function: where it returns true. Both require a key with `*` and no restriction, or such a session
 * with password re-authentication. `shown`: the response contains existing credentials; without these rights they are
 * null. `proven`: the body is the proof (a password, a key, a link), and the result allows no more than that. Source:
 * contract, management-api 2.7.
 */
export type MakesCredential<AnyCall = never> = true | ((call: AnyCall) => boolean) | "shown" | "proven";

export interface Route extends Documentation {
  profile: RouteProfile;
  method: Method;
  /** With `:names`, without a trailing slash. */
  path: string;
  /** Alternative paths. */
  aliases: readonly string[];
  access: Access;
  /** Group of the rate limit; none: only the requests that it makes are counted. */
  bucket: "management" | "local_evaluation" | "remote_config" | "none";
  body?: TObject;
  isPartial?: boolean;
  takesRawBody?: boolean;
  requiresReauthentication?: RequiresReauthentication;
  makesCredential?: MakesCredential;
  isLongRunning?: true;
  /** `handle` reads the body itself; `body` is only documentation. */
  readsBody?: boolean;
  handle: (call: never) => unknown;
}

/** A route of the management API; `path` is complete. */
export function managementRoute<AnyCall extends Call, Body extends TObject>(
  method: Method,
  path: string,
  access: Access,
  spec: RouteSpec<AnyCall, Body>,
): Route {
  return { ...spec, profile: managementProfile, method, path, aliases: [], access, bucket: "management" };
}

/** A route without authentication. */
export function publicRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<Call<Static<Body>>, Body>,
): Route {
  return managementRoute(method, path, { on: "public" }, spec);
}

/** A route of client libraries, identified by the project's public key, if at all. `path` is complete. */
export interface ClientRouteSpec extends Documentation {
  body?: TObject;
  aliases?: readonly string[];
  handle: (call: Call) => unknown;
}

/**
 * Creates the function that declares routes of client libraries in one dialect.
 *
 * Their bodies are laxer than any schema: `handle` reads them itself.
 */
export const clientRoutes =
  (profile: RouteProfile) =>
  (method: Method, path: string, spec: ClientRouteSpec): Route => ({
    aliases: [],
    ...spec,
    profile,
    method,
    path,
    access: { on: "public" },
    bucket: "management",
    readsBody: true,
  });
