/** The batches of the journal that a pipeline has not applied yet, and how many of them make a step or a portion of one. */

import type { Entry } from "../../journal/entry.ts";
import type { JournalBatch } from "../../journal/reader.ts";
import type { Lane } from "../../journal/segment.ts";

/** What waits in a lane. */
export interface LaneLag {
  readonly segments: number;
  readonly bytes: number;
  readonly entries: number;
}

/** In the order of each lane. Realtime ones go first. */
export class WaitingBatches<Batch extends JournalBatch> {
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
    const of = (lane: Lane) => ({
      segments: this.lanes[lane].length,
      bytes: bytesOf(this.lanes[lane]),
      entries: this.lanes[lane].reduce((sum, batch) => sum + batch.last - batch.first + 1, 0),
    });
    return { realtime: of("realtime"), historical: of("historical") };
  }

  /** Takes the next ones out, as many as take at most so many bytes, or one. @returns undefined when none waits */
  takeNext(bytesMax: number): Batch[] | undefined {
    return this.takeNextOf(this.has("realtime") ? "realtime" : "historical", bytesMax);
  }

  /** The same of one lane. */
  takeNextOf(lane: Lane, bytesMax: number): Batch[] | undefined {
    const waiting = this.lanes[lane];
    return waiting.length === 0 ? undefined : waiting.splice(0, fitting(waiting, 0, bytesMax));
  }

  /** Takes those out that have everything up to a number. @returns undefined when they are not all there */
  takeUpTo(lane: Lane, last: number): Batch[] | undefined {
    const count = this.lanes[lane].findIndex((batch) => batch.last >= last) + 1;
    return count === 0 ? undefined : this.lanes[lane].splice(0, count);
  }

  /** Some that were taken last are the next ones again. */
  putBack(lane: Lane, batches: readonly Batch[]): void {
    this.lanes[lane].unshift(...batches);
  }
}

/** The batches that are read together: as many as take at most so many bytes, or one. */
export function portionAt<Batch extends JournalBatch>(
  batches: readonly Batch[],
  start: number,
  bytesMax: number,
): readonly Batch[] {
  return batches.slice(start, start + fitting(batches, start, bytesMax));
}

export function bytesOf(batches: readonly JournalBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.bytes, 0);
}

/** The first entries of those that take so many bytes together, about as many as take `bytesMax`; at least one. */
export function firstPart(entries: readonly Entry[], bytes: number, bytesMax: number): readonly Entry[] {
  return entries.slice(0, Math.max(1, Math.floor((entries.length * bytesMax) / bytes)));
}

/** How many of them, from one on, take at most so many bytes; at least one. */
function fitting(batches: readonly JournalBatch[], start: number, bytesMax: number): number {
  let end = start + 1;
  let bytes = batches[start]!.bytes;
  while (end < batches.length && bytes + batches[end]!.bytes <= bytesMax) bytes += batches[end++]!.bytes;
  return end - start;
}
