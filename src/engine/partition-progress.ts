/**
 * How far an engine has applied and loaded the partitions it holds. All advance together: a batch ends at the same
 * number for each, and entries that a partition already contains are skipped when the journal is read. A batch that
 * another engine has left open is finished first, with its end.
 */

import type { Postgres, Transaction } from "../cluster/connection.ts";
import type { EntryFilter } from "../cluster/journal-reader.ts";
import { LeaseLostError } from "../cluster/lease.ts";
import {
  type LoaderLease,
  lockingTransaction,
  lockPartitions,
  type PartitionPosition,
  partitionOf,
  writePositions,
} from "../cluster/partitions.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import type { LoadProgress, StartedLoad } from "../persons/external-events.ts";
import type { StepCursor } from "../persons/postgres/store.ts";

/** A batch whose persons are committed, but possibly not all of its events. */
export interface OpenBatch {
  lane: Lane;
  last: number;
  partitions: ReadonlySet<number>;
}

export class PartitionProgress implements LoadProgress, StepCursor {
  private held = new Map<number, PartitionPosition>();
  private applied: Record<Lane, number> = { realtime: 0, historical: 0 };
  readonly loaded: Record<Lane, number> = { realtime: 0, historical: 0 };
  started: StartedLoad | undefined;
  /** The open batch that is being finished. */
  private resumed: OpenBatch | undefined;
  /** Counts phases: equal ranges of two phases contain different entries. */
  private phase = 0;
  /** Whether positions are not written yet. */
  private isDirty = false;
  private flushing: Promise<void> | undefined;

  constructor(private readonly lease: LoaderLease) {}

  get partitions(): readonly number[] {
    return [...this.held.keys()];
  }

  holds(projectId: number): boolean {
    return this.held.has(partitionOf(projectId));
  }

  /** Changes the partitions while nothing is being loaded. */
  change(released: readonly number[], acquired: readonly PartitionPosition[]): void {
    for (const id of released) this.held.delete(id);
    for (const position of acquired) this.held.set(position.id, position);
  }

  /** Batches that other engines have left open. */
  openBatches(): OpenBatch[] {
    return lanes.flatMap((lane) => {
      const open = [...this.held.values()].filter(
        (position) => position[lane].loaded < position[lane].applied,
      );
      const batches = Map.groupBy(open, (position) => position[lane].applied);
      return [...batches].map(([last, positions]) => ({
        lane,
        last,
        partitions: new Set(positions.map(({ id }) => id)),
      }));
    });
  }

  /** Starts to finish an open batch, or with undefined to load new entries. */
  startPhase(batch?: OpenBatch): void {
    this.phase += 1;
    this.resumed = batch;
    const positions = [...this.held.values()];
    for (const lane of lanes) {
      const lowest = Math.min(...positions.map((position) => position[lane].loaded));
      this.loaded[lane] = Number.isFinite(lowest) ? lowest : 0;
      this.applied[lane] = this.loaded[lane];
    }
    this.started = undefined;
    if (batch === undefined) return;
    const { lane, last, partitions } = batch;
    this.loaded[lane] = Math.min(...[...partitions].map((id) => this.held.get(id)![lane].loaded));
    this.applied[lane] = last;
    this.started = { lane, last, isResumed: true };
  }

  /** Entries of the current phase. @param isIdle whether nothing was offered to the pipeline that it has not applied */
  filter(isIdle: () => boolean): EntryFilter {
    const { resumed } = this;
    return {
      includes: (lane, projectId, seq) => this.includes(lane, projectId, seq),
      skip: (lane, last) => {
        if (resumed !== undefined || !isIdle()) return false;
        this.advance(lane, last, ["applied", "loaded"]);
        return true;
      },
      only: resumed,
    };
  }

  private includes(lane: Lane, projectId: number, seq: number): boolean {
    const position = this.held.get(partitionOf(projectId));
    if (position === undefined) return false;
    if (this.resumed === undefined) return seq > position[lane].applied;
    return (
      this.resumed.partitions.has(position.id) && seq > position[lane].loaded && seq <= position[lane].applied
    );
  }

  private advance(lane: Lane, last: number, which: readonly ("applied" | "loaded")[]): void {
    for (const name of which) {
      this[name][lane] = Math.max(this[name][lane], last);
      for (const position of this.held.values()) position[lane][name] = Math.max(position[lane][name], last);
    }
    this.isDirty = true;
  }

  get batchName(): string {
    return `:${this.lease.id}:${this.phase}`;
  }

  start(load: StartedLoad): void {
    this.started = load;
  }

  finish(lane: Lane, last: number): void {
    const { resumed } = this;
    this.started = undefined;
    if (resumed === undefined) {
      this.advance(lane, last, ["loaded"]);
      return;
    }
    for (const id of resumed.partitions) this.held.get(id)![lane].loaded = last;
    this.loaded[lane] = last;
    this.isDirty = true;
  }

  isUnfinished({ projectId, lane, seq }: { projectId: number; lane: Lane; seq: number }): boolean {
    const { started, held } = this;
    if (started?.lane !== lane || seq > started.last) return false;
    const position = held.get(partitionOf(projectId));
    return position !== undefined && seq > position[lane].loaded;
  }

  cursor(lane: Lane): number {
    return this.applied[lane];
  }

  async lock(t: Transaction, lane: Lane, lastSeq: number): Promise<boolean> {
    const rows = await lockPartitions(t, this.lease, this.partitions);
    let isCommitted = true;
    for (const row of rows) {
      const expected = this.held.get(row.id)?.[lane].applied;
      const end = Math.max(expected ?? 0, lastSeq);
      const { applied } = row[lane];
      // Another engine has held the partition meanwhile. Lower ones are of skipped entries, and not written yet.
      if (expected === undefined || (applied > expected && applied !== end)) throw new LeaseLostError();
      isCommitted &&= applied === end;
    }
    // The answer to an earlier commit of this step was lost.
    return !isCommitted;
  }

  async write(t: Transaction, lane: Lane, lastSeq: number): Promise<void> {
    const positions = [...this.held.values()].map((position) => ({
      ...position,
      [lane]: { ...position[lane], applied: Math.max(position[lane].applied, lastSeq) },
    }));
    await writePositions(t, this.lease, positions);
  }

  committed(lane: Lane, lastSeq: number): void {
    this.advance(lane, lastSeq, ["applied"]);
  }

  /**
   * Writes the positions, after an earlier call has ended: partitions are released when it resolves.
   * @throws {LeaseLostError} @throws {PostgresUnreachableError}
   */
  async flush(postgres: Postgres): Promise<void> {
    while (this.flushing !== undefined) await this.flushing.catch(() => undefined);
    this.flushing = this.tryFlush(postgres).finally(() => {
      this.flushing = undefined;
    });
    await this.flushing;
  }

  private async tryFlush(postgres: Postgres): Promise<void> {
    if (!this.isDirty || this.held.size === 0) return;
    this.isDirty = false;
    try {
      await lockingTransaction(postgres, async (t) => {
        await this.lease.assertHeld(t);
        await lockPartitions(t, this.lease, this.partitions);
        await writePositions(t, this.lease, [...this.held.values()]);
      });
    } catch (error) {
      this.isDirty = true;
      throw error;
    }
  }
}
