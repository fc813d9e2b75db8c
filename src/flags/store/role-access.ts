/** Which roles may edit which flag (requirement: Feature flag role access; contract: management-api 5.8). */

import { and, asc, eq, sql } from "drizzle-orm";
import type { Author } from "../../accounts/activity.ts";
import type { Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { findRole, type Role, recordRoleAccess, rolesById } from "../../accounts/roles.ts";
import { roleAccess } from "../../accounts/schema.ts";
import { InvalidFieldError, NotFoundError } from "../../lib/errors.ts";
import type { Flag } from "../fields.ts";

export interface RoleAccess {
  id: number;
  flagId: number;
  role: Role;
  addedAt: Date;
  updatedAt: Date;
}

/** The records of one flag, oldest first. */
export function listRoleAccess(
  db: Reading,
  flagId: number,
  page: { limit: number; offset: number },
): { records: RoleAccess[]; count: number } {
  const own = eq(roleAccess.flagId, flagId);
  const count = db.select({ count: sql<number>`count(*)` }).from(roleAccess).where(own).get()!.count;
  const rows = db
    .select()
    .from(roleAccess)
    .where(own)
    .orderBy(asc(roleAccess.id))
    .limit(page.limit)
    .offset(page.offset)
    .all();
  const roles = rolesById(
    db,
    rows.map((row) => row.roleId),
  );
  return { records: rows.map((row) => ({ ...row, role: roles.get(row.roleId)! })), count };
}

/** One record of one flag. */
export function findRoleAccess(db: Reading, flagId: number, id: number): RoleAccess | undefined {
  const row = db
    .select()
    .from(roleAccess)
    .where(and(eq(roleAccess.flagId, flagId), eq(roleAccess.id, id)))
    .get();
  return row && { ...row, role: rolesById(db, [row.roleId]).get(row.roleId)! };
}

/**
 * Allows a role to edit a flag.
 *
 * @throws {InvalidFieldError} on `role_id`: no such role in the organization, or it has the record already.
 */
export function addRoleAccess(
  metadata: Metadata,
  target: { flag: Flag; organizationId: string; roleId: string; by: Author },
  now: Date,
): RoleAccess {
  return metadata.change((t) => {
    const role = findRole(t, target.organizationId, target.roleId);
    if (!role) {
      const detail = `Invalid pk "${target.roleId}" - object does not exist.`;
      throw new InvalidFieldError("role_id", "does_not_exist", detail);
    }
    const known = t
      .select({ id: roleAccess.id })
      .from(roleAccess)
      .where(and(eq(roleAccess.flagId, target.flag.id), eq(roleAccess.roleId, role.id)))
      .get();
    if (known) {
      throw new InvalidFieldError("role_id", "unique", "This role already has access to the feature flag.");
    }
    const row = t
      .insert(roleAccess)
      .values({ flagId: target.flag.id, roleId: role.id, addedAt: now, updatedAt: now })
      .returning()
      .get();
    recordRoleAccess(t, target.flag, role.name, "created", target.by, now);
    return { ...row, role };
  });
}

/** Revokes a role's permission to edit a flag. @throws {NotFoundError} */
export function removeRoleAccess(
  metadata: Metadata,
  target: { flag: Flag; id: number; by: Author },
  now: Date,
): void {
  metadata.change((t) => {
    const known = findRoleAccess(t, target.flag.id, target.id);
    if (!known) throw new NotFoundError();
    t.delete(roleAccess).where(eq(roleAccess.id, target.id)).run();
    recordRoleAccess(t, target.flag, known.role.name, "deleted", target.by, now);
  });
}
