/**
 * The person store of a cluster, and the lease of the node whose engine loads events. The engine with the lease applies
 * the journal in PostgreSQL like on a single machine, but commits every change of its file to PostgreSQL before it
 * continues; commits fail once another engine has the lease.
 */

import { changeChannel, markMirrored } from "../cluster/commits.ts";
import { Postgres, PostgresUnreachableError, type Transaction } from "../cluster/connection.ts";
import { JournalReader, type ReaderDeps } from "../cluster/journal-reader.ts";
import { type PersonsLayout, readPersonsLayout } from "../cluster/layout.ts";
import {
  acquireLease,
  type Lease,
  LeaseLostError,
  LeaseObserver,
  leaseEnd,
  leaseMs,
  readLease,
  releaseLease,
  renewEveryMs,
  renewLease,
  revokeLease,
} from "../cluster/lease.ts";
import { StoreReplica } from "../cluster/store-replica.ts";
import type { InsertFence } from "../events/clickhouse/insert-fence.ts";
import type { Lane } from "../journal/segment.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import type { IdentityStep, IdentityStore } from "../persons/batch.ts";
import { type PeopleDb, peopleStore } from "../persons/open.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { PersonWriter } from "../persons/person-writer.ts";
import { PostgresPersonSource } from "../persons/postgres/person-source.ts";
import { postgresPersonWriter, sweepPendingRows } from "../persons/postgres/person-writer.ts";
import { PostgresPersonReader } from "../persons/postgres/reader.ts";
import { assertRowsCurrent, RowStore, type RowStoreDeps } from "../persons/postgres/store.ts";
import type { PersonSource } from "../persons/replica-source.ts";
import type { PeopleStore } from "../persons/store.ts";
import type { PersonCopies } from "./backend.ts";
import type { EngineStart } from "./messages.ts";

const connections = 4;
/** Polling interval, which covers notifications missed while disconnected. */
const checkIntervalMs = 500;
/** Interval of committing cursors and deleting loaded blocks. */
const pruneEveryMs = 500;
const tidyEveryMs = 20_000;
const releaseMs = 500;
/** Limit of finishing a load before a pause; an unfinished one is resumed after the pause. */
const handOverMs = 20_000;
/** How long after its deadline an insert may still be stored. */
const lateInsertMs = 1_000;

export interface ClusterPersonsCallbacks {
  onUnavailable(reason: PostgresUnreachableError | null): void;
  /** Changes of other nodes were applied. */
  onAcquired(): void;
  /** No node loads events: this process should exit and restart. */
  onFree(): void;
  /** Loading is paused and the lease is released: this process should exit and restart as a follower. */
  onPaused(): void;
  onFatal(error: unknown): void;
}

/** The pipeline of a loading engine. */
interface LoadingDeps extends Omit<ReaderDeps, "onFailure"> {
  /** Resolves when everything that was offered is loaded. */
  settle(): Promise<void>;
}

/** Persons as rows in PostgreSQL. */
interface PersonRows {
  reader: PersonReader;
  writer: PersonWriter;
  /** For the replicas in the event store. */
  source: PersonSource;
  /** Moves and deletes pending overrides; call it when all received events are applied. */
  sweep(nowMicros: number): Promise<void>;
}

export class SharedPeople {
  private reader: JournalReader | undefined;
  private forgotten: Record<Lane, number> = { realtime: 0, historical: 0 };
  private readonly chores = new PeriodicTasks((error) => {
    if (!(error instanceof PostgresUnreachableError)) this.callbacks.onFatal(error);
  });
  private mirrored = 0;
  /** Undefined if persons are in the replicas. */
  readonly rows: PersonRows | undefined;

  private constructor(
    private readonly postgres: Postgres,
    private readonly copy: StoreReplica,
    private readonly lease: Lease | undefined,
    layout: PersonsLayout,
    private readonly callbacks: ClusterPersonsCallbacks,
  ) {
    if (layout === "rows") this.rows = this.openRows();
  }

  /** Applies other nodes' changes, and acquires the lease if it is free. @throws {OperatorActionError} */
  static async open(
    people: PeopleDb,
    { postgres: address, node }: NonNullable<EngineStart["shared"]>,
    callbacks: ClusterPersonsCallbacks,
  ): Promise<SharedPeople> {
    const postgres = new Postgres(address, { connections, name: "engine" }, (reason) =>
      callbacks.onUnavailable(reason),
    );
    const copy = StoreReplica.attach(people.$client, peopleStore, postgres, {
      onApplied: () => callbacks.onAcquired(),
    });
    const holder = crypto.randomUUID();
    const lease = await postgres.untilDone(() => acquireLease(postgres, { node, holder }));
    await postgres.untilDone(() => copy.catchUp());
    const layout = await postgres.untilDone(() => readPersonsLayout(postgres));
    const shared = new SharedPeople(postgres, copy, lease, layout, callbacks);
    if (layout !== "rows" || lease === undefined) return shared;
    try {
      await postgres.untilDone(() => assertRowsCurrent(people, postgres));
    } catch (error) {
      await shared.release();
      throw error;
    }
    return shared;
  }

  /** Whether this engine loads events. */
  get isLoader(): boolean {
    return this.lease !== undefined;
  }

