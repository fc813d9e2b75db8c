/** The personal keys that were used lately, in memory, so that a poll costs no SQL. */

import { eq } from "drizzle-orm";
import type { Changes, Reading } from "./db.ts";
import { hashOfKey } from "./key-formats.ts";
import type { PersonalKey } from "./personal-keys.ts";
import { personalKey, user } from "./schema.ts";
import type { User } from "./users.ts";

const lastUsedEveryMs = 3_600_000;

export interface KeyHolder {
  key: PersonalKey;
  user: User;
}

/**
 * Finds who holds a personal key by the key in clear, of which only a hash is kept. Says what is stored, and what another
 * process has changed a few milliseconds later; whether the key may be used is for the caller to judge.
 */
export class KeyRing {
  private mark = "";
  /** By hash. Holds keys that exist only, so its size is bounded by the table's. */
  private known = new Map<string, KeyHolder>();

  constructor(
    private readonly db: Reading,
    private readonly changes: Changes,
  ) {}

  /** The holder of a key as it is stored now, also when the key is revoked, expired or its user inactive. */
  find(clearKey: string): KeyHolder | undefined {
    const mark = this.changes.mark("keys");
    if (mark !== this.mark) {
      this.known = new Map();
      this.mark = mark;
    }
    const hash = hashOfKey(clearKey);
    const known = this.known.get(hash);
    if (known) return known;
    const row = this.db
      .select()
      .from(personalKey)
      .innerJoin(user, eq(user.id, personalKey.userId))
      .where(eq(personalKey.hash, hash))
      .get();
    if (!row) return undefined;
    const { hash: _, ...key } = row.personal_key;
    const holder = { key, user: row.user };
    this.known.set(hash, holder);
    return holder;
  }
}

/**
 * Finds the owner of a key that works now: known, not revoked, not expired, the user active.
 *
 * Remembers that the key was used, at most once an hour.
 */
export function authenticate(
  metadata: { db: Reading; keyRing: KeyRing },
  clearKey: string,
  now = new Date(),
): KeyHolder | undefined {
  const holder = metadata.keyRing.find(clearKey);
  if (!holder || holder.key.revokedAt || !holder.user.isActive) return undefined;
  const { expiresAt, lastUsedAt } = holder.key;
  if (expiresAt && expiresAt <= now) return undefined;
  if (!lastUsedAt || now.getTime() - lastUsedAt.getTime() >= lastUsedEveryMs) {
    metadata.db.update(personalKey).set({ lastUsedAt: now }).where(eq(personalKey.id, holder.key.id)).run();
    holder.key.lastUsedAt = now;
  }
  return holder;
}
