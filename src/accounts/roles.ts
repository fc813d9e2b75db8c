/** Roles of an organization and their members (contract: management-api 6.1). */

import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { type Author, changesBetween, getCreatorId, recordActivity } from "./activity.ts";
import type { MetadataTx, Reading } from "./db.ts";
import type { Metadata } from "./metadata.ts";
import { checkedFlagsAccess, findOrganization } from "./organizations.ts";
import { flag, membership, role, roleAccess, roleMembership, user } from "./schema.ts";
import type { User } from "./users.ts";

const nameLengthMax = 200;

export interface Role {
  id: string;
  organizationId: string;
  name: string;
  /** 21: its members view flags; 37: they edit all flags. */
  featureFlagsAccessLevel: number;
  createdById: number | null;
  createdAt: Date;
  /** In order of joining. */
  members: RoleMember[];
}

export interface RoleMember {
  id: string;
  roleId: string;
  user: User;
  joinedAt: Date;
  updatedAt: Date;
}

/** Oldest first. */
export function listRoles(
  db: Reading,
  organizationId: string,
  page: { limit: number; offset: number },
): { roles: Role[]; count: number } {
  const own = eq(role.organizationId, organizationId);
  const count = db.select({ count: sql<number>`count(*)` }).from(role).where(own).get()!.count;
  const rows = db
    .select()
    .from(role)
    .where(own)
    .orderBy(asc(role.createdAt), asc(role.id))
    .limit(page.limit)
    .offset(page.offset)
    .all();
  return { roles: withMembers(db, rows), count };
}

export function findRole(db: Reading, organizationId: string, id: string): Role | undefined {
  const row = db
    .select()
    .from(role)
    .where(and(eq(role.organizationId, organizationId), eq(role.id, id)))
    .get();
  return row && withMembers(db, [row])[0];
}

/** For responses that embed many roles. */
export function rolesById(db: Reading, ids: readonly string[]): Map<string, Role> {
  if (ids.length === 0) return new Map();
  const rows = db
    .select()
    .from(role)
    .where(inArray(role.id, [...new Set(ids)]))
    .all();
  return new Map(withMembers(db, rows).map((found) => [found.id, found]));
}

/**
 * Creates a role with the organization's default access to flags. @throws {InvalidFieldError} name taken or invalid.
 */
export function createRole(
  metadata: Metadata,
  input: { organizationId: string; name: string; by: Author },
  now: Date,
): Role {
  return metadata.change((t) => {
    const organization = findOrganization(t, input.organizationId);
    if (!organization) throw new NotFoundError("Organization not found.");
    const { id } = t
      .insert(role)
      .values({
        id: Bun.randomUUIDv7(),
        organizationId: organization.id,
        name: checkName(t, organization.id, input.name, undefined),
        featureFlagsAccessLevel: organization.featureFlagsAccessLevel,
        createdById: getCreatorId(input.by),
        createdAt: now,
      })
      .returning({ id: role.id })
      .get();
    const created = findRole(t, organization.id, id)!;
    record(t, created, "created", input.by, now);
    return created;
  });
}

/** Renames a role or changes its access to flags. @throws {NotFoundError} @throws {InvalidFieldError} */
export function updateRole(
  metadata: Metadata,
  target: { organizationId: string; id: string; by: Author },
  change: { name?: string; featureFlagsAccessLevel?: number },
  now: Date,
): Role {
  const level = checkedFlagsAccess(change.featureFlagsAccessLevel);
  return metadata.change((t) => {
    const before = getRole(t, target.organizationId, target.id);
    t.update(role)
      .set({
        name:
          change.name === undefined
            ? before.name
            : checkName(t, target.organizationId, change.name, before.id),
        featureFlagsAccessLevel: level ?? before.featureFlagsAccessLevel,
      })
      .where(eq(role.id, before.id))
      .run();
    const after = getRole(t, target.organizationId, target.id);
    record(t, after, "updated", target.by, now, before);
    return after;
  });
}

/** Deletes a role, its memberships and its access records. @throws {NotFoundError} */
export function deleteRole(
  metadata: Metadata,
  target: { organizationId: string; id: string; by: Author },
  now: Date,
): void {
  metadata.change((t) => {
    const before = getRole(t, target.organizationId, target.id);
    const flags = t
      .select({ id: flag.id, key: flag.key, projectId: flag.projectId })
      .from(roleAccess)
      .innerJoin(flag, eq(flag.id, roleAccess.flagId))
      .where(eq(roleAccess.roleId, before.id))
      .all();
    t.delete(role).where(eq(role.id, before.id)).run();
    record(t, before, "deleted", target.by, now);
    for (const flag of flags) recordRoleAccess(t, flag, before.name, "deleted", target.by, now);
  });
}