  /** Fences off the inserts of this engine once it has lost the lease; undefined if it does not load. */
  get fence(): InsertFence | undefined {
    const { lease } = this;
    // The previous node's last renewal was sent before this one acquired the lease.
    return lease && { until: () => leaseEnd(lease), previousEnd: lease.since + leaseMs + lateInsertMs };
  }

  /** Follows the loading node; or renews the lease and reads the journal from the stores' cursors. */
  async start(deps: LoadingDeps, cursor: (lane: Lane) => number): Promise<void> {
    const { lease } = this;
    if (lease === undefined) {
      await this.postgres.listen(changeChannel, (name) => {
        if (name === peopleStore.name) void this.copy.check();
      });
      this.chores.every(checkIntervalMs, () => this.copy.check());
      const observer = new LeaseObserver();
      this.chores.every(renewEveryMs, () => this.watchLease(observer));
      return;
    }
    const from = { realtime: cursor("realtime"), historical: cursor("historical") };
    this.reader = new JournalReader(this.postgres, from, {
      ...deps,
      onFailure: (error) => {
        if (!(error instanceof PostgresUnreachableError)) this.callbacks.onFatal(error);
      },
    });
    this.reader.start();
    let isPaused = false;
    this.chores.every(renewEveryMs, async () => {
      isPaused = await renewLease(this.postgres, lease);
    });
    // A task of its own: the lease is renewed meanwhile.
    this.chores.every(renewEveryMs, async () => {
      if (isPaused) await this.handOver(deps, cursor);
    });
    this.chores.every(pruneEveryMs, () => this.forget(cursor));
    this.chores.every(tidyEveryMs, () => this.copy.tidy());
  }

  /** The person store; each of its steps is committed to PostgreSQL. */
  around(identity: PeopleStore): IdentityStore {
    const { postgres, lease } = this;
    if (this.rows !== undefined && lease !== undefined) {
      const commit: RowStoreDeps["commit"] = (write) =>
        postgres.untilDone(() => this.untilLost(() => this.copy.commitWith(write, lease)));
      return new RowStore({ postgres, people: identity, commit });
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

  /**
   * Replicas of persons only contain committed changes, because another loader must know the changes' numbers. They are
   * not updated while PostgreSQL is unavailable, so that queries still work.
   */
  aroundCopies(copies: PersonCopies): PersonCopies {
    return {
      follow: async () => {
        try {
          if (this.copy.hasChanges) await this.change(() => undefined);
          const { revision } = this.copy;
          await copies.follow();
          if (revision > this.mirrored) await markMirrored(this.postgres, revision);
          this.mirrored = revision;
        } catch (error) {
          if (!(error instanceof PostgresUnreachableError)) throw error;
        }
      },
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
    return await this.untilLost(() => this.copy.change(run, this.lease));
  }

  private async untilLost<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof LeaseLostError) this.callbacks.onFatal(error);
      throw error;
    }
  }

  private openRows(): PersonRows {
    const { postgres } = this;
    return {
      reader: new PostgresPersonReader(postgres),
      writer: postgresPersonWriter((run) => this.change(run)),
      source: new PostgresPersonSource(postgres),
      sweep: async (nowMicros) => {
        try {
          const pending = await postgres.run((sql) => sql`SELECT 1 FROM flagkeep.pending_override LIMIT 1`);
          if (pending.length > 0) await this.change((t) => sweepPendingRows(t, nowMicros));
        } catch (error) {
          if (!(error instanceof PostgresUnreachableError)) throw error;
        }
      },
    };
  }

  /** Revokes the lease of a node that does not renew it, and restarts this process once it is free. */
  private async watchLease(observer: LeaseObserver): Promise<void> {
    const lease = await readLease(this.postgres);
    if (lease.isPaused) return;
    if (!lease.isHeld || (observer.isExpired(lease) && (await revokeLease(this.postgres, lease))))
      this.callbacks.onFree();
  }

  /** Loads what was read, and releases the lease. */
  private async handOver({ settle }: LoadingDeps, cursor: (lane: Lane) => number): Promise<void> {
    await this.reader?.stop();
    const isLoaded = await Promise.race([settle().then(() => true), Bun.sleep(handOverMs).then(() => false)]);
    // Otherwise an insert may be on its way: the lease is revoked when it can no longer be stored.
    if (isLoaded) await this.stop(cursor);
    else this.chores.stop();
    this.callbacks.onPaused();
  }

  /** Releases the lease; only `close` may follow. */
  async stop(cursor: (lane: Lane) => number): Promise<void> {
    this.chores.stop();
    await this.reader?.stop();
    if (this.lease === undefined) return;
    await this.forget(cursor).catch(() => undefined);
    await this.release();
  }

  /** Lets another node acquire the lease immediately. */
  async release(): Promise<void> {
    const { lease, postgres } = this;
    if (lease === undefined) return;
    await Promise.race([releaseLease(postgres, lease).catch(() => undefined), Bun.sleep(releaseMs)]);
  }

  async close(): Promise<void> {
    await this.postgres.close();
  }

  private async forget(cursor: (lane: Lane) => number): Promise<void> {
    const loaded = { realtime: cursor("realtime"), historical: cursor("historical") };
    const { forgotten } = this;
    const isNew = loaded.realtime > forgotten.realtime || loaded.historical > forgotten.historical;
    if (!isNew && !this.copy.hasChanges) return;
    await this.change(() => undefined);
    if (!isNew) return;
    await this.reader?.forget(loaded);
    this.forgotten = loaded;
  }
}
