/** Events in a ClickHouse server, asked and loaded by the engine. */

import {
  ClickHouseError,
  EventsUnreachable,
  memoryCodes,
  timeoutCodes,
} from "../events/clickhouse/connection.ts";
import { clickhouseSql } from "../events/clickhouse/dialect.ts";
import { ClickHouseLoader } from "../events/clickhouse/loader.ts";
import { removeOldOutsideEvents } from "../events/clickhouse/old-events.ts";
import { ClickHouseMirror } from "../events/clickhouse/person-mirror.ts";
import { ClickHousePropertyColumns } from "../events/clickhouse/property-columns.ts";
import { ClickHouseStore } from "../events/clickhouse/store.ts";
import type { PropertyPlace } from "../events/dialect.ts";
import type { PromotedProperty } from "../events/duckdb/property-columns.ts";
import { Promotion, promotionRules } from "../events/promotion.ts";
import { StatementRefused } from "../events/query/failures.ts";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import type { PeopleDb } from "../people/open.ts";
import { OutsideEvents } from "../people/outside-events.ts";
import type { EventBackend, PersonCopies } from "./backend.ts";
import { QueryTimedOut, QueryTookMemory, type RunOptions } from "./running-queries.ts";

/** How much later than the server we stop waiting for a query that it should have stopped. */
const graceMs = 1_000;
const firstPauseMs = 200;
const pauseMsMax = 5_000;

const promotionMs = 1_000;

export interface ClickHouseBackendSettings {
  queryTimeoutMs: number;
  /** Columns of single properties at most. */
  columnsMax: number;
  /** Another front's engine loads events and copies persons. */
  isReader?: boolean;
  /** For tests. */
  rules?: typeof promotionRules;
}

export interface ClickHouseBackendHooks {
  /** Told why the server cannot be used, and with null when it can again. */
  onAway: (reason: EventsUnreachable | null) => void;
  onPromoted: (promoted: PromotedProperty[]) => void;
  /** Resolves when whoever may go on instead of this process knows what the store of persons has. */
  settle?: () => Promise<void>;
  /** What is done before and after copies of persons follow. */
  around?: (copies: PersonCopies) => PersonCopies;
}

/**
 * Answers the computed queries; what people write in SQL is DuckDB's, and refused. While the server is away questions fail with
 * `EventsUnreachable`, and loading waits.
 */
export class ClickHouseBackend implements EventBackend {
  private readonly store: ClickHouseStore;
  readonly events: ClickHouseLoader;
  readonly copies: PersonCopies;
  private readonly outside: OutsideEvents;
  private readonly columns: ClickHousePropertyColumns;
  private promotion: Promotion | undefined;
  private promotionTimer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;

  constructor(
    address: ClickHouseAddress,
    people: PeopleDb,
    private readonly settings: ClickHouseBackendSettings,
    private readonly hooks: ClickHouseBackendHooks,
  ) {
    const { isReader = false } = settings;
    this.outside = new OutsideEvents(people);
    this.store = new ClickHouseStore(address, this.outside, { isReader, settle: hooks.settle });
    this.events = new ClickHouseLoader(this.store, (reason) => hooks.onAway(reason));
    const mirror = new ClickHouseMirror(this.store, people);
    this.copies = isReader ? othersCopies(mirror) : (hooks.around?.(mirror) ?? mirror);
    // Two times the limit: a question waits for its turn, too.
    this.columns = new ClickHousePropertyColumns(this.store, 2 * settings.queryTimeoutMs);
  }

  /** Tries to open the store until that is done. @throws {OperatorNeeded} @throws {DataFromNewerVersion} */
  async open(): Promise<void> {
    for (let pauseMs = firstPauseMs; !this.isClosed; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      try {
        await this.store.open();
        this.hooks.onAway(null);
        await this.columns.open();
        this.beginPromotion();
        return;
      } catch (error) {
        if (!(error instanceof EventsUnreachable)) throw error;
        this.hooks.onAway(error);
      }
      await Bun.sleep(pauseMs);
    }
  }

  private beginPromotion(): void {
    const { rules, columnsMax } = this.settings;
    // On a cluster each column would have to be in two tables at once.
    if (this.store.address.cluster !== null || this.settings.isReader === true) return;
    this.promotion = new Promotion(this.columns, { ...(rules ?? promotionRules), columnsMax });
    const step = async () => {
      const before = this.columns.promoted.join();
      await this.promotion?.step().catch(() => undefined);
      if (this.columns.promoted.join() !== before) this.tellPromoted();
      if (!this.isClosed) this.promotionTimer = setTimeout(step, promotionMs).unref();
    };
    this.tellPromoted();
    void step();
  }

  private tellPromoted(): void {
    this.hooks.onPromoted(this.columns.promoted.map((name) => ({ name, filled: 1 })));
  }

  /** Of one question, which is counted as one however often it names a property. */
  private eventProperties(): PropertyPlace {
    const names = new Set<string>();
    return this.columns.place((name) => {
      if (!names.has(name) && this.settings.columnsMax > 0) this.promotion?.note([name]);
      names.add(name);
    });
  }

  /** What another front has loaded counts from now on. */
  noteLoaded(): void {
    if (this.settings.isReader === true) this.outside.read();
  }

  /** The copies of persons follow; where the server is away they follow later. */
  async follow(): Promise<void> {
    try {
      await this.copies.follow();
    } catch (error) {
      if (!(error instanceof EventsUnreachable) && !(error instanceof ClickHouseError)) throw error;
    }
  }

  async run<Result>(query: Parameters<EventBackend["run"]>[0], options: RunOptions): Promise<Result> {
    const { signal, endsAt } = options;
    signal?.throwIfAborted();
    const leftMs = endsAt === undefined ? undefined : endsAt - performance.now();
    if (leftMs !== undefined && leftMs <= 0) throw new QueryTimedOut();
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
      if (timeout?.aborted && !signal?.aborted) throw new QueryTimedOut();
      if (error instanceof ClickHouseError && timeoutCodes.includes(error.code)) throw new QueryTimedOut();
      if (error instanceof ClickHouseError && memoryCodes.includes(error.code)) throw new QueryTookMemory();
      throw error;
    }
  }

  /** @throws {StatementRefused} always. */
  async runStatement(): Promise<never> {
    throw new StatementRefused(
      "SQL is not answered while events are kept in ClickHouse: ask ClickHouse itself, with a user of your own.",
    );
  }

  /** @throws {StatementRefused} always. */
  async download(): Promise<never> {
    return await this.runStatement();
  }

  async removeOldEvents(cutoffs: Parameters<EventBackend["removeOldEvents"]>[0]): Promise<number> {
    await this.store.open();
    return await removeOldOutsideEvents(this.store, cutoffs);
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

/** Another front's engine lets them follow. */
function othersCopies(mirror: ClickHouseMirror): PersonCopies {
  return {
    follow: async () => undefined,
    get followed() {
      return mirror.followed;
    },
  };
}