/** Records a change of a role's edit access in the flag's own activity log (decision 24). */
export function recordRoleAccess(
  t: MetadataTx,
  flag: { id: number; key: string; projectId: number },
  roleName: string,
  action: "created" | "deleted",
  by: Author,
  now: Date,
): void {
  const [before, after] = action === "created" ? [null, roleName] : [roleName, null];
  recordActivity(t, {
    by,
    projectId: flag.projectId,
    activity: "updated",
    scope: "FeatureFlag",
    itemId: flag.id,
    name: flag.key,
    changes: [{ type: "FeatureFlag", action, field: "role_access", before, after }],
    now,
  });
}

/**
 * Adds a member of the organization to a role. @throws {NotFoundError} @throws {InvalidFieldError} not about a field.
 */
export function addRoleMember(
  metadata: Metadata,
  target: { organizationId: string; roleId: string; userUuid: string; by: Author },
  now: Date,
): RoleMember {
  return metadata.change((t) => {
    const found = getRole(t, target.organizationId, target.roleId);
    const person = t
      .select({ user })
      .from(user)
      .innerJoin(membership, eq(membership.userId, user.id))
      .where(and(eq(user.uuid, target.userUuid), eq(membership.organizationId, target.organizationId)))
      .get()?.user;
    if (!person) throw new InvalidFieldError(null, "invalid_input", "User does not exist.");
    if (found.members.some((member) => member.user.id === person.id)) {
      throw new InvalidFieldError(null, "invalid_input", "User is already part of the role.");
    }
    const row = t
      .insert(roleMembership)
      .values({
        id: Bun.randomUUIDv7(),
        roleId: found.id,
        userId: person.id,
        joinedAt: now,
        updatedAt: now,
      })
      .returning()
      .get();
    record(t, getRole(t, target.organizationId, target.roleId), "updated", target.by, now, found);
    return { ...row, user: person };
  });
}

/** @throws {NotFoundError} */
export function removeRoleMember(
  metadata: Metadata,
  target: { organizationId: string; roleId: string; id: string; by: Author },
  now: Date,
): void {
  metadata.change((t) => {
    const found = getRole(t, target.organizationId, target.roleId);
    if (!found.members.some((member) => member.id === target.id)) throw new NotFoundError();
    leaveRole(t, found, target.id, target.by, now);
  });
}

/** Removes a former member from all roles of the organization, inside a transaction. */
export function leaveRoles(
  t: MetadataTx,
  target: { organizationId: string; userId: number; by: Author },
  now: Date,
): void {
  const own = t
    .select({ id: roleMembership.id, roleId: role.id })
    .from(roleMembership)
    .innerJoin(role, eq(role.id, roleMembership.roleId))
    .where(and(eq(role.organizationId, target.organizationId), eq(roleMembership.userId, target.userId)))
    .all();
  for (const { id, roleId } of own)
    leaveRole(t, getRole(t, target.organizationId, roleId), id, target.by, now);
}

function leaveRole(t: MetadataTx, before: Role, membershipId: string, by: Author, now: Date): void {
  t.delete(roleMembership).where(eq(roleMembership.id, membershipId)).run();
  record(t, getRole(t, before.organizationId, before.id), "updated", by, now, before);
}

function getRole(t: Reading, organizationId: string, id: string): Role {
  const found = findRole(t, organizationId, id);
  if (!found) throw new NotFoundError();
  return found;
}

function withMembers(db: Reading, rows: readonly (typeof role.$inferSelect)[]): Role[] {
  if (rows.length === 0) return [];
  const members = db
    .select()
    .from(roleMembership)
    .innerJoin(user, eq(user.id, roleMembership.userId))
    .where(
      inArray(
        roleMembership.roleId,
        rows.map(({ id }) => id),
      ),
    )
    .orderBy(asc(roleMembership.joinedAt), asc(roleMembership.id))
    .all()
    .map((row) => ({ ...row.role_membership, user: row.user }));
  return rows.map((row) => ({ ...row, members: members.filter((member) => member.roleId === row.id) }));
}

/** Names must differ by more than letter case (the column's collation). */
function checkName(t: MetadataTx, organizationId: string, name: string, ownId: string | undefined): string {
  const trimmed = trimmedString("name", name, nameLengthMax);
  const holder = t
    .select({ id: role.id })
    .from(role)
    .where(and(eq(role.organizationId, organizationId), eq(role.name, trimmed)))
    .get();
  if (holder && holder.id !== ownId) {
    throw new InvalidFieldError("name", "unique", "There is already a role with this name.");
  }
  return trimmed;
}

/** @param before the previous state, for updates. */
function record(
  t: MetadataTx,
  role: Role,
  activity: string,
  by: Author,
  now: Date,
  before: Role = role,
): void {
  recordActivity(t, {
    by,
    organizationId: role.organizationId,
    activity,
    scope: "Role",
    itemId: role.id,
    name: role.name,
    changes: changesBetween("Role", shown(before), shown(role), Object.keys(shown(role))),
    now,
  });
}

function shown(role: Role): JsonObject {
  return {
    name: role.name,
    feature_flags_access_level: role.featureFlagsAccessLevel,
    members: role.members.map((member) => member.user.email),
  };
}
