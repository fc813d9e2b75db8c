/** Builders of guarded routes for users, organizations and projects, and the calls that their handlers receive. */

import type { Static, TObject } from "@sinclair/typebox";
import {
  type Access,
  type Call,
  type Method,
  managementRoute,
  type Route,
  type RouteSpec,
} from "../../http/route.ts";
import { PermissionDeniedError } from "../../lib/errors.ts";
import type { KeyRestrictions } from "../limits.ts";
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
  /** Whether the caller is still authorized; for long-running responses. */
  isStillAllowed: () => boolean;
  /** An unrestricted key, or such a session with password re-authentication. */
  seesCredentials: boolean;
  /** Limits of the key or session. */
  limits: KeyRestrictions;
  /** The key of the request; absent for a console session. */
  key?: PersonalKey;
  session?: Session;
}
/** A call of a user who is signed in to the console. */
export interface SessionCall<Body = unknown> extends UserCall<Body> {
  session: Session;
}
export interface OrganizationCall<Body = unknown> extends UserCall<Body> {
  organization: Organization;
}
export interface ProjectCall<Body = unknown> extends UserCall<Body> {
  project: Project;
}
/** A call on a route that also accepts the project's secret key: `user` may be absent. */
export interface ProjectOrSecretCall<Body = unknown> extends Call<Body> {
  project: Project;
  caller: Caller;
}

const projectPath = "/api/projects/:project_id";
const environment = "/api/environments/:project_id";
const organizationPath = "/api/organizations/:organization_id";

/** Alias for old clients: flags without a project in the path belong to the current project. */
const oldAlias = (path: string): string[] =>
  path.startsWith("/feature_flags") ? [path.replace("/feature_flags", "/api/feature_flag")] : [];

const toList = (scope: Scope | readonly Scope[]): readonly Scope[] =>
  typeof scope === "string" ? [scope] : scope;

/**
 * A route under `/api/projects/:project_id` (and its alias under `/api/environments`).
 *
 * @param scope required of keys; of several, any one.
 * @param path  below the project, e.g. `/cohorts/:id`.
 * @param spec.alsoNeeds additional required scopes.
 * @param spec.takesArchived also finds archived projects.
 * @param spec.aliases   complete alternative paths; without `:project_id` the current project is used.
 */
export function projectRoute<Body extends TObject>(
  method: Method,
  path: string,
  scope: Scope | readonly Scope[],
  spec: RouteSpec<ProjectCall<Static<Body>>, Body> & {
    alsoNeeds?: readonly Scope[];
    takesArchived?: boolean;
    aliases?: readonly string[];
  },
): Route {
  const { alsoNeeds, takesArchived, aliases = [], ...rest } = spec;
  const access: Access = { on: "project", scopes: toList(scope), alsoNeeds, takesArchived };
  return {
    ...managementRoute(method, projectPath + path, access, rest),
    aliases: [environment + path, ...oldAlias(path), ...aliases],
  };
}

/** A route under `/api/projects/:project_id` that also accepts the project's secret key. */
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

/** A route outside of projects and organizations; `path` is complete. */
export function userRoute<Body extends TObject>(
  method: Method,
  path: string,
  scopes: readonly Scope[],
  spec: RouteSpec<UserCall<Static<Body>>, Body> & { allowsScopedKeys?: boolean; needsFullAccess?: boolean },
): Route {
  const { allowsScopedKeys, needsFullAccess, ...rest } = spec;
  return managementRoute(method, path, { on: "user", scopes, allowsScopedKeys, needsFullAccess }, rest);
}

/** A route below `/api/instance` for owners of the first organization only. */
export function operatorRoute<Body extends TObject>(
  deps: { metadata: Metadata },
  method: Method,
  path: string,
  spec: RouteSpec<UserCall<Static<Body>>, Body>,
): Route {
  return userRoute<Body>(method, `/api/instance${path}`, [], {
    // These routes concern the server and wait for its backups.
    isLongRunning: true,
    ...spec,
    description: [spec.description, "Only for owners of the first organization."].filter(Boolean).join(" "),
    needsFullAccess: true,
    handle: (call) => {
      if (!isOperator(deps.metadata.db, call.user.id))
        throw new PermissionDeniedError("Only operators of the server have this permission.");
      return spec.handle(call);
    },
  });
}

/** A route for the console, signed in or not; `path` is complete. Keys may not call it. */
export function consoleRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<Call<Static<Body>>, Body>,
): Route {
  return managementRoute(method, path, { on: "console" }, spec);
}

/** A route for signed-in users; `path` is complete. Keys may not call it. */
export function sessionRoute<Body extends TObject>(
  method: Method,
  path: string,
  spec: RouteSpec<SessionCall<Static<Body>>, Body>,
): Route {
  return managementRoute(method, path, { on: "session" }, spec);
}
