/**
 * Loads the partitions that this engine holds in a cluster in which several engines load. It stops reading and ends the
 * step in progress before it changes its partitions; a batch that another engine has left open is finished first.
 */

import { type Postgres, PostgresUnreachableError } from "../cluster/connection.ts";
import { JournalReader, type ReaderDeps } from "../cluster/journal-reader.ts";
import { LeaseObservers, lateInsertMs, leaseEnd, leaseMs, renewEveryMs } from "../cluster/lease.ts";
import { planPartitions } from "../cluster/partition-plan.ts";
import {
  acquirePartitions,
  type LoaderLease,
  type PartitionState,
  partitionCount,
  readLowestPosition,
  readNewest,
  readPartitions,
  registerLoader,
  releasePartitions,
  renewLoader,
  requestPartitions,
  revokeLoader,
  type SeenLoader,
  unregisterLoader,
} from "../cluster/partitions.ts";
import type { InsertFence } from "../events/clickhouse/insert-fence.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import type { ProjectShare } from "../persons/store.ts";
import { type OpenBatch, PartitionProgress } from "./partition-progress.ts";

const planEveryMs = 500;
const flushEveryMs = 500;
const pollMs = 20;
/** Longest interval between two calls of `isCaughtUp`. */
const recentMs = 15_000;

/** The pipeline of this engine. */
export interface PipelinePort extends Omit<ReaderDeps, "onFailure"> {
  /** Whether nothing is pending or being applied. */
  isIdle(): boolean;
  /** Discards pending batches. */
  discard(): void;
  /** Resolves when everything that was offered is loaded. */
  settle(): Promise<void>;
  /** Discards state of projects in memory: they may have been loaded by another engine. */
  reload(): void;
}

export interface PartitionedLoadingCallbacks {
  /** Commits the captured changes of the replica, after applying those of other engines. */
  settle(): Promise<void>;
  /** @throws errors that keep this engine from loading: the event store is ahead of the journal */
  assertNotAhead(isWanted: () => boolean): Promise<void>;
  /** The partitions have changed: state of their projects in memory is outdated. */
  onChanged(): void;
  onFatal(error: unknown): void;
}

export class PartitionedLoading {
  readonly progress: PartitionProgress;
  /** What this engine loads. */
  readonly share: ProjectShare;
  readonly fence: { -readonly [Name in keyof InsertFence]: InsertFence[Name] };
  private readonly chores = new PeriodicTasks((error) => this.report(error));
  private readonly observers = new LeaseObservers();
  private reader: JournalReader | undefined;
  private pipeline: PipelinePort | undefined;
  /** The change of partitions in progress. */
  private changing: Promise<void> | undefined;
  private isStopped = false;
  /** The newest realtime entry at a time. */
  private newest = { seq: Number.POSITIVE_INFINITY, at: Number.NEGATIVE_INFINITY };

  private constructor(
    private readonly postgres: Postgres,
    readonly lease: LoaderLease,
    private readonly callbacks: PartitionedLoadingCallbacks,
  ) {
    this.progress = new PartitionProgress(lease);
    this.share = { includes: (projectId) => this.progress.holds(projectId), idStep: partitionCount };
    this.fence = { until: () => leaseEnd(lease), previousEnd: Number.NEGATIVE_INFINITY };
  }

  /** Registers this engine, without partitions. @throws {PostgresUnreachableError} */
  static async open(
    postgres: Postgres,
    node: string,
    callbacks: PartitionedLoadingCallbacks,
  ): Promise<PartitionedLoading> {
    return new PartitionedLoading(postgres, await registerLoader(postgres, node), callbacks);
  }

  start(pipeline: PipelinePort): void {
    this.pipeline = pipeline;
    this.chores.every(renewEveryMs, () => renewLoader(this.postgres, this.lease));
    this.chores.every(planEveryMs, () => this.follow());
    this.chores.every(flushEveryMs, () => this.flush());
  }

  /** Whether partitions change, or loading stops: what is in memory of released ones is outdated. */
  get isChanging(): boolean {
    return this.isStopped || this.changing !== undefined;
  }

  /**
   * Ends the step in progress, and stops loading.
   * @returns whether it has ended in time; otherwise the next holders of its partitions finish its batch
   */
  async stop(timeoutMs: number): Promise<boolean> {
    this.isStopped = true;
    return await Promise.race([this.end(), Bun.sleep(timeoutMs).then(() => false)]);
  }

  private async end(): Promise<boolean> {
    await this.changing?.catch(() => undefined);
    await this.rest();
    this.chores.stop();
    return true;
  }

  /** Releases all partitions; call `stop` before, unless the process ends at once. */
  async release({ isLoaded }: { isLoaded: boolean }): Promise<void> {
    this.chores.stop();
    if (isLoaded) await this.progress.flush(this.postgres);
    await unregisterLoader(this.postgres, this.lease);
  }

