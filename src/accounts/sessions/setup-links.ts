/**
 * One-time links with which a person sets a password: the first owner, a new colleague, somebody who forgot it.
 *
 * The token stands behind `#`, which browsers send to nobody, so that no proxy logs it.
 */

import { and, desc, eq, gt, lte } from "drizzle-orm";
import { InvalidField, NotFound } from "../../lib/errors.ts";
import { type Author, recordActivity } from "../activity.ts";
import { bumpRevision, type MetadataTx, type Reading } from "../db.ts";
import { isUnlimited } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { listOrganizations } from "../organizations.ts";
import { membership, personalKey, setupLink, user, userPassword } from "../schema.ts";
import {
  endLinks,
  findUser,
  findUserByEmail,
  levelOf,
  listMembers,
  membershipLevels,
  type User,
} from "../users.ts";
import { endSessions, hashOfSecret, isUsable, newSecret } from "./sessions.ts";

const validMs = 24 * 3_600_000;
/** Links of one user that work at a time; a newer one takes the place of the oldest. */
const linksPerUserMax = 5;

export interface Setup {
  user: User;
  expiresAt: Date;
  /** Nobody has set this user's password yet, so that the address may be put right. */
  isFirst: boolean;
}

/** Who created a link, with which key; null for the server's operator. */
export interface LinkCreator {
  userId: number;
  /** The personal key that was sent, or that the session was created with. */
  keyId: string | null;
}

/** Creates a link's token, inside a transaction; it works for 24 hours, once, while its creator may still create it. */
export function insertSetupLink(
  t: MetadataTx,
  userId: number,
  by: LinkCreator | null,
  now: Date,
): { token: string; expiresAt: Date } {
  t.delete(setupLink).where(lte(setupLink.expiresAt, now)).run();
  const own = t
    .select()
    .from(setupLink)
    .where(eq(setupLink.userId, userId))
    .orderBy(desc(setupLink.createdAt))
    .all();
  for (const { hash } of own.slice(linksPerUserMax - 1)) {
    t.delete(setupLink).where(eq(setupLink.hash, hash)).run();
  }
  const token = newSecret();
  const expiresAt = new Date(now.getTime() + validMs);
  t.insert(setupLink)
    .values({
      ...{ hash: hashOfSecret(token), userId, createdAt: now, expiresAt },
      ...{ createdById: by?.userId ?? null, createdWithKeyId: by?.keyId ?? null },
    })
    .run();
  return { token, expiresAt };
}

/**
 * Creates a link for a user as the server's operator, and revokes the earlier ones.
 *
 * @throws {InvalidField} the user is deactivated.
 */
export function createSetupLink(
  metadata: Metadata,
  of: User,
  by: Author,
  now = new Date(),
): { token: string; expiresAt: Date } {
  if (!of.isActive) {
    throw new InvalidField("user", "inactive", `${of.email} is switched off; switch the user on first.`);
  }
  return metadata.change((t) => {
    t.delete(setupLink).where(eq(setupLink.userId, of.id)).run();
    recordLink(t, of, by, now);
    return insertSetupLink(t, of.id, null, now);
  });
}

/** Where the page takes a token. @param base without a slash at the end. */
export function setupAddress(base: string, token: string): string {
  return `${base}/console/setup#${token}`;
}

/** What a token is for, while it works. */
export function findSetup(db: Reading, token: string, now: Date): Setup | undefined {
  const row = db
    .select()
    .from(setupLink)
    .innerJoin(user, eq(user.id, setupLink.userId))
    .where(and(eq(setupLink.hash, hashOfSecret(token)), gt(setupLink.expiresAt, now)))
    .get();
  if (!row?.user.isActive || !isCreatorStillAllowed(db, row.setup_link, now)) return undefined;
  return {
    user: row.user,
    expiresAt: row.setup_link.expiresAt,
    isFirst: passwordOf(db, row.user.id) === undefined,
  };
}

/**
 * Whether the creator of a link could create it now: whoever has the link signs in as its user.
 *
 * The creator is an active admin, of the user's level at least, of every organization that the user belongs to, and the
 * key in use, if any, still allows everything (contract: management-api 2.7).
 */
