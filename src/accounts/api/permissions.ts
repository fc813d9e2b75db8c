/** Permissions that are checked beyond a route's scope (contract: management-api 2.2, 2.7). */

import { permissionDenied } from "../../http/http-error.ts";
import { PermissionDeniedError } from "../../lib/errors.ts";
import { allows, type KeyRestrictions } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import type { Scope } from "../route-scopes.ts";
import { getLevel, membershipLevels } from "../users.ts";

/** @throws {HttpError} 403: the key is limited to other organizations. */
export function checkOrganizationLimit(key: KeyRestrictions, organizationId: string): void {
  if (key.organizationIds.length === 0 || key.organizationIds.includes(organizationId)) return;
  throw permissionDenied(`API key does not have access to the requested organization: ID ${organizationId}.`);
}

/** @throws {HttpError} 403: the key or session has no scope at all, or not one of these scopes. */
export function checkScopes(key: KeyRestrictions, wanted: readonly string[]): void {
  if (wanted.length === 0 && key.scopes.length > 0) return;
  if (wanted.some((scope) => allows(key.scopes, scope as Scope))) return;
  throw permissionDenied(
    wanted.length === 0 ? "API key has no scopes." : `API key missing required scope '${wanted[0]}'`,
  );
}

/** @throws {PermissionDeniedError} the caller is a plain member. */
export function checkAdmin(
  deps: { metadata: Metadata },
  call: { user: { id: number }; organization: { id: string } },
): void {
  if (getLevel(deps.metadata.db, call.organization.id, call.user.id) >= membershipLevels.admin) return;
  throw new PermissionDeniedError("You need to have admin level or higher.");
}

/**
 * Checks a grant of flag editing to others: a key grants at most its own permissions (contract: management-api 2.7).
 *
 * @throws {HttpError} 403.
 */
export function checkMayGrantFlags(limits: KeyRestrictions): void {
  checkScopes(limits, ["feature_flag:write"]);
}
