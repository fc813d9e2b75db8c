/** Journal batches that are not applied yet, divided into steps and portions. */

import type { Entry } from "../../journal/entry.ts";
import type { JournalBatch } from "../../journal/reader.ts";
import type { Lane } from "../../journal/segment.ts";

/** Backlog of a lane. */
export interface LaneLag {
  readonly segments: number;
  readonly bytes: number;
  readonly entries: number;
}

/** Ordered within each lane. Realtime batches come first. */
export class PendingBatches<Batch extends JournalBatch> {
  private readonly lanes: Record<Lane, Batch[]> = { realtime: [], historical: [] };

  add(batch: Batch): void {
    this.lanes[batch.lane].push(batch);
  }

  has(lane: Lane): boolean {
    return this.lanes[lane].length > 0;
  }

  get isEmpty(): boolean {
    return !this.has("realtime") && !this.has("historical");
  }

  lag(): Record<Lane, LaneLag> {
    const getLag = (lane: Lane) => ({
      segments: this.lanes[lane].length,
      bytes: getBytes(this.lanes[lane]),
      entries: this.lanes[lane].reduce((sum, batch) => sum + batch.last - batch.first + 1, 0),
    });
    return { realtime: getLag("realtime"), historical: getLag("historical") };
  }

  /** Removes the next batches of up to `bytesMax`, at least one. @returns undefined if none is pending */
  takeNext(bytesMax: number): Batch[] | undefined {
    return this.takeNextInLane(this.has("realtime") ? "realtime" : "historical", bytesMax);
  }

  /** Like `takeNext`, for one lane. */
  takeNextInLane(lane: Lane, bytesMax: number): Batch[] | undefined {
    const waiting = this.lanes[lane];
    return waiting.length === 0 ? undefined : waiting.splice(0, fitting(waiting, 0, bytesMax));
  }

  /** Removes the batches up to a sequence number. @returns undefined if not all of them are pending */
  takeUpTo(lane: Lane, last: number): Batch[] | undefined {
    const count = this.lanes[lane].findIndex((batch) => batch.last >= last) + 1;
    return count === 0 ? undefined : this.lanes[lane].splice(0, count);
  }

  clear(): void {
    for (const batches of Object.values(this.lanes)) batches.length = 0;
  }

  /** Returns the batches that were taken last to the front of the queue. */
  requeue(lane: Lane, batches: readonly Batch[]): void {
    this.lanes[lane].unshift(...batches);
  }
}

/** The batches to read together: up to `bytesMax`, at least one. */
export function batchSizeAt<Batch extends JournalBatch>(
  batches: readonly Batch[],
  start: number,
  bytesMax: number,
): readonly Batch[] {
  return batches.slice(start, start + fitting(batches, start, bytesMax));
}

export function getBytes(batches: readonly JournalBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.bytes, 0);
}

/** The first entries of about `bytesMax`, given that all take `bytes`; at least one. */
export function takeFirst(entries: readonly Entry[], bytes: number, bytesMax: number): readonly Entry[] {
  return entries.slice(0, Math.max(1, Math.floor((entries.length * bytesMax) / bytes)));
}

/** The number of batches from `start` that fit in `bytesMax`; at least one. */
function fitting(batches: readonly JournalBatch[], start: number, bytesMax: number): number {
  let end = start + 1;
  let bytes = batches[start]!.bytes;
  while (end < batches.length && bytes + batches[end]!.bytes <= bytesMax) bytes += batches[end++]!.bytes;
  return end - start;
}
