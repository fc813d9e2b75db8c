/**
 * Authentication and authorization of requests.
 *
 * Source: contract, management-api 2.1 to 2.3, decision 15; sdk-compat 4.4 for the choice of the project.
 */

import { authenticationFailed, notAuthenticated, notFound, permissionDenied } from "../../http/http-error.ts";
import { readUuid } from "../../http/params.ts";
import type { Access, Credentials, Guard } from "../../http/route.ts";
import { currentOrganization, currentProject } from "../current.ts";
import { authenticate } from "../key-index.ts";
import { isUnlimited, type KeyRestrictions } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { findOrganization, type Organization } from "../organizations.ts";
import type { PersonalKey } from "../personal-keys.ts";
import type { Project } from "../project-directory.ts";
import { getSession, isFromConsole } from "../sessions/cookie.ts";
import { confirmedUntil, type Session } from "../sessions/sessions.ts";
import { getLevel, type User } from "../users.ts";
import { checkOrganizationLimit, checkScopes } from "./permissions.ts";

/** An authenticated caller. */
export type Caller =
  | { kind: "personal"; key: PersonalKey; user: User; limits: KeyRestrictions }
  /** A user who is signed in to the console. */
  | { kind: "session"; session: Session; user: User; limits: KeyRestrictions }
  /** A project's secret key: only for its specific purpose. */
  | { kind: "project_secret"; project: Project };

export function getGuard(metadata: Metadata): Guard {
  return {
    identify(access, credentials) {
      identify(metadata, credentials, { takesSecretKey: access.on === "project" });
    },
    authorize(access, credentials) {
      const { caller, project, organization } = authorize(metadata, access, credentials);
      const parts = { caller, project, organization };
      if (caller === undefined || caller.kind === "project_secret")
        return { parts, isConfirmed: true, hasFullAccess: false };
      const { kind: _, ...person } = caller;
      return {
        parts: { ...parts, ...person },
        callerId: caller.kind === "session" ? caller.session.id : caller.key.id,
        isConfirmed: caller.kind !== "session" || confirmedUntil(caller.session, credentials.now) !== null,
        hasFullAccess: isUnlimited(caller.limits),
      };
    },
  };
}

/** Result of `authorize`. */
interface Authorized {
  caller: Caller | undefined;
  project: Project | undefined;
  organization: Organization | undefined;
}

/**
 * Authenticates by the Authorization header, else by the console's cookie. Keys in URLs and bodies are not accepted:
 * those end up in logs.
 *
 * @throws {HttpError} 401.
 */
function identify(
  metadata: Metadata,
  { request, baseUrl, now }: Credentials,
  options: { takesSecretKey: boolean },
): Caller {
  const authorization = request.headers.get("authorization");
  if (authorization === null) {
    const signedIn = getSession(metadata, request, baseUrl, now);
    if (signedIn !== undefined) return { kind: "session", ...signedIn };
  }
  const [, key] = /^Bearer\s+(\S+)\s*$/i.exec(authorization ?? "") ?? [];
  if (key === undefined) {
    if (/^ph[xs]_\S+$/.test(authorization ?? ""))
      throw authenticationFailed('Write "Bearer " before the key in the Authorization header.');
    throw notAuthenticated();
  }
  if (options.takesSecretKey && key.startsWith("phs_")) {
    const project = metadata.projects.findBySecretToken(key);
    if (project) return { kind: "project_secret", project };
  }
  const owner = authenticate(metadata, key, now);
  if (!owner) {
    const meant = key.startsWith("phc_")
      ? " It is the public key of a project, which is for events and flags. Use a personal key (phx_…)."
      : "";
    throw authenticationFailed(`Personal API key found in request Authorization header is invalid.${meant}`);
  }
  return { kind: "personal", ...owner, limits: owner.key };
}

/**
 * Checks in the contract's order: the caller, the project, the limits of the key, its scopes, the membership.
 *
 * @throws {HttpError} 401, 403 or 404.
 */
