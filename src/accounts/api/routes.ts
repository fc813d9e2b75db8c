/** Routes of users, organisations and projects: which guard they have, and what their handlers get. */

import type { Static, TObject } from "@sinclair/typebox";
import {
  type Access,
  type Call,
  type Method,
  managementRoute,
  type Route,
  type RouteSpec,
} from "../../http/route.ts";
import { NotPermitted } from "../../lib/errors.ts";
import type { Limits } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import type { Organization } from "../organizations.ts";
import type { PersonalKey } from "../personal-keys.ts";
import type { Project } from "../project-directory.ts";
import type { Scope } from "../route-scopes.ts";
import type { Session } from "../sessions/sessions.ts";
import { isOperator, type User } from "../users.ts";
import type { Caller } from "./guard.ts";

export interface UserCall<Body = unknown> extends Call<Body> {
  user: User;
  /** Whether the caller may still do this; for answers that go on for long. */
  isStillAllowed: () => boolean;
  /** A key that may do everything, everywhere, or such a session with password re-authentication. */
  seesCredentials: boolean;
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
 * @param spec.takesArchived an archived project is found, too.
 * @param spec.aliases   whole paths that mean the same; without `:project_id` the current project is meant.
 */
export function projectRoute<Body extends TObject>(
  method: Method,
  path: string,
  scope: Scope | readonly Scope[],
  spec: RouteSpec<ProjectCall<Static<Body>>, Body> & {
    alsoNeeds?: Scope;
    takesArchived?: boolean;
    aliases?: readonly string[];
  },
): Route {
  const { alsoNeeds, takesArchived, aliases = [], ...rest } = spec;
  const access: Access = { on: "project", scopes: listOf(scope), alsoNeeds, takesArchived };
  return {
    ...managementRoute(method, projectPath + path, access, rest),
    aliases: [environment + path, ...oldAlias(path), ...aliases],
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
  const { bucket, aliases = [], ...rest } = spec;
  const access: Access = { on: "project", scopes: [scope], takesSecretKey: true, takesProjectHeader: true };
  return {
    ...managementRoute(method, projectPath + path, access, rest),
    aliases: [environment + path, ...oldAlias(path), ...aliases],
    bucket,
  };
}

/** A route under `/api/organizations/:organization_id`. */
export function organizationRoute<Body extends TObject>(
  method: Method,
  path: string,
  scope: Scope,
  spec: RouteSpec<OrganizationCall<Static<Body>>, Body>,
): Route {
  return managementRoute(method, organizationPath + path, { on: "organization", scopes: [scope] }, spec);
}

/** A route that belongs to no project and no organisation; `path` is whole. */
export function userRoute<Body extends TObject>(
  method: Method,
  path: string,
  scopes: readonly Scope[],
  spec: RouteSpec<UserCall<Static<Body>>, Body> & { ignoresNarrowing?: boolean; needsFullAccess?: boolean },
): Route {
  const { ignoresNarrowing, needsFullAccess, ...rest } = spec;
  return managementRoute(method, path, { on: "user", scopes, ignoresNarrowing, needsFullAccess }, rest);
}

/** A route for owners of the first organisation only, below `/api/instance`. */
export function operatorRoute<Body extends TObject>(
  deps: { metadata: Metadata },
  method: Method,
  path: string,
  spec: RouteSpec<UserCall<Static<Body>>, Body>,
): Route {
  return userRoute<Body>(method, `/api/instance${path}`, [], {
    // They are about the server, and wait for its backups.
    takesLong: true,
    ...spec,
    description: [spec.description, "Only for owners of the first organisation."].filter(Boolean).join(" "),
    needsFullAccess: true,
    handle: (call) => {
      if (!isOperator(deps.metadata.db, call.user.id))
        throw new NotPermitted("Only the server's operators may.");
      return spec.handle(call);
    },
  });
}

/** A route for the console's page, signed in or not; `path` is whole. No key may call it. */
export function consoleRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<Call<Static<Body>>, Body>,
): Route {
  return managementRoute(method, path, { on: "console" }, spec);
}

/** A route for somebody who is signed in; `path` is whole. No key may call it. */
export function sessionRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<SessionCall<Static<Body>>, Body>,
): Route {
  return managementRoute(method, path, { on: "session" }, spec);
}
