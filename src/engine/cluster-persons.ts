/**
 * The person store of a cluster, and the lease of the node whose engine loads events. The engine with the lease applies
 * the journal in PostgreSQL like on a single machine, but commits every change of its file to PostgreSQL before it
 * continues; commits fail once another engine has the lease. If all engines load partitions, the one with the lease
 * coordinates: it replicates persons to the event store and deletes loaded blocks.
 */

import { changeChannel, markMirrored } from "../cluster/commits.ts";
import { ifAvailable, Postgres, PostgresUnreachableError, type Transaction } from "../cluster/connection.ts";
import { JournalReader } from "../cluster/journal-reader.ts";
import { type Layout, readLayout } from "../cluster/layout.ts";
import {
  acquireLease,
  type CommitFence,
  type Lease,
  LeaseLostError,
  LeaseObservers,
  lateInsertMs,
  leaseEnd,
  leaseMs,
  readLease,
  releaseLease,
  renewEveryMs,
  renewLease,
  revokeLease,
} from "../cluster/lease.ts";
import {
  deleteBlocks,
  type LanePosition,
  readHighestApplied,
  readLowestPosition,
} from "../cluster/partitions.ts";
import { StoreReplica } from "../cluster/store-replica.ts";
import type { InsertFence } from "../events/clickhouse/insert-fence.ts";
import type { Lane } from "../journal/segment.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import type { IdentityStep, IdentityStore } from "../persons/batch.ts";
import { type LoadProgress, recordPositions } from "../persons/external-events.ts";
import { type PersonsDb, personStore } from "../persons/open.ts";
import { assertRowsCurrent, RowStore, type RowStoreDeps } from "../persons/postgres/store.ts";
import type { PersonStore } from "../persons/store.ts";
import type { PersonCopies } from "./backend.ts";
import type { EngineStart } from "./messages.ts";
import { PartitionedLoading, type PipelinePort } from "./partitioned-loading.ts";
import { openPersonRows, type PersonRows } from "./person-rows.ts";

const connections = 4;
/** Polling interval, which covers notifications missed while disconnected. */
const checkIntervalMs = 500;
/** Interval of committing cursors and deleting loaded blocks. */
const pruneEveryMs = 500;
const tidyEveryMs = 20_000;
/** Limit of releasing the lease when this process fails, or has no time left to stop. */
const releaseMs = 500;
/** The same in an orderly stop: with an unreleased lease, commands for stopped clusters are rejected for ten seconds. */
const stopReleaseMs = 4_000;
/** Limit of finishing a load before a pause; an unfinished one is resumed after the pause. */
const handOverMs = 20_000;
/** The same after the lease was acquired, which is not renewed meanwhile. */
const acquiredMs = 3_000;

export interface ClusterPersonsCallbacks {
  onUnavailable(reason: PostgresUnreachableError | null): void;
  /** Changes of other nodes were applied. */
  onAcquired(): void;
  /** Called before partitions that were acquired are loaded. @throws if the event store is ahead of the journal */
  assertNotAhead(isWanted: () => boolean): Promise<void>;
  /** No node loads events: this process should exit and restart. */
  onFree(): void;
  /** Loading is paused and the lease is released: this process should exit and restart as a follower. */
  onPaused(): void;
  onFatal(error: unknown): void;
}

export class ClusterPersons {
  private reader: JournalReader | undefined;
  /** Up to where blocks were deleted last. */
  private pruned: Record<Lane, number> = { realtime: 0, historical: 0 };
  private readonly chores = new PeriodicTasks((error) => this.report(error));
  private copiedRevision = 0;
  /** Set if all engines load. */
  private partitions: PartitionedLoading | undefined;
  /** The positions of all partitions that were recorded last. */
  private recorded = "";
  private store: { people: PersonStore; rows: RowStore } | undefined;
  /** Undefined if persons are in the replicas. */
  readonly rows: PersonRows | undefined;

  private constructor(
    private readonly postgres: Postgres,
    private readonly replica: StoreReplica,
    private readonly lease: Lease | undefined,
    layout: Layout,
    private readonly callbacks: ClusterPersonsCallbacks,
  ) {
    if (layout.persons === "rows")
      this.rows = openPersonRows(postgres, {
        change: (run) => this.change(run),
        isCaughtUp: async () => (await this.partitions?.isCaughtUp()) ?? true,
      });
  }

