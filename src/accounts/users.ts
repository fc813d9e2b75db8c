/** People who administer this server, and what they may do in an organisation. */

import { and, asc, eq, ne, or, sql } from "drizzle-orm";
import { InvalidField, NotFound } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { type Author, type Change, recordActivity } from "./activity.ts";
import { bumpRevision, type MetadataDb, type MetadataTx, type Reading } from "./db.ts";
import { membership, organization, personalKey, session, setupLink, user } from "./schema.ts";

export interface User {
  id: number;
  uuid: string;
  distinctId: string;
  email: string;
  firstName: string;
  lastName: string;
  isEmailVerified: boolean | null;
  roleAtOrganization: string | null;
  hedgehogConfig: JsonObject | null;
  /** A deactivated user's keys and sessions do nothing. */
  isActive: boolean;
  currentProjectId: number | null;
  currentOrganizationId: string | null;
  createdAt: Date;
}

/** Levels of a membership (contract: management-api 2.6). */
export const membershipLevels = { member: 1, admin: 8, owner: 15 } as const;
export type LevelName = keyof typeof membershipLevels;

export interface Member {
  id: string;
  organizationId: string;
  user: User;
  level: number;
  joinedAt: Date;
  updatedAt: Date;
}

/** The user with this id. */
export function findUser(db: Reading, id: number): User | undefined {
  return db.select().from(user).where(eq(user.id, id)).get();
}

/** The user with this address, whatever its letter case. */
export function findUserByEmail(db: Reading, email: string): User | undefined {
  return db.select().from(user).where(eq(user.email, email.trim())).get();
}

/** Every user, in order of creation. */
export function listUsers(db: Reading): User[] {
  return db.select().from(user).orderBy(asc(user.id)).all();
}

export type UserFinder = (id: number | null) => User | undefined;

/** Finds users by id, each once: for lists whose items name users. */
export function userFinder(db: Reading): UserFinder {
  const known = new Map<number, User | undefined>();
  return (id) => {
    if (id === null) return undefined;
    if (!known.has(id)) known.set(id, findUser(db, id));
    return known.get(id);
  };
}

/** Level of a user in an organisation; 0 when not a member. */
export function levelOf(db: Reading, organizationId: string, userId: number): number {
  const found = db
    .select({ level: membership.level })
    .from(membership)
    .where(and(eq(membership.organizationId, organizationId), eq(membership.userId, userId)))
    .get();
  return found?.level ?? 0;
}

/** Whether a user looks after the whole server: an owner of the organisation that was there first. */
export function isOperator(db: Reading, userId: number): boolean {
  const first = db
    .select({ id: organization.id })
    .from(organization)
    .orderBy(asc(organization.createdAt), asc(organization.id))
    .limit(1)
    .get();
  return first !== undefined && levelOf(db, first.id, userId) >= membershipLevels.owner;
}

/** The members of an organisation, in order of joining. */
export function listMembers(db: Reading, organizationId: string): Member[] {
  return db
    .select()
    .from(membership)
    .innerJoin(user, eq(user.id, membership.userId))
    .where(eq(membership.organizationId, organizationId))
    .orderBy(asc(membership.joinedAt), asc(user.id))
    .all()
    .map((row) => ({ ...row.membership, user: row.user }));
}

export interface NewUser {
  email: string;
  organizationId: string;
  level: LevelName;
  firstName?: string;
  lastName?: string;
}

/**
 * Adds a user to an organisation.
 *
 * @throws {InvalidField} the address is not one, or is taken.
 */
export function createUser(metadata: MetadataDb, input: NewUser & { by?: Author }, now = new Date()): User {
  const { by = null, ...fields } = input;
  return metadata.change((t) => {
    bumpRevision(t, "keys");
    const created = insertUser(t, fields, now);
    recordUser(t, created, "created", { organizationId: input.organizationId, by }, now);
    return created;
  });
}

/** As `createUser`, inside a transaction. */
export function insertUser(t: MetadataTx, input: NewUser, now: Date): User {
  const email = input.email.trim();
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) {
    throw new InvalidField("email", "invalid_input", "Enter a valid email address.");
  }
  if (findUserByEmail(t, email)) {
    throw new InvalidField("email", "unique", "There is already a user with this email address.");
  }
  const created = t
    .insert(user)
    .values({
      uuid: Bun.randomUUIDv7(),
      distinctId: Bun.randomUUIDv7(),
      email,
      firstName: input.firstName ?? email.slice(0, email.indexOf("@")),
      lastName: input.lastName ?? "",
      currentOrganizationId: input.organizationId,
      createdAt: now,
    })
    .returning()
    .get();
  t.insert(membership)
    .values({
      id: Bun.randomUUIDv7(),
      organizationId: input.organizationId,
      userId: created.id,
      level: membershipLevels[input.level],
      joinedAt: now,
      updatedAt: now,
    })
    .run();
  return created;
}

