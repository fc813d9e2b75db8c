/** The personal keys that were used lately, in memory, so that a poll costs no SQL. */

import { eq } from "drizzle-orm";
import type { Sqlite } from "../lib/sqlite/open.ts";
import type { Changes } from "./changes.ts";
import { hashOfKey } from "./key-formats.ts";
import type { PersonalKey } from "./personal-keys.ts";
import { personalKey, user } from "./schema.ts";
import type { User } from "./users.ts";

export interface KeyHolder {
  key: PersonalKey;
  user: User;
}

export class KeyRing {
  private readonly changes: Changes;
  private readonly db: Sqlite<Record<string, never>>;
  private revision = -1;
  /** By hash. Holds keys that exist only, so its size is bounded by the table's. */
  private known = new Map<string, KeyHolder>();

  constructor(db: unknown, changes: Changes) {
    this.db = db as Sqlite<Record<string, never>>;
    this.changes = changes;
  }

  /** The holder of a key as it is stored now, also when the key is revoked, expired or its user inactive. */
  find(clearKey: string): KeyHolder | undefined {
    const revision = this.changes.revision("keys");
    if (revision !== this.revision) {
      this.known = new Map();
      this.revision = revision;
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
