/** Remembers strings as hashes: at least the last million, at most two million. */

import type { ImportClient } from "./import-client.ts";

const hashesMax = 1_000_000;

/** A string that was new. */
export interface Claim {
  /** Makes the string new again. */
  release(): void;
}

export class RecentStrings {
  private older = new Set<bigint>();
  private newer = new Set<bigint>();

  /** @returns undefined if the string is not new, as far as remembered. */
  add(text: string): Claim | undefined {
    const hash = Bun.hash.xxHash64(text);
    if (this.newer.has(hash) || this.older.has(hash)) return undefined;
    this.newer.add(hash);
    if (this.newer.size > hashesMax) {
      this.older = this.newer;
      this.newer = new Set();
    }
    return { release: () => void (this.newer.delete(hash) || this.older.delete(hash)) };
  }
}

/** UUIDs of sent events that may not be in the event store yet, in limited number. */

/** Twice as many may wait to be loaded; then the import waits. */
const uuidsMax = 200_000;

export class RecentUuids {
  private older = new Set<string>();
  private newer = new Set<string>();
  /** When the lane has been loaded up to here, the older ones are in the store. */
  private olderSeq = 0;

  /** @param target undefined when nothing is sent; UUIDs are then pruned over time. */
  constructor(private readonly target: ImportClient | undefined) {}

  /** @returns whether it is new. */
  add(uuid: string): boolean {
    if (this.newer.has(uuid)) return false;
    this.newer.add(uuid);
    return !this.older.has(uuid);
  }

  /** Older ones should be pruned. */
  get isFull(): boolean {
    return this.newer.size >= uuidsMax;
  }

  /** Prunes the older ones, once they are in the store. Call it when everything added is acknowledged. */
  async tidy(): Promise<void> {
    await this.target?.waitUntilLoaded(this.olderSeq);
    this.older = this.newer;
    this.newer = new Set();
    this.olderSeq = (await this.target?.lastSeq()) ?? 0;
  }
}
