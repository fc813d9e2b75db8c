/** Members of an organization and their levels: a user cannot change levels above their own. */

import { and, eq, ne } from "drizzle-orm";
import { InvalidFieldError, NotFoundError, PermissionDeniedError } from "../../lib/errors.ts";
import { type Author, changesBetween, recordActivity } from "../activity.ts";
import { bumpRevision, type MetadataTx, type Reading } from "../db.ts";
import type { Metadata } from "../metadata.ts";
import { listKeys, type PersonalKey } from "../personal-keys.ts";
import { leaveRoles } from "../roles.ts";
import { membership, setupLink, user } from "../schema.ts";
import {
  assertAnotherOwner,
  endLinks,
  endSessionsAndLinks,
  findUserByEmail,
  getLevel,
  insertUser,
  type LevelName,
  type Member,
  membershipLevels,
  recordUser,
  type User,
} from "../users.ts";
import { getPassword, insertSetupLink } from "./setup-links.ts";

/** Author and organization of a change. */
export interface Actor {
  organizationId: string;
  /** The acting user, whose level limits the change; absent: the server's operator, without a limit. */
  user?: User | undefined;
  /** For the activity log. */
  by: Author;
  /** The personal key of the request, or of its session. */
  keyId: string | null;
  now: Date;
}

/** The part of it that the activity log needs. */
type ByAuthor = Pick<Actor, "organizationId" | "by" | "now">;

/** A one-time link's token. */
export interface Invitation {
  token: string;
  expiresAt: Date;
}

const levelNames = new Map<number, LevelName>(
  Object.entries(membershipLevels).map(([name, level]) => [level, name as LevelName]),
);

/**
 * Adds a user to an organization.
 *
 * @returns with an invitation, unless the user could sign in already.
 * @throws {PermissionDeniedError} not an admin, or the level is above one's own. @throws {InvalidFieldError} the
 *   address.
 */
export function addMember(
  metadata: Metadata,
  { organizationId, user: acting, by, keyId, now }: Actor,
  input: { email: string; level: number; firstName?: string; lastName?: string },
): { member: Member; invitation: Invitation | undefined } {
  return metadata.change((t) => {
    const own = assertAdmin(t, organizationId, acting);
    assertLevel(own, input.level);
    const known = findUserByEmail(t, input.email);
    if (known !== undefined && getLevel(t, organizationId, known.id) > 0) {
      throw new InvalidFieldError("email", "unique", "This user is already a member.");
    }
    const level = levelNames.get(input.level)!;
    const added = known ?? insertUser(t, { ...input, level, organizationId }, now);
    if (known !== undefined) {
      // Versions before this check kept the roles of removed members.
      leaveRoles(t, { organizationId, userId: known.id, by }, now);
      t.insert(membership)
        .values({
          id: Bun.randomUUIDv7(),
          organizationId,
          userId: known.id,
          level: input.level,
          joinedAt: now,
          updatedAt: now,
        })
        .run();
    }
    bumpRevision(t, "keys");
    recordUser(t, added, "created", { organizationId, by }, now);
    // A link signs in as its user, so existing users of other organizations never get one.
    const invitation =
      known === undefined ? insertSetupLink(t, added.id, linkCreator(acting, keyId), now) : undefined;
    return { member: getMember(t, organizationId, added.uuid), invitation };
  });
}

/**
 * Creates a one-time link for a member, and revokes the earlier ones.
 *
 * @throws {PermissionDeniedError} not an admin, or the member is above one's own level, or belongs to another
 *   organization too.
 */
export function inviteMember(
  metadata: Metadata,
  { organizationId, user: acting, by, keyId, now }: Actor,
  id: string,
): Invitation {
  return metadata.change((t) => {
    const own = assertAdmin(t, organizationId, acting);
    const { user, level } = getMember(t, organizationId, id);
    assertLevel(own, level);
    if (acting !== undefined) assertOnlyHere(t, organizationId, user);
    if (!user.isActive) throw new InvalidFieldError("user", "inactive", `${user.email} is deactivated.`);
    t.delete(setupLink).where(eq(setupLink.userId, user.id)).run();
    recordUser(t, user, "link_created", { organizationId, by }, now);
    return insertSetupLink(t, user.id, linkCreator(acting, keyId), now);
  });
}

/**
 * Whether a change gives a member permissions: a higher level, or reactivation.
 *
 * @throws {NotFoundError} no such member.
 */
export function isGranting(
  db: Reading,
  organizationId: string,
  id: string,
  change: { level?: number; isActive?: boolean },
): boolean {
  const { level, user: of } = getMember(db, organizationId, id);
  return (change.level ?? level) > level || (change.isActive === true && !of.isActive);
}

/**
 * Changes the level of a member, or deactivates or reactivates the user.
 *
 * @throws {PermissionDeniedError} not an admin, or the member or the new level is above one's own.
 * @throws {InvalidFieldError} the organization would have no owner.
 */