  /** Applies other nodes' changes, and acquires the lease if it is free. @throws {OperatorActionError} */
  static async open(
    people: PersonsDb,
    { postgres: address, node }: NonNullable<EngineStart["cluster"]>,
    callbacks: ClusterPersonsCallbacks,
  ): Promise<ClusterPersons> {
    const postgres = new Postgres(address, { connections, name: "engine" }, (reason) =>
      callbacks.onUnavailable(reason),
    );
    const layout = await postgres.untilDone(() => readLayout(postgres));
    const replica = StoreReplica.attach(people.$client, personStore, postgres, {
      onApplied: () => callbacks.onAcquired(),
      persons: layout.persons,
    });
    const holder = crypto.randomUUID();
    const lease = await postgres.untilDone(() => acquireLease(postgres, { node, holder }));
    await postgres.untilDone(() => replica.catchUp());
    const shared = new ClusterPersons(postgres, replica, lease, layout, callbacks);
    if (layout.loading === "partitions") {
      await shared.loadPartitions(node);
      return shared;
    }
    if (layout.persons !== "rows" || lease === undefined) return shared;
    try {
      await postgres.untilDone(() => assertRowsCurrent(people, postgres));
    } catch (error) {
      await shared.release();
      throw error;
    }
    return shared;
  }

  private async loadPartitions(node: string): Promise<void> {
    const { postgres } = this;
    const callbacks = {
      settle: () => this.settle(),
      assertNotAhead: (isWanted: () => boolean) => this.callbacks.assertNotAhead(isWanted),
      onChanged: () => {
        this.store?.rows.reload();
        this.store?.people.useShare(this.partitions!.share);
      },
      onFatal: (error: unknown) => this.callbacks.onFatal(error),
    };
    this.partitions = await postgres.untilDone(() => PartitionedLoading.open(postgres, node, callbacks));
  }

  /** Whether this engine loads events. */
  get isLoader(): boolean {
    return this.isCoordinator || this.partitions !== undefined;
  }

  /** Whether this engine replicates persons to the event store and migrates that. */
  get isCoordinator(): boolean {
    return this.lease !== undefined;
  }

  /** How far this engine has loaded; undefined: the state in the store counts. */
  get progress(): LoadProgress | undefined {
    return this.partitions?.progress;
  }

  /** Per lane, the last number that any engine may have stored; undefined if one engine loads. */
  get loaded(): (() => Promise<Record<Lane, number>>) | undefined {
    return this.partitions && (() => this.postgres.untilDone(() => readHighestApplied(this.postgres)));
  }

  /** What this engine's commits require. */
  private get commitFence(): CommitFence | undefined {
    const { lease, partitions } = this;
    if (partitions === undefined) return lease;
    return {
      assertHeld: async (t) => {
        await partitions.lease.assertHeld(t);
        await lease?.assertHeld(t);
      },
    };
  }

  /** Fences off the inserts of this engine once it has lost the lease; undefined if it does not load. */
  get fence(): InsertFence | undefined {
    const { lease, partitions } = this;
    if (partitions !== undefined) return partitions.fence;
    // The previous node's last renewal was sent before this one acquired the lease.
    return lease && { until: () => leaseEnd(lease), previousEnd: lease.since + leaseMs + lateInsertMs };
  }

  /** Follows the loading node; or renews the lease and reads the journal from the stores' cursors. */
  async start(deps: PipelinePort, cursor: (lane: Lane) => number): Promise<void> {
    const { lease, partitions } = this;
    if (lease === undefined || partitions !== undefined) {
      await this.postgres.listen(changeChannel, (name) => {
        if (name === personStore.name) void this.replica.check();
      });
      this.chores.every(checkIntervalMs, () => this.replica.check());
    }
    partitions?.start(deps);
    if (lease === undefined) {
      const observers = new LeaseObservers();
      this.chores.every(renewEveryMs, () => this.watchLease(observers));
      return;
    }
    this.renew(lease, deps, cursor);
    this.chores.every(tidyEveryMs, () => this.replica.tidy());
    if (partitions !== undefined) {
      this.chores.every(pruneEveryMs, () => this.prunePartitions());
      return;
    }
    const from = { realtime: cursor("realtime"), historical: cursor("historical") };
    this.reader = new JournalReader(this.postgres, from, {
      ...deps,
      onFailure: (error) => this.report(error),
    });
    this.reader.start();
    this.chores.every(pruneEveryMs, () => this.prune(cursor));
  }