function authorize(metadata: Metadata, access: Access, credentials: Credentials): Authorized {
  if (access.on === "public") return anonymous;
  if (access.on === "console") {
    if (!isFromConsole(credentials.request, credentials.baseUrl)) throw permissionDenied(onlyConsole);
    return anonymous;
  }
  const takesSecretKey = access.on === "project" && access.takesSecretKey === true;
  const caller = identify(metadata, credentials, { takesSecretKey });
  if (access.on === "project") {
    const project = getProject(metadata, access, caller, credentials);
    checkProject(metadata, access, caller, project);
    return { caller, project, organization: undefined };
  }
  if (caller.kind === "project_secret") throw notAuthenticated();
  if (access.on === "session") {
    if (caller.kind !== "session") throw permissionDenied("This endpoint requires a console session.");
    return { caller, project: undefined, organization: undefined };
  }
  if (access.on === "organization") {
    const organization = getOrganization(metadata, caller, readUuid(credentials.params, "organization_id"));
    if (caller.limits.projectIds.length > 0) throw permissionDenied(onlyProjectRoutes);
    checkOrganizationLimit(caller.limits, organization.id);
    checkScopes(caller.limits, access.scopes);
    if (getLevel(metadata.db, organization.id, caller.user.id) === 0) {
      throw permissionDenied("You do not have permission to perform this action.");
    }
    return { caller, project: undefined, organization };
  }
  if (!access.allowsScopedKeys && caller.limits.projectIds.length > 0) {
    throw permissionDenied(onlyProjectRoutes);
  }
  if (access.needsFullAccess && !isUnlimited(caller.limits)) {
    throw permissionDenied("This action does not support personal API key access");
  }
  checkScopes(caller.limits, access.scopes);
  return { caller, project: undefined, organization: undefined };
}

const anonymous: Authorized = { caller: undefined, project: undefined, organization: undefined };
const onlyConsole =
  "This endpoint is for the console only: send X-Flagkeep-Console: 1 from a page of this server.";
const onlyProjectRoutes = "API keys with scoped projects are only supported on project-based endpoints.";

/** The requested project: in reads `?token=` takes precedence over the path; default: the caller's current project. */
function getProject(
  metadata: Metadata,
  access: Access & { on: "project" },
  caller: Caller,
  { request, params, query }: Credentials,
): Project {
  const isReading = request.method === "GET" || request.method === "HEAD";
  const named = params.project_id;
  if (isReading || named === undefined) {
    const token =
      query.get("token") ||
      query.get("api_key") ||
      (access.takesProjectHeader ? request.headers.get("x-posthog-project-api-key") : null);
    if (token) {
      const project = metadata.projects.findByToken(token);
      if (!project) throw authenticationFailed("The project API key in the request is invalid.");
      return project;
    }
  }
  const id = named === undefined || named === "@current" ? currentProjectId(metadata, caller) : toId(named);
  const project = id === undefined ? undefined : metadata.projects.find(id);
  if (!project || (project.archivedAt && !access.takesArchived)) throw notFound("Project not found.");
  const organization = readUuid(params, "organization_id") || "@current";
  if (organization !== "@current" && organization !== project.organizationId) {
    throw notFound("Project not found.");
  }
  return project;
}

function currentProjectId(metadata: Metadata, caller: Caller): number | undefined {
  if (caller.kind === "project_secret") return caller.project.id;
  if (caller.limits.projectIds.length === 1) return caller.limits.projectIds[0];
  return currentProject(metadata, caller.user)?.id;
}

function checkProject(
  metadata: Metadata,
  access: Access & { on: "project" },
  caller: Caller,
  project: Project,
): void {
  if (caller.kind === "project_secret") {
    if (caller.project.id !== project.id) throw permissionDenied("You don't have access to the project.");
    return;
  }
  const { limits: key, user } = caller;
  if (key.projectIds.length > 0 && !key.projectIds.includes(project.id)) {
    throw permissionDenied(`API key does not have access to the requested project: ID ${project.id}.`);
  }
  checkOrganizationLimit(key, project.organizationId);
  checkScopes(key, access.scopes);
  for (const scope of access.alsoNeeds ?? []) checkScopes(key, [scope]);
  if (getLevel(metadata.db, project.organizationId, user.id) === 0) {
    throw permissionDenied("You don't have access to the project.");
  }
}

function getOrganization(
  metadata: Metadata,
  caller: Exclude<Caller, { kind: "project_secret" }>,
  named: string,
): Organization {
  if (named !== "@current") {
    const organization = findOrganization(metadata.db, named);
    if (!organization) throw notFound("Organization not found.");
    return organization;
  }
  const current = currentOrganization(metadata, caller.user);
  if (!current) throw notFound("Organization not found.");
  return current;
}

function toId(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
