/** Users of this server and their levels in organizations. */

import { and, asc, eq, ne, or, sql } from "drizzle-orm";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
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
  /** Keys and sessions of a deactivated user do not work. */
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

export function findUser(db: Reading, id: number): User | undefined {
  return db.select().from(user).where(eq(user.id, id)).get();
}

/** Letter case is ignored. */
export function findUserByEmail(db: Reading, email: string): User | undefined {
  return db.select().from(user).where(eq(user.email, email.trim())).get();
}

/** In order of creation. */
export function listUsers(db: Reading): User[] {
  return db.select().from(user).orderBy(asc(user.id)).all();
}

export type UserFinder = (id: number | null) => User | undefined;

/** Finds users by id, each read once: for lists whose items name users. */
export function userFinder(db: Reading): UserFinder {
  const known = new Map<number, User | undefined>();
  return (id) => {
    if (id === null) return undefined;
    if (!known.has(id)) known.set(id, findUser(db, id));
    return known.get(id);
  };
}

/** 0 when the user is not a member. */
export function getLevel(db: Reading, organizationId: string, userId: number): number {
  const found = db
    .select({ level: membership.level })
    .from(membership)
    .where(and(eq(membership.organizationId, organizationId), eq(membership.userId, userId)))
    .get();
  return found?.level ?? 0;
}

/** Whether a user is an operator of the server: an owner of the oldest organization. */
export function isOperator(db: Reading, userId: number): boolean {
  const first = db
    .select({ id: organization.id })
    .from(organization)
    .orderBy(asc(organization.createdAt), asc(organization.id))
    .limit(1)
    .get();
  return first !== undefined && getLevel(db, first.id, userId) >= membershipLevels.owner;
}

/** In order of joining. */
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
 * Adds a user to an organization.
 *
 * @throws {InvalidFieldError} the address is invalid or taken.
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
    throw new InvalidFieldError("email", "invalid_input", "Enter a valid email address.");
  }
  if (findUserByEmail(t, email)) {
    throw new InvalidFieldError("email", "unique", "A user with this email address already exists.");
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
 * Deactivates or reactivates a user. Keys and sessions of a deactivated user stop working immediately.
 *
 * @throws {NotFoundError} no user has this address.
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
    if (!before) throw new NotFoundError(`User ${email} does not exist.`);
    if (before.isActive === isActive) return before;
    const found = t.update(user).set({ isActive }).where(eq(user.id, before.id)).returning().get();
    if (!isActive) endSessionsAndLinks(t, found.id);
    bumpRevision(t, "keys");
    const at = { organizationId: before.currentOrganizationId, by };
    recordUser(t, found, isActive ? "activated" : "deactivated", at, now);
    return found;
  });
}

/**
 * Ends the sessions of a deactivated user, inside a transaction: otherwise they would work again after reactivation.
 */
export function endSessionsAndLinks(t: MetadataTx, userId: number): void {
  t.delete(session).where(eq(session.userId, userId)).run();
  endLinks(t, userId);
}

/** Revokes the one-time links for a user and those the user created, inside a transaction. */
export function endLinks(t: MetadataTx, userId: number): void {
  t.delete(setupLink)
    .where(or(eq(setupLink.userId, userId), eq(setupLink.createdById, userId)))
    .run();
}

/** @throws {InvalidFieldError} the member is the last active owner of the organization. */
export function assertAnotherOwner(
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
  throw new InvalidFieldError(
    null,
    "last_owner",
    "An organization requires an owner. Make another user an owner first.",
  );
}

/** For deactivation. @throws {InvalidFieldError} the user is the last active owner of an organization. */
export function assertNotLastOwner(db: Reading, email: string): void {
  const found = findUserByEmail(db, email);
  if (!found?.isActive) return;
  const own = db.select().from(membership).where(eq(membership.userId, found.id)).all();
  for (const member of own) assertAnotherOwner(db, member);
}

/** Fields that users may change about themselves. */
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

/** Changes a user; absent fields are unchanged. Callers check that the user belongs to the project and organization. */
export function updateUser(metadata: MetadataDb, userId: number, change: UserChange): User {
  const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  return metadata.change((t) => {
    const before = t.select().from(user).where(eq(user.id, userId)).get()!;
    if (Object.keys(set).length === 0) return before;
    bumpRevision(t, "keys");
    return t.update(user).set(set).where(eq(user.id, userId)).returning().get();
  });
}

/** Records activity about a user. @param at.by the author. */
export function recordUser(
  t: MetadataTx,
  user: User,
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
    itemId: user.id,
    name: user.email,
    changes,
    now,
  });
}

/** Number of a user's valid keys. */
export function countKeys(db: Reading, userId: number): number {
  return (
    db
      .select({ count: sql<number>`count(*)` })
      .from(personalKey)
      .where(and(eq(personalKey.userId, userId), sql`revoked_at IS NULL`))
      .get()?.count ?? 0
  );
}
