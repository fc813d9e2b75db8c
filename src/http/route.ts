/**
 * A route as data: path, dialect, guard, schemas, documentation and the function behind it.
 *
 * The same records serve requests (`edge.ts`), write the OpenAPI document (`openapi.ts`) and are
 * walked by the authorisation test, so none of the three can forget a route.
 */

import type { Static, TObject, TSchema } from "@sinclair/typebox";
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
/** What a route needs. Several scopes: any of them is enough. */
export type Access =
  | { on: "public" }
  /** For the console's page before anybody is signed in: no key, and no other page. */
  | { on: "console" }
  /** Only for somebody who is signed in; no key. */
  | { on: "session" }
  | {
      on: "user";
      scopes: readonly string[];
      /** A key that is limited to projects may be used all the same. */
      ignoresNarrowing?: boolean;
      /** Only a key that may do everything, everywhere. */
      needsFullAccess?: boolean;
    }
  | { on: "organization"; scopes: readonly string[] }
  | {
      on: "project";
      scopes: readonly string[];
      /** Needed besides one of `scopes`. */
      alsoNeeds?: string;
      /** The project's own secret key is as good as a personal one. */
      takesSecretKey?: boolean;
      /** An archived project is found, too. */
      takesArchived?: boolean;
      /** Where the path names no project, and for SDKs: the header that names one. */
      takesProjectHeader?: boolean;
    };

/** The parts of a request that say who and what for. */
export interface Credentials {
  request: Request;
  params: Record<string, string | undefined>;
  query: URLSearchParams;
  now: Date;
  /** Where clients reach this server; absent: what the request says. */
  baseUrl?: string;
}

/** Decides who may call which route; given by the subject that knows keys and users. */
export interface Guard {
  /** @throws {HttpFailure} 401, 403 or 404. */
  authorise(access: Access, credentials: Credentials): Admission;
  /** Only finds out who calls. @throws {HttpFailure} 401. */
  identify(access: Access, credentials: Credentials): void;
}

/** What a call may rely on once it is admitted. */
export interface Admission {
  /** What the handler gets besides the request: the user, the project and the like. */
  parts: Record<string, unknown>;
  /** By whom requests are counted; absent: they are not. */
  callerId?: string;
  /** The caller has been asked for the password lately, or is none who has one. */
  isConfirmed: boolean;
  /** The key, or the session, may do everything its user may, everywhere. */
  hasFullAccess: boolean;
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
  makesCredential?: MakesCredential<AnyCall>;
  /** `handle` waits for its caller or for others, so that nobody may wait for it: other fronts change things meanwhile. */
  takesLong?: true;
  handle: (call: AnyCall) => unknown;
}

/** Whether a session must have been confirmed lately. @param body checked, or raw where the route takes it so. */
type AsksAgain = true | ((body: Record<string, unknown>) => boolean);

/**
 * Whether the result of a route is a credential: a key, a link, a token, or more permissions for an account.
 *
 * `true`: always; a function: where it returns true. Both need a key with `*` and no restriction, or such a session with
 * password re-authentication. `shown`: the answer has credentials that exist already; without these rights they are null.
 * `proven`: the body is the proof (a password, a key, a link), and the result allows no more than that.
 * Source: contract, management-api 2.7.
 */
export type MakesCredential<AnyCall = never> = true | ((call: AnyCall) => boolean) | "shown" | "proven";

export interface Route extends Documentation {
  dialect: Dialect;
  method: Method;
  /** With `:names`, without a slash at the end. */
  path: string;
  /** Other paths that mean the same. */
  aliases: readonly string[];
  access: Access;
  /** Group of the rate limit; none: the requests that it makes are counted instead. */
  bucket: "management" | "local_evaluation" | "remote_config" | "none";
  body?: TObject;
  isPartial?: boolean;
  takesRawBody?: boolean;
  asksAgain?: AsksAgain;
  makesCredential?: MakesCredential;
  takesLong?: true;
  /** `handle` reads the body by itself; `body` documents it and checks nothing. */
  readsBody?: boolean;
  handle: (call: never) => unknown;
}

/** A route of the management API; `path` is whole. */
export function managementRoute<AnyCall extends Call, Body extends TObject>(
  method: Method,
  path: string,
  access: Access,
  spec: RouteSpec<AnyCall, Body>,
): Route {
  return { ...spec, dialect: managementDialect, method, path, aliases: [], access, bucket: "management" };
}

/** One for everybody. */
export function publicRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<Call<Static<Body>>, Body>,
): Route {
  return managementRoute(method, path, { on: "public" }, spec);
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