function isCreatorStillAllowed(
  db: Reading,
  { userId, createdAt, createdById, createdWithKeyId }: typeof setupLink.$inferSelect,
  now: Date,
): boolean {
  if (createdById === null) return true;
  if (!findUser(db, createdById)?.isActive) return false;
  if (createdWithKeyId !== null) {
    const key = db.select().from(personalKey).where(eq(personalKey.id, createdWithKeyId)).get();
    if (key === undefined || !isUsable(key, createdAt, now) || !isUnlimited(key)) return false;
  }
  return db
    .select()
    .from(membership)
    .where(eq(membership.userId, userId))
    .all()
    .every(
      ({ organizationId, level }) =>
        levelOf(db, organizationId, createdById) >= Math.max(level, membershipLevels.admin),
    );
}

/** What the owner of a link says about himself. */
export interface SetupAnswers {
  /** Null: stays. */
  email: string | null;
  firstName: string | null;
  lastName: string | null;
  passwordHash: string;
}

/**
 * Uses a link up, inside a transaction: sets password and name, and ends the sessions there were.
 *
 * @throws {NotFound}     the link does not work any more.
 * @throws {InvalidField} the address is another one than the user's and may not be changed, or is no address.
 */
export function useSetupLink(t: MetadataTx, token: string, answers: SetupAnswers, now: Date): User {
  const setup = findSetup(t, token, now);
  if (setup === undefined) throw new NotFound("This link is used up or has expired.");
  const email = checkedEmail(t, setup, answers.email);
  const changed = t
    .update(user)
    .set({
      email,
      firstName: answers.firstName ?? setup.user.firstName,
      lastName: answers.lastName ?? setup.user.lastName,
      isEmailVerified: setup.user.isEmailVerified,
    })
    .where(eq(user.id, setup.user.id))
    .returning()
    .get();
  changePassword(t, changed.id, answers.passwordHash, now);
  bumpRevision(t, "keys");
  return changed;
}

/**
 * Sets a new password, inside a transaction. Ends the other sessions of the user, the links for the user, and those
 * that the user created: others may know the former password.
 *
 * @param exceptId the session that continues.
 */
export function changePassword(
  t: MetadataTx,
  userId: number,
  hash: string,
  now: Date,
  exceptId?: string,
): void {
  storePassword(t, userId, hash, now);
  endLinks(t, userId);
  endSessions(t, userId, exceptId);
}

/** Stores the hash of a password, inside a transaction. */
export function storePassword(t: MetadataTx, userId: number, hash: string, now: Date): void {
  const values = { hash, changedAt: now };
  t.insert(userPassword)
    .values({ userId, ...values })
    .onConflictDoUpdate({ target: userPassword.userId, set: values })
    .run();
}

/** The hash of a user's password; undefined when none was set. */
export function passwordOf(db: Reading, userId: number): string | undefined {
  return db.select().from(userPassword).where(eq(userPassword.userId, userId)).get()?.hash;
}

/** The owner that has to set a password before anybody can sign in; undefined once one has. */
export function ownerToSetUp(db: Reading): User | undefined {
  const [first] = listOrganizations(db);
  if (first === undefined) return undefined;
  const owners = listMembers(db, first.id).filter(
    (one) => one.level >= membershipLevels.owner && one.user.isActive,
  );
  return owners.some(({ user: { id } }) => passwordOf(db, id) !== undefined) ? undefined : owners[0]?.user;
}

/** The first owner's password decides on the address; of others the one who invited them did. */
function checkedEmail(t: MetadataTx, { user: of, isFirst }: Setup, email: string | null): string {
  const wanted = email?.trim() ?? "";
  if (wanted === "" || wanted.toLowerCase() === of.email.toLowerCase()) return of.email;
  if (!isFirst || ownerToSetUp(t)?.id !== of.id) {
    throw new InvalidField("email", "not_yours", `This link is for ${of.email}.`);
  }
  if (!/^[^\s@]+@[^\s@]+$/.test(wanted)) {
    throw new InvalidField("email", "invalid_input", "Enter a valid email address.");
  }
  if (findUserByEmail(t, wanted)) {
    throw new InvalidField("email", "unique", "There is already a user with this email address.");
  }
  return wanted;
}

function recordLink(t: MetadataTx, of: User, by: Author, now: Date): void {
  recordActivity(t, {
    by,
    organizationId: of.currentOrganizationId ?? undefined,
    activity: "link_created",
    scope: "User",
    itemId: of.id,
    name: of.email,
    changes: [],
    now,
  });
}
