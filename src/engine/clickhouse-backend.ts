/** Queries and loads events in a ClickHouse server. */

import {
  ClickHouseError,
  ClickHouseUnreachableError,
  memoryCodes,
  timeoutCodes,
} from "../events/clickhouse/connection.ts";
import { deleteExpiredExternalEvents } from "../events/clickhouse/event-expiry.ts";
import type { InsertFence } from "../events/clickhouse/insert-fence.ts";
import { ClickHouseLoader } from "../events/clickhouse/loader.ts";
import { ClickHousePersonReplica } from "../events/clickhouse/person-replica.ts";
import { ClickHousePropertyColumns } from "../events/clickhouse/property-columns.ts";
import { clickhouseSql } from "../events/clickhouse/sql-dialect.ts";
import { ClickHouseStore } from "../events/clickhouse/store.ts";
import type { MaterializedProperty } from "../events/duckdb/property-columns.ts";
import { StatementRejectedError } from "../events/duckdb/statement-errors.ts";
import { MaterializationPolicy, materializationRules } from "../events/materialized-columns.ts";
import type { PropertyLocation } from "../events/sql-dialect.ts";
import type { Lane } from "../journal/segment.ts";
import type { ClickHouseAddress } from "../lib/store-urls.ts";
import { ExternalEvents, type LoadProgress } from "../persons/external-events.ts";
import type { PersonsDb } from "../persons/open.ts";
import { type PersonSource, sqlitePersonSource } from "../persons/replica-source.ts";
import type { EventBackend, PersonCopies } from "./backend.ts";
import { QueryMemoryExceededError, QueryTimeoutError, type RunOptions } from "./running-queries.ts";

/** How much longer than the server's time limit we wait for a query. */
const graceMs = 1_000;
const firstPauseMs = 200;
const pauseMsMax = 5_000;

const promotionMs = 1_000;
/** How often the pinned properties are determined. */
const pinsMs = 10_000;

export interface ClickHouseBackendOptions {
  queryTimeoutMs: number;
  /** Maximum number of property columns. */
  columnsMax: number;
  /** Properties to materialize regardless of their use; read repeatedly. */
  pinned?: () => readonly string[];
  /** Another node's engine loads events and replicates persons. */
  isReader?: boolean;
  /** Persons to replicate; default: those of the person store. */
  persons?: PersonSource;
  /** Of this engine, if several load events. */
  progress?: LoadProgress;
  /** If several engines load: per lane, the last number that one of them may have stored. */
  loaded?: () => Promise<Record<Lane, number>>;
  /** For tests. */
  rules?: typeof materializationRules;
}

export interface ClickHouseBackendCallbacks {
  /** Receives the error when the server becomes unavailable, and null when it is available again. */
  onAway: (reason: ClickHouseUnreachableError | null) => void;
  onPromoted: (promoted: MaterializedProperty[]) => void;
  /** Resolves when a successor process knows the contents of the person store. */
  settle?: () => Promise<void>;
  /** Of the node that loads events in a cluster. */
  fence?: InsertFence;
  /** Wraps updates of the person replicas. */
  around?: (copies: PersonCopies) => PersonCopies;
}

/**
 * Computes queries; statements of users are DuckDB SQL and rejected. While the server is unavailable, queries fail with
 * `ClickHouseUnreachableError` and loading waits.
 */
export class ClickHouseBackend implements EventBackend {
  private readonly store: ClickHouseStore;
  readonly events: ClickHouseLoader;
  readonly copies: PersonCopies;
  private readonly external: ExternalEvents;
  private readonly columns: ClickHousePropertyColumns;
  private promotion: MaterializationPolicy | undefined;
  private promotionTimer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;

  constructor(
    address: ClickHouseAddress,
    people: PersonsDb,
    private readonly options: ClickHouseBackendOptions,
    private readonly callbacks: ClickHouseBackendCallbacks,
  ) {
    const { isReader = false } = options;
    this.external = new ExternalEvents(people);
    const { progress, loaded } = options;
    const { settle, fence } = callbacks;
    this.store = new ClickHouseStore(address, this.external, { isReader, settle, ...(loaded && { loaded }) });
    this.events = new ClickHouseLoader(this.store, (reason) => callbacks.onAway(reason), fence, progress);
    const replica = new ClickHousePersonReplica(this.store, options.persons ?? sqlitePersonSource(people));
    this.copies = isReader ? othersCopies(replica) : (callbacks.around?.(replica) ?? replica);
    // Twice the limit: queries also wait for a slot.
    this.columns = new ClickHousePropertyColumns(this.store, 2 * options.queryTimeoutMs);
  }

  /** Retries opening the store until it succeeds. @throws {OperatorActionError} @throws {NewerDataVersionError} */
  async open(): Promise<void> {
    await this.untilAvailable(async () => {
      await this.store.open();
      this.callbacks.onAway(null);
      await this.columns.open();
      this.startPromotion();
    });
  }

