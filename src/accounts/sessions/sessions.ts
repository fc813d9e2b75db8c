/**
 * Console sessions, one per sign-in of a browser.
 *
 * A session has the permissions of its user or, if created with a personal key, the current ones of that key; it ends
 * with either (contract: management-api 2.7).
 */

import { and, desc, eq, isNull, lte, ne, or } from "drizzle-orm";
import { dayMs } from "../../lib/time.ts";
import type { MetadataTx, Reading } from "../db.ts";
import { type KeyRestrictions, unlimited } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import type { PersonalKey } from "../personal-keys.ts";
import { personalKey, session, user } from "../schema.ts";
import type { User } from "../users.ts";

export interface Session {
  id: string;
  userId: number;
  /** The personal key it was created with. */
  keyId: string | null;
  createdAt: Date;
  /** Precision: five minutes. */
  lastSeenAt: Date;
  /** Time of the last re-authentication. */
  confirmedAt: Date | null;
  /** The client's address at sign-in. */
  address: string;
  /** Shortened User-Agent. */
  browser: string;
}

export interface AuthenticatedSession {
  session: Session;
  user: User;
  limits: KeyRestrictions;
}

/** Client that creates a session. */
export interface ClientInfo {
  address: string | undefined;
  browser: string | null;
}

const idleMs = 7 * dayMs;
const wholeMs = 30 * dayMs;
const lastSeenIntervalMs = 5 * 60_000;
const confirmedMs = 10 * 60_000;
/** Per user's password and per key: sign-ins with a key do not end other sessions. */
const sessionsPerCredentialMax = 50;
const browserLengthMax = 200;

/** Stored hash of a secret of 256 random bits. */
export function hashOfSecret(secret: string): string {
  return new Bun.CryptoHasher("sha256").update(secret).digest("hex");
}

/** 32 random bytes, for a URL or cookie. */
export function newSecret(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
}

/**
 * Starts a session, inside a transaction; of more than 50 with the same credential, the oldest ends. Returns the
 * cookie's value.
 */
export function insertSession(
  t: MetadataTx,
  owner: { userId: number; keyId?: string },
  clientInfo: ClientInfo,
  now: Date,
): { session: Session; secret: string } {
  t.delete(session).where(isOver(now)).run();
  const own = t
    .select({ id: session.id })
    .from(session)
    .where(
      and(
        eq(session.userId, owner.userId),
        owner.keyId === undefined ? isNull(session.keyId) : eq(session.keyId, owner.keyId),
      ),
    )
    .orderBy(desc(session.lastSeenAt), desc(session.id))
    .all();
  for (const { id } of own.slice(sessionsPerCredentialMax - 1))
    t.delete(session).where(eq(session.id, id)).run();
  const secret = newSecret();
  const created = t
    .insert(session)
    .values({
      id: Bun.randomUUIDv7(),
      hash: hashOfSecret(secret),
      userId: owner.userId,
      keyId: owner.keyId ?? null,
      createdAt: now,
      lastSeenAt: now,
      address: clientInfo.address ?? "",
      browser: (clientInfo.browser ?? "").slice(0, browserLengthMax),
    })
    .returning()
    .get();
  return { session: withoutHash(created), secret };
}

/**
 * The session of a cookie while it is valid: seven days after its last use, at most thirty days after creation, and
 * only while its user is active and its key works.
 */
export function findSession(metadata: Metadata, secret: string, now: Date): AuthenticatedSession | undefined {
  const row = metadata.db
    .select()
    .from(session)
    .innerJoin(user, eq(user.id, session.userId))
    .leftJoin(personalKey, eq(personalKey.id, session.keyId))
    .where(eq(session.hash, hashOfSecret(secret)))
    .get();
  if (!row?.user.isActive || getEnd(row.session) <= now) return undefined;
  if (row.session.keyId !== null && !isUsable(row.personal_key, row.session.createdAt, now)) return undefined;
  if (now.getTime() - row.session.lastSeenAt.getTime() >= lastSeenIntervalMs) {
    metadata.db.update(session).set({ lastSeenAt: now }).where(eq(session.id, row.session.id)).run();
    row.session.lastSeenAt = now;
  }
  return { session: withoutHash(row.session), user: row.user, limits: row.personal_key ?? unlimited };
}

/** Valid sessions of a user with their current permissions, the most recently used first. */
export function listSessions(
  db: Reading,
  userId: number,
  now: Date,
): { session: Session; limits: KeyRestrictions }[] {
  return db
    .select()
    .from(session)
    .leftJoin(personalKey, eq(personalKey.id, session.keyId))
    .where(eq(session.userId, userId))
    .orderBy(desc(session.lastSeenAt), desc(session.id))
    .all()
    .filter(
      ({ session: found, personal_key: key }) =>
        getEnd(found) > now && (found.keyId === null || isUsable(key, found.createdAt, now)),
    )
    .map((row) => ({ session: withoutHash(row.session), limits: row.personal_key ?? unlimited }));
}

/** Ends one session of a user; false if not found. */
export function endSession(metadata: Metadata, userId: number, id: string): boolean {
  return metadata.change(
    (t) =>
      t
        .delete(session)
        .where(and(eq(session.userId, userId), eq(session.id, id)))
        .returning()
        .all().length > 0,
  );
}

/** Ends the sessions of a user, inside a transaction. @param exceptId the session to keep. */
export function endSessions(t: MetadataTx, userId: number, exceptId?: string): number {
  return t
    .delete(session)
    .where(and(eq(session.userId, userId), exceptId === undefined ? undefined : ne(session.id, exceptId)))
    .returning()
    .all().length;
}

/** Records a re-authentication; undefined: the session has ended. */
export function confirmSession(metadata: Metadata, id: string, now: Date): Session | undefined {
  const { db } = metadata;
  const found = db.update(session).set({ confirmedAt: now }).where(eq(session.id, id)).returning().get();
  return found === undefined ? undefined : withoutHash(found);
}

/** Until when a session needs no re-authentication; null if it needs one now. */
export function confirmedUntil({ confirmedAt }: Session, now: Date): Date | null {
  if (confirmedAt === null) return null;
  const until = new Date(confirmedAt.getTime() + confirmedMs);
  return until > now ? until : null;
}

/** When a session expires if it is not used again. */
export function getEnd({ createdAt, lastSeenAt }: Pick<Session, "createdAt" | "lastSeenAt">): Date {
  return new Date(Math.min(createdAt.getTime() + wholeMs, lastSeenAt.getTime() + idleMs));
}

function isOver(now: Date) {
  return or(
    lte(session.createdAt, new Date(now.getTime() - wholeMs)),
    lte(session.lastSeenAt, new Date(now.getTime() - idleMs)),
  );
}

/** Whether objects created with a key at `createdAt` are valid: the key works and has not been rolled since. */
export function isUsable(key: PersonalKey | null, createdAt: Date, now: Date): boolean {
  return (
    key !== null &&
    key.scopes.length > 0 &&
    key.revokedAt === null &&
    (key.expiresAt === null || key.expiresAt > now) &&
    (key.lastRolledAt === null || key.lastRolledAt <= createdAt)
  );
}

function withoutHash(row: Session & { hash: string }): Session {
  const { hash: _, ...found } = row;
  return found;
}
