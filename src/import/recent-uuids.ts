/** The uuids of events that were sent and may not be in the event store yet; bounds how many of them there are. */

import type { ImportTarget } from "./target.ts";

/** Twice as many may wait to be loaded; then the import waits. */
const uuidsMax = 200_000;

export class RecentUuids {
  private older = new Set<string>();
  private newer = new Set<string>();
  /** When the lane has been loaded up to here, the older ones are in the store. */
  private olderSeq = 0;

  /** @param target undefined when nothing is sent; uuids are forgotten after a while then. */
  constructor(private readonly target: ImportTarget | undefined) {}

  /** @returns whether it was not there. */
  add(uuid: string): boolean {
    if (this.newer.has(uuid)) return false;
    this.newer.add(uuid);
    return !this.older.has(uuid);
  }

  /** There are so many that older ones should be forgotten. */
  get isFull(): boolean {
    return this.newer.size >= uuidsMax;
  }

  /** Forgets the older ones, once they are in the store. Call it when everything that was added is acknowledged. */
  async tidy(): Promise<void> {
    await this.target?.waitUntilLoaded(this.olderSeq);
    this.older = this.newer;
    this.newer = new Set();
    this.olderSeq = (await this.target?.lastSeq()) ?? 0;
  }
}
