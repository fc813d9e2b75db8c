/** Recently used personal keys in memory, so that a poll needs no SQL. */

import { eq } from "drizzle-orm";
import type { Changes, Reading } from "./db.ts";
import { hashOfKey } from "./key-formats.ts";
import type { PersonalKey } from "./personal-keys.ts";
import { personalKey, user } from "./schema.ts";
import type { User } from "./users.ts";

const lastUsedEveryMs = 3_600_000;

export interface KeyOwner {
  key: PersonalKey;
  user: User;
}

/**
 * Finds the owner of a personal key by the clear key, of which only the hash is stored. Changes by another process are
 * seen a few milliseconds later. Callers check whether the key is valid.
 */
export class ApiKeyIndex {
  private mark = "";
  /** By hash. Contains existing keys only, so the table bounds its size. */
  private known = new Map<string, KeyOwner>();

  constructor(
    private readonly db: Reading,
    private readonly changes: Changes,
  ) {}

  /** Owner of a key as stored now, even if the key is revoked or expired or its user inactive. */
  find(clearKey: string): KeyOwner | undefined {
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
 * Finds the owner of a valid key: known, not revoked, not expired, user active. Records the use at most once an hour.
 */
export function authenticate(
  metadata: { db: Reading; keyRing: ApiKeyIndex },
  clearKey: string,
  now = new Date(),
): KeyOwner | undefined {
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
