/** UUIDs of sent events that may not be in the event store yet, in limited number. */

import type { ImportClient } from "./import-client.ts";

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