  private renew(lease: Lease, deps: PipelinePort, cursor: (lane: Lane) => number): void {
    let isPaused = false;
    this.chores.every(renewEveryMs, async () => {
      isPaused = await renewLease(this.postgres, lease);
    });
    // A task of its own: the lease is renewed meanwhile.
    this.chores.every(renewEveryMs, async () => {
      if (isPaused) await this.handOver(deps, cursor);
    });
  }

  /** The person store; each of its steps is committed to PostgreSQL. */
  around(identity: PersonStore): IdentityStore {
    const { postgres, partitions, commitFence: fence } = this;
    if (this.rows !== undefined && fence !== undefined) {
      const commit: RowStoreDeps["commit"] = async (write, prepare) =>
        await postgres.untilDone(() => this.untilLost(() => this.commitRows(fence, write, prepare)));
      const cursor = partitions && { cursor: partitions.progress };
      const rows = new RowStore({ postgres, people: identity, commit, ...cursor });
      this.store = { people: identity, rows };
      if (partitions !== undefined) identity.useShare(partitions.share);
      return rows;
    }
    return {
      cursor: (lane) => identity.cursor(lane),
      start: async (lane) => {
        const step = await identity.start(lane);
        const shared: IdentityStep = {
          add: (batch) => step.add(batch),
          get isFull() {
            return step.isFull;
          },
          commit: async (lastSeq) => {
            const spikes = await step.commit(lastSeq);
            await this.settle();
            return spikes;
          },
          abandon: () => step.abandon(),
        };
        return shared;
      },
    };
  }

  private async commitRows(
    fence: CommitFence,
    write: (t: Transaction) => Promise<void>,
    prepare: (t: Transaction) => Promise<void>,
  ): Promise<void> {
    const { partitions, replica } = this;
    if (partitions === undefined) {
      await replica.commitWith(async (t) => {
        await prepare(t);
        await write(t);
      }, fence);
      return;
    }
    // Rows of persons are those of this engine's projects: other engines commit meanwhile.
    await replica.commitWith(write, fence, async (t) => {
      await partitions.lease.assertHeld(t);
      await prepare(t);
    });
  }

  /**
   * Replicas of persons only contain committed changes, because another loader must know the changes' numbers. They are
   * not updated while PostgreSQL is unavailable, so that queries still work.
   */
  aroundCopies(copies: PersonCopies): PersonCopies {
    return {
      follow: () =>
        ifAvailable(async () => {
          if (this.replica.hasChanges) await this.change(() => undefined);
          const { revision } = this.replica;
          await copies.follow();
          if (revision > this.copiedRevision) await markMirrored(this.postgres, revision);
          this.copiedRevision = revision;
        }),
      get followed() {
        return copies.followed;
      },
    };
  }

  /** Resolves when all changes are committed to PostgreSQL; waits while it is unavailable. */
  async settle(): Promise<void> {
    await this.postgres.untilDone(() => this.change(() => undefined));
  }

  /** Runs a change of the store and commits it. @throws {PostgresUnreachableError} @throws errors of `run` */
  async change<Result>(run: (t: Transaction) => Result | Promise<Result>): Promise<Result> {
    return await this.untilLost(() => this.replica.change(run, this.commitFence));
  }

  /**
   * Runs a periodic change of the small tables; skipped while PostgreSQL is unavailable. With several engines, new rows
   * must be inserted after those of the others are known, and not of projects that another one loads.
   */
  async changeIfAvailable<Result>(run: () => Result): Promise<Result | undefined> {
    if (this.partitions === undefined) return run();
    if (this.partitions.isChanging) return undefined;
    return await ifAvailable(() => this.change(run));
  }

