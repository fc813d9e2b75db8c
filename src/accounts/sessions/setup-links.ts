/**
 * One-time links for setting a password: the first owner, a new member, a user who forgot it.
 *
 * The token is in the URL fragment, which browsers do not send, so that no proxy logs it.
 */

import { and, desc, eq, gt, lte } from "drizzle-orm";
import { InvalidFieldError, NotFoundError } from "../../lib/errors.ts";
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
  getLevel,
  listMembers,
  membershipLevels,
  type User,
} from "../users.ts";
import { endSessions, hashOfSecret, isUsable, newSecret } from "./sessions.ts";

const validMs = 24 * 3_600_000;
/** Valid links per user; a newer one replaces the oldest. */
const linksPerUserMax = 5;

export interface Setup {
  user: User;
  expiresAt: Date;
  /** The link is that of the first owner, who may correct the address. */
  isFirst: boolean;
}

/** Creator of a link and the key used; null for the server's operator. */
export interface LinkCreator {
  userId: number;
  /** The personal key of the request, or of its session. */
  keyId: string | null;
}

/** Creates a link's token, inside a transaction. Valid once, for 24 hours, while its creator could still create it. */
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
      hash: hashOfSecret(token),
      userId,
      createdAt: now,
      expiresAt,
      createdById: by?.userId ?? null,
      createdWithKeyId: by?.keyId ?? null,
    })
    .run();
  return { token, expiresAt };
}

/**
 * Creates a link for a user as the server's operator, and revokes the earlier ones.
 *
 * @throws {InvalidFieldError} the user is deactivated.
 */
export function createSetupLink(
  metadata: Metadata,
  user: User,
  by: Author,
  now = new Date(),
): { token: string; expiresAt: Date } {
  if (!user.isActive) {
    throw new InvalidFieldError(
      "user",
      "inactive",
      `${user.email} is deactivated. Reactivate the user first.`,
    );
  }
  return metadata.change((t) => {
    t.delete(setupLink).where(eq(setupLink.userId, user.id)).run();
    recordLink(t, user, by, now);
    return insertSetupLink(t, user.id, null, now);
  });
}

/** URL at which the console redeems a token. @param base without a trailing slash. */
export function setupAddress(base: string, token: string): string {
  return `${base}/console/setup#${token}`;
}

/** The purpose of a token while it is valid. */
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
    isFirst: ownerToSetUp(db)?.id === row.user.id,
  };
}

/**
 * Whether the creator of a link could create it now, since it signs in as its user: the creator is an active admin, of
 * the user's level at least, in every organization of the user, and the key used, if any, is still unrestricted
 * (contract: management-api 2.7).
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
        getLevel(db, organizationId, createdById) >= Math.max(level, membershipLevels.admin),
    );
}

export interface SetupAnswers {
  /** Null: unchanged. */
  email: string | null;
  firstName: string | null;
  lastName: string | null;
  passwordHash: string;
}

/**
 * Redeems a link, inside a transaction: sets password and name, and ends existing sessions.
 *
 * @throws {NotFoundError}     the link is not valid.
 * @throws {InvalidFieldError} the address differs from the user's and may not be changed, or is invalid.
 */
export function useSetupLink(t: MetadataTx, token: string, answers: SetupAnswers, now: Date): User {
  const setup = findSetup(t, token, now);
  if (setup === undefined) throw new NotFoundError("This link was used or has expired.");
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
 * Sets a new password, inside a transaction. Ends the user's other sessions, the links for the user, and those the user
 * created: others may know the former password.
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

export function storePassword(t: MetadataTx, userId: number, hash: string, now: Date): void {
  const values = { hash, changedAt: now };
  t.insert(userPassword)
    .values({ userId, ...values })
    .onConflictDoUpdate({ target: userPassword.userId, set: values })
    .run();
}

export function getPassword(db: Reading, userId: number): string | undefined {
  return db.select().from(userPassword).where(eq(userPassword.userId, userId)).get()?.hash;
}

/** The owner who must set a password before anyone can sign in; undefined once one has. */
export function ownerToSetUp(db: Reading): User | undefined {
  const [first] = listOrganizations(db);
  if (first === undefined) return undefined;
  const owners = listMembers(db, first.id).filter(
    (member) => member.level >= membershipLevels.owner && member.user.isActive,
  );
  return owners.some(({ user: { id } }) => getPassword(db, id) !== undefined) ? undefined : owners[0]?.user;
}

/** The first owner may correct the address; addresses of invited users are fixed. */
function checkedEmail(t: MetadataTx, { user, isFirst }: Setup, email: string | null): string {
  const wanted = email?.trim() ?? "";
  if (wanted === "" || wanted.toLowerCase() === user.email.toLowerCase()) return user.email;
  if (!isFirst) {
    throw new InvalidFieldError("email", "not_yours", `This link is for ${user.email}.`);
  }
  if (!/^[^\s@]+@[^\s@]+$/.test(wanted)) {
    throw new InvalidFieldError("email", "invalid_input", "Enter a valid email address.");
  }
  if (findUserByEmail(t, wanted)) {
    throw new InvalidFieldError("email", "unique", "A user with this email address already exists.");
  }
  return wanted;
}

function recordLink(t: MetadataTx, user: User, by: Author, now: Date): void {
  recordActivity(t, {
    by,
    organizationId: user.currentOrganizationId ?? undefined,
    activity: "link_created",
    scope: "User",
    itemId: user.id,
    name: user.email,
    changes: [],
    now,
  });
}