export function updateMember(
  metadata: Metadata,
  { organizationId, user: acting, by, now }: Actor,
  id: string,
  change: { level?: number; isActive?: boolean },
): Member {
  return metadata.change((t) => {
    const own = assertAdmin(t, organizationId, acting);
    const before = getMember(t, organizationId, id);
    assertLevel(own, before.level);
    const level = change.level ?? before.level;
    assertLevel(own, level);
    const isActive = change.isActive ?? before.user.isActive;
    if (level < membershipLevels.owner || !isActive) assertAnotherOwner(t, before);
    if (level !== before.level) changeLevel(t, before, level, { organizationId, by, now });
    if (isActive !== before.user.isActive) {
      if (acting !== undefined) assertOnlyHere(t, organizationId, before.user);
      t.update(user).set({ isActive }).where(eq(user.id, before.user.id)).run();
      if (!isActive) endSessionsAndLinks(t, before.user.id);
      const activity = isActive ? "activated" : "deactivated";
      recordUser(t, before.user, activity, { organizationId, by }, now);
    }
    bumpRevision(t, "keys");
    return getMember(t, organizationId, id);
  });
}

/** Changes the level as the server's operator. @throws {InvalidFieldError} @throws {NotFoundError} no such member. */
export function setMemberLevel(
  metadata: Metadata,
  { organizationId, by, now }: ByAuthor,
  email: string,
  name: LevelName,
): Member {
  return metadata.change((t) => {
    const found = findUserByEmail(t, email);
    if (found === undefined || getLevel(t, organizationId, found.id) === 0)
      throw new NotFoundError(`${email} is not a member of the organization.`);
    const before = getMember(t, organizationId, found.uuid);
    const level = membershipLevels[name];
    if (level < membershipLevels.owner) assertAnotherOwner(t, before);
    if (level !== before.level) changeLevel(t, before, level, { organizationId, by, now });
    bumpRevision(t, "keys");
    return getMember(t, organizationId, found.uuid);
  });
}

function changeLevel(
  t: MetadataTx,
  before: Member,
  level: number,
  { organizationId, by, now }: ByAuthor,
): void {
  t.update(membership).set({ level, updatedAt: now }).where(eq(membership.id, before.id)).run();
  recordUser(t, before.user, "updated", { organizationId, by }, now, [
    ...changesBetween("User", { level: before.level }, { level }, ["level"]),
  ]);
}

/**
 * Removes a member from an organization and its roles; keys and sessions of that user lose access to it.
 *
 * @throws {PermissionDeniedError} not an admin and not oneself, or the member is above one's own level.
 * @throws {InvalidFieldError} it is the last owner.
 */
export function removeMember(
  metadata: Metadata,
  { organizationId, user: acting, by, now }: Actor,
  id: string,
): void {
  metadata.change((t) => {
    const member = getMember(t, organizationId, id);
    if (member.user.id !== acting?.id) assertLevel(assertAdmin(t, organizationId, acting), member.level);
    assertAnotherOwner(t, member);
    t.delete(membership).where(eq(membership.id, member.id)).run();
    endLinks(t, member.user.id);
    leaveRoles(t, { organizationId, userId: member.user.id, by }, now);
    bumpRevision(t, "keys");
    recordActivity(t, {
      by,
      organizationId,
      activity: "deleted",
      scope: "User",
      itemId: member.user.id,
      name: member.user.email,
      changes: [],
      now,
    });
  });
}

/**
 * The valid keys of a member.
 *
 * @throws {PermissionDeniedError} not an admin, or the member is above one's own level.
 */
export function keysOfMember(
  { db }: Metadata,
  { organizationId, user: acting }: Pick<Actor, "organizationId" | "user">,
  id: string,
): PersonalKey[] {
  const own = assertAdmin(db, organizationId, acting);
  const { user, level } = getMember(db, organizationId, id);
  assertLevel(own, level);
  return listKeys(db, { userId: user.id });
}

/** Finds a member by the user's uuid or the membership's id. @throws {NotFoundError} */
export function getMember(db: Reading, organizationId: string, id: string): Member {
  const rows = db
    .select()
    .from(membership)
    .innerJoin(user, eq(user.id, membership.userId))
    .where(eq(membership.organizationId, organizationId))
    .all();
  const row = rows.find((row) => row.user.uuid === id || row.membership.id === id);
  if (row === undefined) throw new NotFoundError();
  return { ...row.membership, user: row.user };
}

export function hasPassword(db: Reading, userId: number): boolean {
  return getPassword(db, userId) !== undefined;
}

/** The level of the acting user; the operator has an owner's. @throws {PermissionDeniedError} */
function assertAdmin(t: Reading, organizationId: string, acting: User | undefined): number {
  const level = acting === undefined ? membershipLevels.owner : getLevel(t, organizationId, acting.id);
  if (level >= membershipLevels.admin) return level;
  throw new PermissionDeniedError("You need to have admin level or higher.");
}

/** A link loses its effect with the permission of its creator; the operator's never does. */
const linkCreator = (acting: User | undefined, keyId: string | null) =>
  acting === undefined ? null : { userId: acting.id, keyId };

function assertLevel(own: number, level: number): void {
  if (level > own) throw new PermissionDeniedError("Only owners can change an owner.");
}

/** One of several organizations may not change the whole account. */
function assertOnlyHere(t: MetadataTx, organizationId: string, user: User): void {
  const elsewhere = t
    .select()
    .from(membership)
    .where(and(eq(membership.userId, user.id), ne(membership.organizationId, organizationId)))
    .all();
  if (elsewhere.length === 0) return;
  throw new PermissionDeniedError(
    "This user also belongs to another organization. Use the command line on the server.",
  );
}
