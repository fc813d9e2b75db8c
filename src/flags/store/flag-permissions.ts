/**
 * Who may edit a flag: every user, unless the organization makes flags view-only.
 *
 * Source: contract, management-api 3.2 (`user_access_level`) and 3.7.
 */

import { and, eq } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import { flagsAccessLevels, type Organization } from "../../accounts/organizations.ts";
import { role, roleAccess, roleMembership } from "../../accounts/schema.ts";
import { getLevel, membershipLevels } from "../../accounts/users.ts";
import type { Flag } from "../fields.ts";

/** Permissions of one user; read once per request, then applied to each flag. */
export interface FlagPermissions {
  userId: number;
  isAdmin: boolean;
  organizationAllowsEditing: boolean;
  /** Highest level among the user's roles; undefined without roles. */
  roleLevel: number | undefined;
  /** Flags that one of the user's roles may edit. */
  grantedFlagIds: ReadonlySet<number>;
}

/** Permissions of the operator at the data directory. */
export const operatorPermissions: FlagPermissions = {
  userId: -1,
  isAdmin: true,
  organizationAllowsEditing: true,
  roleLevel: undefined,
  grantedFlagIds: new Set(),
};

/** Reads a user's permissions in an organization. */
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
    isAdmin: getLevel(db, organization.id, userId) >= membershipLevels.admin,
    organizationAllowsEditing: organization.featureFlagsAccessLevel === flagsAccessLevels.edit,
    roleLevel: roles.length === 0 ? undefined : Math.max(...roles.map(({ level }) => level)),
    grantedFlagIds: new Set(granted.map(({ flagId }) => flagId)),
  };
}

/** Whether the user may change the flag. */
export function canEdit(permissions: FlagPermissions, flag: Pick<Flag, "id" | "createdById">): boolean {
  if (mayEditRoles(permissions, flag)) return true;
  return permissions.roleLevel === flagsAccessLevels.view && permissions.grantedFlagIds.has(flag.id);
}

/** Whether the user may choose the roles that edit the flag (contract: management-api 5.8). */
export function mayEditRoles(permissions: FlagPermissions, flag: Pick<Flag, "createdById">): boolean {
  return (
    flag.createdById === permissions.userId ||
    permissions.isAdmin ||
    permissions.organizationAllowsEditing ||
    permissions.roleLevel === flagsAccessLevels.edit
  );
}

/** The API's name of the user's access to a flag. */
export function accessLevel(
  permissions: FlagPermissions,
  flag: Pick<Flag, "id" | "createdById">,
): "viewer" | "editor" | "manager" {
  if (permissions.isAdmin || flag.createdById === permissions.userId) return "manager";
  return canEdit(permissions, flag) ? "editor" : "viewer";
}