  private async untilLost<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof LeaseLostError) this.callbacks.onFatal(error);
      throw error;
    }
  }

  private report(error: unknown): void {
    if (!(error instanceof PostgresUnreachableError)) this.callbacks.onFatal(error);
  }

  /** Revokes the lease of a node that does not renew it, and restarts this process once it is free. */
  private async watchLease(observers: LeaseObservers): Promise<void> {
    const lease = await readLease(this.postgres);
    observers.recordRead();
    if (lease.isPaused) return;
    if (lease.isHeld && !(observers.isExpired("", lease) && (await revokeLease(this.postgres, lease))))
      return;
    const { partitions, postgres } = this;
    if (partitions !== undefined) {
      // The next engine of this node continues it; engines of other nodes go on loading.
      const { node, id: holder } = partitions.lease;
      if ((await acquireLease(postgres, { node, holder })) === undefined) return;
      if (await partitions.stop(acquiredMs)) {
        await this.settle();
        await partitions.release({ isLoaded: true });
      }
    }
    this.callbacks.onFree();
  }

  /** Loads what was read, and releases the lease. */
  private async handOver({ settle }: PipelinePort, cursor: (lane: Lane) => number): Promise<void> {
    const end = async () => {
      await this.reader?.stop();
      await this.partitions?.stop(handOverMs);
      await settle();
      return true;
    };
    const isLoaded = await Promise.race([end(), Bun.sleep(handOverMs).then(() => false)]);
    // Otherwise an insert may be on its way: the lease is revoked when it can no longer be stored.
    if (isLoaded) await this.stop(cursor);
    else this.chores.stop();
    this.callbacks.onPaused();
  }

  /** Stops reading the journal, and waits for the step in progress, which is the last one. */
  async rest(timeoutMs: number): Promise<void> {
    await this.partitions?.stop(timeoutMs);
  }

  /** Releases the lease; only `close` may follow. @param end when this process is to have stopped, by `performance.now` */
  async stop(cursor: (lane: Lane) => number, end = Number.POSITIVE_INFINITY): Promise<void> {
    this.chores.stop();
    await this.reader?.stop();
    const { lease, partitions } = this;
    if (partitions !== undefined) {
      await this.change(() => undefined).catch(() => undefined);
      await partitions.release({ isLoaded: true }).catch(() => undefined);
    } else if (lease !== undefined) await this.prune(cursor).catch(() => undefined);
    await this.releaseLease(Math.min(stopReleaseMs, Math.max(releaseMs, end - performance.now())));
  }

  /** Lets another node acquire the lease and the partitions immediately: this process ends. */
  async release(): Promise<void> {
    const released = this.partitions?.release({ isLoaded: false }).catch(() => undefined);
    await this.releaseLease(releaseMs);
    await Promise.race([released, Bun.sleep(releaseMs)]);
  }

  private async releaseLease(timeoutMs: number): Promise<void> {
    const { lease, postgres } = this;
    if (lease === undefined) return;
    await Promise.race([releaseLease(postgres, lease).catch(() => undefined), Bun.sleep(timeoutMs)]);
  }

  async close(): Promise<void> {
    await this.postgres.close();
  }

  /** Deletes blocks that all engines have loaded, and records the lowest positions for readers of the store. */
  private async prunePartitions(): Promise<void> {
    const { realtime, historical } = await readLowestPosition(this.postgres);
    const applied = { realtime: realtime.applied, historical: historical.applied };
    const loaded = { realtime: realtime.loaded, historical: historical.loaded };
    const lowest = JSON.stringify([applied, loaded]);
    if (lowest === this.recorded) return;
    await this.change(() => recordPositions(this.store!.people.db, applied, loaded));
    const getLast = (position: LanePosition) => Math.min(position.applied, position.loaded);
    await deleteBlocks(this.postgres, { realtime: getLast(realtime), historical: getLast(historical) });
    this.recorded = lowest;
  }

  private async prune(cursor: (lane: Lane) => number): Promise<void> {
    const loaded = { realtime: cursor("realtime"), historical: cursor("historical") };
    const { pruned } = this;
    const isNew = loaded.realtime > pruned.realtime || loaded.historical > pruned.historical;
    if (!isNew && !this.replica.hasChanges) return;
    await this.change(() => undefined);
    if (!isNew) return;
    await deleteBlocks(this.postgres, loaded);
    this.pruned = loaded;
  }
}