  /**
   * Whether the engines have applied all realtime entries that were stored at the previous call; call it regularly. Newer
   * ones are always waiting under load. @throws {PostgresUnreachableError}
   */
  async isCaughtUp(): Promise<boolean> {
    const { seq, at } = this.newest;
    this.newest = { seq: await readNewest(this.postgres, "realtime"), at: performance.now() };
    const { realtime } = await readLowestPosition(this.postgres);
    return realtime.applied >= seq && this.newest.at - at < recentMs;
  }

  /** Revokes engines that have ended, and acquires, releases and requests partitions. */
  private async follow(): Promise<void> {
    const state = await readPartitions(this.postgres);
    this.observers.recordRead();
    for (const loader of state.loaders) if (this.isExpired(loader)) await revokeLoader(this.postgres, loader);
    if (state.isPaused) {
      const released = [...this.progress.partitions, ...this.unknownPartitions(state)];
      if (released.length > 0) await this.change(released, []);
      return;
    }
    await this.apply(state);
  }

  private async apply(state: PartitionState): Promise<void> {
    const { release, acquire, request } = planPartitions(this.lease.id, state);
    if (request.length > 0) await requestPartitions(this.postgres, this.lease, request);
    const unknown = this.unknownPartitions(state).filter((id) => !release.includes(id));
    const acquired = [...acquire, ...unknown];
    if (release.length > 0 || acquired.length > 0) await this.change(release, acquired);
  }

  /** Partitions acquired by a transaction that was committed after its timeout. */
  private unknownPartitions({ partitions }: PartitionState): number[] {
    const known = new Set(this.progress.partitions);
    const held = partitions.filter(({ holder }) => holder === this.lease.id);
    return held.map(({ id }) => id).filter((id) => !known.has(id));
  }

  private isExpired({ id, beat }: SeenLoader): boolean {
    return id !== this.lease.id && this.observers.isExpired(id, { epoch: "", beat, isHeld: true });
  }

  private async change(released: readonly number[], acquired: readonly number[]): Promise<void> {
    if (this.isStopped) return;
    this.changing = this.tryChange(released, acquired);
    try {
      await this.changing;
    } catch (error) {
      if (!this.isStopped) this.callbacks.onFatal(error);
    } finally {
      this.changing = undefined;
    }
  }

  private async tryChange(released: readonly number[], acquired: readonly number[]): Promise<void> {
    const { postgres, lease, progress } = this;
    await this.rest();
    await postgres.untilDone(() => progress.flush(postgres), this.isWanted);
    await this.callbacks.settle();
    if (released.length > 0)
      await postgres.untilDone(() => releasePartitions(postgres, lease, released), this.isWanted);
    const acquire = () => acquirePartitions(postgres, lease, acquired);
    const positions = acquired.length === 0 ? [] : await postgres.untilDone(acquire, this.isWanted);
    // The last renewal of the engines that held them was sent before.
    if (positions.length > 0) {
      this.fence.previousEnd = performance.now() + leaseMs + lateInsertMs;
      // PostgreSQL may have been restored to an earlier state since the last holders loaded them.
      await this.callbacks.assertNotAhead(this.isWanted);
    }
    if (this.isStopped) return;
    progress.change(released, positions);
    // What the engines before have committed.
    await this.callbacks.settle();
    this.callbacks.onChanged();
    this.pipeline!.reload();
    for (const batch of progress.openBatches()) {
      if (this.isStopped) return;
      await this.finish(batch);
    }
    if (this.isStopped) return;
    progress.startPhase();
    if (progress.partitions.length > 0) this.read();
  }

  private readonly isWanted = () => !this.isStopped;

  /** Loads the events of a batch that another engine has left open. */
  private async finish(batch: OpenBatch): Promise<void> {
    this.progress.startPhase(batch);
    this.read();
    while (this.progress.started !== undefined && !this.isStopped) await Bun.sleep(pollMs);
    await this.reader?.stop();
    if (this.isStopped) return;
    await this.pipeline!.settle();
    await this.postgres.untilDone(() => this.progress.flush(this.postgres), this.isWanted);
  }

  private read(): void {
    const { pipeline, progress } = this;
    const from = { realtime: 0, historical: 0 };
    for (const lane of ["realtime", "historical"] as const)
      from[lane] = Math.min(progress.cursor(lane), progress.loaded[lane]);
    const deps = { ...pipeline!, onFailure: (error: unknown) => this.report(error) };
    this.reader = new JournalReader(this.postgres, from, deps, progress.filter(pipeline!.isIdle));
    this.reader.start();
  }

  /** Stops reading, and ends the step in progress; nothing stays pending. */
  private async rest(): Promise<void> {
    await this.reader?.stop();
    this.reader = undefined;
    this.pipeline?.discard();
    if (this.progress.started?.isResumed !== true) await this.pipeline?.settle();
    // A step that was cut short has requeued the rest of its batches, which were read for the partitions held before.
    this.pipeline?.discard();
  }

  private async flush(): Promise<void> {
    if (this.changing === undefined) await this.progress.flush(this.postgres);
  }

  private report(error: unknown): void {
    if (!(error instanceof PostgresUnreachableError)) this.callbacks.onFatal(error);
  }
}
