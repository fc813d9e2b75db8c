/** Public keys that no project has, which senders of events and flag requests used since the start: `warnings` tells them. */

import { maskOfKey } from "../accounts/key-formats.ts";

/** Anybody can send any key: the one not seen for the longest time goes. */
const keysMax = 100;

export interface UnknownKey {
  /** Its beginning and its end. */
  mask: string;
  count: number;
  /** ISO 8601. */
  first_at: string;
  last_at: string;
}

export class UnknownKeys {
  private readonly keys = new Map<string, UnknownKey>();

  /** The same directory, whose unknown keys are counted here. */
  watching<Project>(projects: { findByToken(token: string): Project | undefined }) {
    return {
      findByToken: (token: string): Project | undefined => {
        const found = projects.findByToken(token);
        if (found === undefined) this.see(token);
        return found;
      },
    };
  }

  /** Last seen first. */
  list(): UnknownKey[] {
    return [...this.keys.values()].reverse();
  }

  private see(token: string): void {
    const mask = maskOfKey(token);
    const at = new Date().toISOString();
    const before = this.keys.get(mask);
    // Behind the others, so that the first is the one to go.
    this.keys.delete(mask);
    this.keys.set(mask, {
      mask,
      count: (before?.count ?? 0) + 1,
      first_at: before?.first_at ?? at,
      last_at: at,
    });
    if (this.keys.size > keysMax) this.keys.delete(this.keys.keys().next().value!);
  }
}
