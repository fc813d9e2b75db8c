/** Unknown public keys that clients have used for events and flags since the start; `warnings` reports them. */

import { maskOfKey } from "../accounts/key-formats.ts";
import { setNewest } from "../lib/bounded-cache.ts";

/** Clients can send any key: evict the least recently seen. */
const keysMax = 100;

export interface UnknownKey {
  /** First and last characters of the key. */
  mask: string;
  count: number;
  /** ISO 8601. */
  first_at: string;
  last_at: string;
}

export class UnknownKeys {
  private readonly keys = new Map<string, UnknownKey>();

  /** The same directory, with lookups of unknown keys counted here. */
  watching<Project>(projects: { findByToken(token: string): Project | undefined }) {
    return {
      findByToken: (token: string): Project | undefined => {
        const found = projects.findByToken(token);
        if (found === undefined) this.see(token);
        return found;
      },
    };
  }

  /** Most recently seen first. */
  list(): UnknownKey[] {
    return [...this.keys.values()].reverse();
  }

  /** Removes the counts since the last call, for the process that reports them. */
  take(): UnknownKey[] {
    const acquired = [...this.keys.values()];
    this.keys.clear();
    return acquired;
  }

  /** Adds the counts of another process. */
  add({ mask, count, first_at, last_at }: UnknownKey): void {
    const before = this.keys.get(mask);
    const known = {
      mask,
      count: (before?.count ?? 0) + count,
      first_at: before?.first_at ?? first_at,
      last_at,
    };
    setNewest(this.keys, mask, known, keysMax);
  }

  private see(token: string): void {
    const at = new Date().toISOString();
    this.add({ mask: maskOfKey(token), count: 1, first_at: at, last_at: at });
  }
}