/**
 * Switches a user off (or on again); all keys and sessions of a switched-off user stop working at once.
 *
 * @throws {NotFound} nobody has this address.
 */
export function setUserActive(
  metadata: MetadataDb,
  email: string,
  isActive: boolean,
  by: Author = null,
  now = new Date(),
): User {
  return metadata.change((t) => {
    const before = findUserByEmail(t, email);
    if (!before) throw new NotFound(`There is no user with the address ${email}.`);
    if (before.isActive === isActive) return before;
    const found = t.update(user).set({ isActive }).where(eq(user.id, before.id)).returning().get();
    if (!isActive) endSessionsAndLinks(t, found.id);
    bumpRevision(t, "keys");
    const at = { organizationId: before.currentOrganizationId, by };
    recordUser(t, found, isActive ? "activated" : "deactivated", at, now);
    return found;
  });
}

/** Ends the sessions of a deactivated user, inside a transaction: otherwise they would work again once the user is active. */
export function endSessionsAndLinks(t: MetadataTx, userId: number): void {
  t.delete(session).where(eq(session.userId, userId)).run();
  endLinks(t, userId);
}

/** Revokes the one-time links for a user, and those that the user created, inside a transaction. */
export function endLinks(t: MetadataTx, userId: number): void {
  t.delete(setupLink)
    .where(or(eq(setupLink.userId, userId), eq(setupLink.createdById, userId)))
    .run();
}

/** @throws {InvalidField} the member is the last active owner of the organisation. */
export function requireAnotherOwner(
  db: Reading,
  member: Pick<Member, "id" | "level" | "organizationId">,
): void {
  if (member.level < membershipLevels.owner) return;
  const others = db
    .select()
    .from(membership)
    .innerJoin(user, eq(user.id, membership.userId))
    .where(
      and(
        eq(membership.organizationId, member.organizationId),
        eq(membership.level, membershipLevels.owner),
        eq(user.isActive, true),
        ne(membership.id, member.id),
      ),
    )
    .all();
  if (others.length > 0) return;
  throw new InvalidField(null, "last_owner", "An organization needs an owner: make somebody else one first.");
}

/** Before a user is switched off. @throws {InvalidField} it is the last active owner of one. */
export function requireNotLastOwner(db: Reading, email: string): void {
  const found = findUserByEmail(db, email);
  if (!found?.isActive) return;
  const own = db.select().from(membership).where(eq(membership.userId, found.id)).all();
  for (const member of own) requireAnotherOwner(db, member);
}

/** What users may change about themselves. */
export type UserChange = Partial<
  Pick<
    User,
    | "firstName"
    | "lastName"
    | "roleAtOrganization"
    | "hedgehogConfig"
    | "currentProjectId"
    | "currentOrganizationId"
  >
>;

/** Changes a user; absent fields stay. The caller has checked that the user belongs to the project and organisation. */
export function updateUser(metadata: MetadataDb, userId: number, change: UserChange): User {
  const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  return metadata.change((t) => {
    const before = t.select().from(user).where(eq(user.id, userId)).get()!;
    if (Object.keys(set).length === 0) return before;
    bumpRevision(t, "keys");
    return t.update(user).set(set).where(eq(user.id, userId)).returning().get();
  });
}

/** Writes an entry about a user. @param at.by who acts. */
export function recordUser(
  t: MetadataTx,
  of: User,
  activity: string,
  at: { organizationId: string | null; by: Author },
  now: Date,
  changes: Change[] = [],
): void {
  recordActivity(t, {
    by: at.by,
    organizationId: at.organizationId ?? undefined,
    activity,
    scope: "User",
    itemId: of.id,
    name: of.email,
    changes,
    now,
  });
}

/** How many keys that still work a user has. */
export function countKeys(db: Reading, userId: number): number {
  return (
    db
      .select({ count: sql<number>`count(*)` })
      .from(personalKey)
      .where(and(eq(personalKey.userId, userId), sql`revoked_at IS NULL`))
      .get()?.count ?? 0
  );
}