  /**
   * Waits for the server. @param isWanted checked before each try
   * @throws {OperatorActionError} the server has events that no engine has loaded @throws {NewerDataVersionError}
   */
  async assertNotAhead(isWanted: () => boolean): Promise<void> {
    await this.untilAvailable(async () => {
      await this.store.open();
      await this.store.assertNotAhead();
      this.callbacks.onAway(null);
    }, isWanted);
  }

  private async untilAvailable(work: () => Promise<void>, isWanted = () => true): Promise<void> {
    for (
      let pauseMs = firstPauseMs;
      !this.isClosed && isWanted();
      pauseMs = Math.min(2 * pauseMs, pauseMsMax)
    ) {
      try {
        await work();
        return;
      } catch (error) {
        if (!(error instanceof ClickHouseUnreachableError)) throw error;
        this.callbacks.onAway(error);
      }
      await Bun.sleep(pauseMs);
    }
  }

  private startPromotion(): void {
    const { rules, columnsMax } = this.options;
    // On a ClickHouse cluster, each column would have to be added to two tables atomically.
    if (this.store.address.cluster !== null || this.options.isReader === true) return;
    this.promotion = new MaterializationPolicy(this.columns, {
      ...(rules ?? materializationRules),
      columnsMax,
    });
    let pinnedAt = Number.NEGATIVE_INFINITY;
    const step = async () => {
      if (this.options.pinned !== undefined && columnsMax > 0 && performance.now() - pinnedAt > pinsMs) {
        pinnedAt = performance.now();
        this.promotion?.pin(this.options.pinned());
      }
      const before = this.columns.promoted.join();
      await this.promotion?.step().catch(() => undefined);
      if (this.columns.promoted.join() !== before) this.notifyPromoted();
      if (!this.isClosed) this.promotionTimer = setTimeout(step, promotionMs).unref();
    };
    this.notifyPromoted();
    void step();
  }

  private notifyPromoted(): void {
    this.callbacks.onPromoted(this.columns.promoted.map((name) => ({ name, filled: 1 })));
  }

  /** For one query: repeated use of a property is counted once. */
  private eventProperties(): PropertyLocation {
    const names = new Set<string>();
    return this.columns.location((name) => {
      if (!names.has(name) && this.options.columnsMax > 0) this.promotion?.recordUse([name]);
      names.add(name);
    });
  }

  /** Reads the load state again, which another node may have changed. */
  recordLoaded(): void {
    if (this.options.isReader === true) this.external.read();
  }

  /** Updates the person replicas; if the server is unavailable, they are updated later. */
  async follow(): Promise<void> {
    try {
      await this.copies.follow();
    } catch (error) {
      if (!(error instanceof ClickHouseUnreachableError) && !(error instanceof ClickHouseError)) throw error;
    }
  }

  async run<Result>(query: Parameters<EventBackend["run"]>[0], options: RunOptions): Promise<Result> {
    const { signal, endsAt } = options;
    signal?.throwIfAborted();
    const leftMs = endsAt === undefined ? undefined : endsAt - performance.now();
    if (leftMs !== undefined && leftMs <= 0) throw new QueryTimeoutError();
    const timeout = leftMs === undefined ? undefined : AbortSignal.timeout(Math.ceil(leftMs + graceMs));
    const signals = [signal, timeout].filter((each) => each !== undefined);
    try {
      await this.store.open();
      return (await query(
        clickhouseSql(
          this.store.connection,
          {
            signal: signals.length === 0 ? undefined : AbortSignal.any(signals),
            timeoutSeconds: leftMs === undefined ? undefined : Math.max(1, Math.ceil(leftMs / 1_000)),
          },
          this.eventProperties(),
        ),
      )) as Result;
    } catch (error) {
      if (timeout?.aborted && !signal?.aborted) throw new QueryTimeoutError();
      if (error instanceof ClickHouseError && timeoutCodes.includes(error.code))
        throw new QueryTimeoutError();
      if (error instanceof ClickHouseError && memoryCodes.includes(error.code))
        throw new QueryMemoryExceededError();
      throw error;
    }
  }

  /** @throws {StatementRejectedError} always */
  async runStatement(): Promise<never> {
    throw new StatementRejectedError(
      "SQL is not available while events are in ClickHouse. Query ClickHouse directly with a separate user.",
    );
  }

  /** @throws {StatementRejectedError} always */
  async download(): Promise<never> {
    return await this.runStatement();
  }

  async deleteExpiredEvents(cutoffs: Parameters<EventBackend["deleteExpiredEvents"]>[0]): Promise<number> {
    await this.store.open();
    return await deleteExpiredExternalEvents(this.store, cutoffs);
  }

  async readEverything(options: RunOptions): Promise<void> {
    await this.run(async (store) => {
      for (const table of ["events", "persons", "person_distinct_ids"])
        await store.rows(`SELECT max(cityHash64(*)) FROM ${table}`);
    }, options);
  }

  async holdCheckpoints(ms: number): Promise<void> {
    this.events.holdCheckpoints(ms);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.promotionTimer);
    await this.store.close();
  }
}

/** Replicas that another node's engine updates. */
function othersCopies(replica: ClickHousePersonReplica): PersonCopies {
  return {
    follow: async () => undefined,
    get followed() {
      return replica.followed;
    },
  };
}
