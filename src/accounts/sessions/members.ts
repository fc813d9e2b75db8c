/** Who belongs to an organisation, and as what: every change keeps to the level of whoever makes it. */

import { and, eq, ne } from "drizzle-orm";
import { InvalidField, NotFound, NotPermitted } from "../../lib/errors.ts";
import { type Author, changesBetween, recordActivity } from "../activity.ts";
import { bumpRevision, type MetadataTx, type Reading } from "../db.ts";
import type { Metadata } from "../metadata.ts";
import { listKeys, type PersonalKey } from "../personal-keys.ts";
import { leaveRoles } from "../roles.ts";
import { membership, setupLink, user } from "../schema.ts";
import {
  endLinks,
  endSessionsAndLinks,
  findUserByEmail,
  insertUser,
  type LevelName,
  levelOf,
  type Member,
  membershipLevels,
  recordUser,
  requireAnotherOwner,
  type User,
} from "../users.ts";
import { insertSetupLink, passwordOf } from "./setup-links.ts";

/** Who makes a change, and where. */
export interface Acting {
  organizationId: string;
  by: User;
  /** The personal key that was sent, or that the session was created with. */
  keyId: string | null;
  now: Date;
}

/** The same for the server's operator, and for what is recorded. */
type ByAuthor = Pick<Acting, "organizationId" | "now"> & { by: Author };

/** A one-time link's token. */
export interface Invitation {
  token: string;
  expiresAt: Date;
}

const levelNames = new Map<number, LevelName>(
  Object.entries(membershipLevels).map(([name, level]) => [level, name as LevelName]),
);

/**
 * Adds somebody to an organisation.
 *
 * @returns with an invitation, unless the person can sign in already.
 * @throws {NotPermitted} not an admin, or the level is above one's own. @throws {InvalidField} the address.
 */
export function addMember(
  metadata: Metadata,
  { organizationId, by, keyId, now }: Acting,
  input: { email: string; level: number; firstName?: string; lastName?: string },
): { member: Member; invitation: Invitation | undefined } {
  return metadata.change((t) => {
    const own = requireAdmin(t, organizationId, by);
    requireLevel(own, input.level);
    const known = findUserByEmail(t, input.email);
    if (known !== undefined && levelOf(t, organizationId, known.id) > 0) {
      throw new InvalidField("email", "unique", "This person is a member already.");
    }
    const level = levelNames.get(input.level)!;
    const added = known ?? insertUser(t, { ...input, level, organizationId }, now);
    if (known !== undefined) {
      // Earlier versions left the roles of whoever was taken out.
      leaveRoles(t, { organizationId, userId: known.id, by: by.id }, now);
      t.insert(membership)
        .values({
          ...{ id: Bun.randomUUIDv7(), organizationId, userId: known.id, level: input.level },
          ...{ joinedAt: now, updatedAt: now },
        })
        .run();
    }
    bumpRevision(t, "keys");
    recordUser(t, added, "created", { organizationId, by: by.id }, now);
    // A link signs in as the person: nobody gets one for somebody whom others have let in.
    const invitation =
      known === undefined ? insertSetupLink(t, added.id, { userId: by.id, keyId }, now) : undefined;
    return { member: memberOf(t, organizationId, added.uuid), invitation };
  });
}

/**
 * Creates a one-time link for a member, and revokes the earlier ones.
 *
 * @throws {NotPermitted} not an admin, or the member is above one's own level, or belongs to another organization too.
 */
export function inviteMember(
  metadata: Metadata,
  { organizationId, by, keyId, now }: Acting,
  id: string,
): Invitation {
  return metadata.change((t) => {
    const own = requireAdmin(t, organizationId, by);
    const { user: of, level } = memberOf(t, organizationId, id);
    requireLevel(own, level);
    requireOnlyHere(t, organizationId, of);
    if (!of.isActive) throw new InvalidField("user", "inactive", `${of.email} is switched off.`);
    t.delete(setupLink).where(eq(setupLink.userId, of.id)).run();
    recordUser(t, of, "link_created", { organizationId, by: by.id }, now);
    return insertSetupLink(t, of.id, { userId: by.id, keyId }, now);
  });
}

/**
 * Whether a change of a member gives the member permissions: a higher level, or the account back.
 *
 * @throws {NotFound} no such member.
 */
export function isGranting(
  db: Reading,
  organizationId: string,
  id: string,
  change: { level?: number; isActive?: boolean },
): boolean {
  const { level, user: of } = memberOf(db, organizationId, id);
  return (change.level ?? level) > level || (change.isActive === true && !of.isActive);
}

/**
 * Changes the level of a member, or switches the person off or on.
 *
 * @throws {NotPermitted} not an admin, or the member or the wished level is above one's own.
 * @throws {InvalidField} the last owner would be none any more.
 */
