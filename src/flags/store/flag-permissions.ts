/**
 * Who may edit a flag: everybody, unless the organisation says that flags are for viewing.
 *
 * Source: contract, management-api 3.2 (`user_access_level`) and 3.7.
 */

import { and, eq } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import { flagsAccessLevels, type Organization } from "../../accounts/organizations.ts";
import { role, roleAccess, roleMembership } from "../../accounts/schema.ts";
import { levelOf, membershipLevels } from "../../accounts/users.ts";
import type { Flag } from "../fields.ts";

/** What decides about one user; read once per request, then asked for each flag. */
export interface FlagPermissions {
  userId: number;
  isAdmin: boolean;
  organizationAllowsEditing: boolean;
  /** Highest level among the user's roles; undefined without roles. */
  roleLevel: number | undefined;
  /** Flags that one of the user's roles may edit. */
  grantedFlagIds: ReadonlySet<number>;
}

/** Reads what decides about a user in an organisation. */
export function readFlagPermissions(
  db: Reading,
  organization: Organization,
  userId: number,
): FlagPermissions {
  const roles = db
    .select({ id: role.id, level: role.featureFlagsAccessLevel })
    .from(role)
    .innerJoin(roleMembership, eq(roleMembership.roleId, role.id))
    .where(and(eq(role.organizationId, organization.id), eq(roleMembership.userId, userId)))
    .all();
  const granted = roles.flatMap(({ id }) =>
    db.select({ flagId: roleAccess.flagId }).from(roleAccess).where(eq(roleAccess.roleId, id)).all(),
  );
  return {
    userId,
    isAdmin: levelOf(db, organization.id, userId) >= membershipLevels.admin,
    organizationAllowsEditing: organization.featureFlagsAccessLevel === flagsAccessLevels.edit,
    roleLevel: roles.length === 0 ? undefined : Math.max(...roles.map(({ level }) => level)),
    grantedFlagIds: new Set(granted.map(({ flagId }) => flagId)),
  };
}

/** Whether the user may change the flag. */
export function canEdit(permissions: FlagPermissions, flag: Pick<Flag, "id" | "createdById">): boolean {
  if (mayEditRolesOf(permissions, flag)) return true;
  return permissions.roleLevel === flagsAccessLevels.view && permissions.grantedFlagIds.has(flag.id);
}

/** Whether the user may say which roles edit the flag (contract: management-api 5.8). */
export function mayEditRolesOf(permissions: FlagPermissions, flag: Pick<Flag, "createdById">): boolean {
  return (
    flag.createdById === permissions.userId ||
    permissions.isAdmin ||
    permissions.organizationAllowsEditing ||
    permissions.roleLevel === flagsAccessLevels.edit
  );
}

/** How the API names the user's access to a flag. */
export function accessLevel(
  permissions: FlagPermissions,
  flag: Pick<Flag, "id" | "createdById">,
): "viewer" | "editor" | "manager" {
  if (permissions.isAdmin || flag.createdById === permissions.userId) return "manager";
  return canEdit(permissions, flag) ? "editor" : "viewer";
}