export function updateMember(
  metadata: Metadata,
  { organizationId, by, now }: Acting,
  id: string,
  change: { level?: number; isActive?: boolean },
): Member {
  return metadata.change((t) => {
    const own = requireAdmin(t, organizationId, by);
    const before = memberOf(t, organizationId, id);
    requireLevel(own, before.level);
    const level = change.level ?? before.level;
    requireLevel(own, level);
    const isActive = change.isActive ?? before.user.isActive;
    if (level < membershipLevels.owner || !isActive) requireAnotherOwner(t, before);
    if (level !== before.level) changeLevel(t, before, level, { organizationId, by: by.id, now });
    if (isActive !== before.user.isActive) {
      requireOnlyHere(t, organizationId, before.user);
      t.update(user).set({ isActive }).where(eq(user.id, before.user.id)).run();
      if (!isActive) endSessionsAndLinks(t, before.user.id);
      const activity = isActive ? "activated" : "deactivated";
      recordUser(t, before.user, activity, { organizationId, by: by.id }, now);
    }
    bumpRevision(t, "keys");
    return memberOf(t, organizationId, id);
  });
}

/** The same for the level alone, by the server's operator. @throws {InvalidField} @throws {NotFound} no such member. */
export function setMemberLevel(
  metadata: Metadata,
  { organizationId, by, now }: ByAuthor,
  email: string,
  name: LevelName,
): Member {
  return metadata.change((t) => {
    const found = findUserByEmail(t, email);
    if (found === undefined || levelOf(t, organizationId, found.id) === 0)
      throw new NotFound(`${email} is no member of the organization.`);
    const before = memberOf(t, organizationId, found.uuid);
    const level = membershipLevels[name];
    if (level < membershipLevels.owner) requireAnotherOwner(t, before);
    if (level !== before.level) changeLevel(t, before, level, { organizationId, by, now });
    bumpRevision(t, "keys");
    return memberOf(t, organizationId, found.uuid);
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
 * Takes somebody out of an organisation; the roles go with the membership, and keys and sessions of that person reach
 * nothing in it any more.
 *
 * @throws {NotPermitted} not an admin and not oneself, or the member is above one's own level.
 * @throws {InvalidField} it is the last owner.
 */
export function removeMember(metadata: Metadata, { organizationId, by, now }: Acting, id: string): void {
  metadata.change((t) => {
    const member = memberOf(t, organizationId, id);
    if (member.user.id !== by.id) requireLevel(requireAdmin(t, organizationId, by), member.level);
    requireAnotherOwner(t, member);
    t.delete(membership).where(eq(membership.id, member.id)).run();
    endLinks(t, member.user.id);
    leaveRoles(t, { organizationId, userId: member.user.id, by: by.id }, now);
    bumpRevision(t, "keys");
    recordActivity(t, {
      ...{ by: by.id, organizationId, activity: "deleted", scope: "User" },
      ...{ itemId: member.user.id, name: member.user.email, changes: [], now },
    });
  });
}

/**
 * The keys of a member that work.
 *
 * @throws {NotPermitted} not an admin, or the member is above one's own level.
 */
export function keysOfMember({ db }: Metadata, { organizationId, by }: Acting, id: string): PersonalKey[] {
  const own = requireAdmin(db, organizationId, by);
  const { user: of, level } = memberOf(db, organizationId, id);
  requireLevel(own, level);
  return listKeys(db, { userId: of.id });
}

/** A member by the user's uuid, or by the membership's id. @throws {NotFound} */
export function memberOf(db: Reading, organizationId: string, id: string): Member {
  const rows = db
    .select()
    .from(membership)
    .innerJoin(user, eq(user.id, membership.userId))
    .where(eq(membership.organizationId, organizationId))
    .all();
  const row = rows.find((one) => one.user.uuid === id || one.membership.id === id);
  if (row === undefined) throw new NotFound();
  return { ...row.membership, user: row.user };
}

/** Whether a person has chosen a password. */
export function hasPassword(db: Reading, userId: number): boolean {
  return passwordOf(db, userId) !== undefined;
}

function requireAdmin(t: Reading, organizationId: string, by: User): number {
  const level = levelOf(t, organizationId, by.id);
  if (level >= membershipLevels.admin) return level;
  throw new NotPermitted("You need to have admin level or higher.");
}

function requireLevel(own: number, level: number): void {
  if (level > own) throw new NotPermitted("Only an owner can do this with an owner.");
}

/** What is done to the whole account is no affair of one organisation of several. */
function requireOnlyHere(t: MetadataTx, organizationId: string, of: User): void {
  const elsewhere = t
    .select()
    .from(membership)
    .where(and(eq(membership.userId, of.id), ne(membership.organizationId, organizationId)))
    .all();
  if (elsewhere.length === 0) return;
  throw new NotPermitted(
    "This person belongs to another organization too; use the command line of the server.",
  );
}
