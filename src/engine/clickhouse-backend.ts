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
import { ClickHouseStore } from "../events/clickhouse/store.ts";
import { StatementRefused } from "../events/query/failures.ts";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import type { PeopleDb } from "../people/open.ts";
import { OutsideEvents } from "../people/outside-events.ts";
import type { EventBackend } from "./backend.ts";
import { QueryTimedOut, QueryTookMemory, type RunOptions } from "./running-queries.ts";

/** How much later than the server we stop waiting for a query that it should have stopped. */
const graceMs = 1_000;
const firstPauseMs = 200;
const pauseMsMax = 5_000;

export class ClickHouseBackend implements EventBackend {
  private readonly store: ClickHouseStore;
  readonly events: ClickHouseLoader;
  readonly copies: ClickHouseMirror;
  private isClosed = false;

  /** @param onAway told why the server cannot be used, and with null when it can again. */
  constructor(
    address: ClickHouseAddress,
    people: PeopleDb,
    private readonly onAway: (reason: EventsUnreachable | null) => void,
  ) {
    this.store = new ClickHouseStore(address, new OutsideEvents(people));
    this.events = new ClickHouseLoader(this.store, onAway);
    this.copies = new ClickHouseMirror(this.store, people);
  }

  /** Tries to open the store until that is done. @throws {OperatorNeeded} @throws {DataFromNewerVersion} */
  async open(): Promise<void> {
    for (let pauseMs = firstPauseMs; !this.isClosed; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      try {
        await this.store.open();
        this.onAway(null);
        return;
      } catch (error) {
        if (!(error instanceof EventsUnreachable)) throw error;
        this.onAway(error);
      }
      await Bun.sleep(pauseMs);
    }
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
        clickhouseSql(this.store.connection, {
          signal: signals.length === 0 ? undefined : AbortSignal.any(signals),
          timeoutSeconds: leftMs === undefined ? undefined : Math.max(1, Math.ceil(leftMs / 1_000)),
        }),
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

  async holdCheckpoints(): Promise<void> {
    // There is no file that a backup copies.
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.store.close();
  }
}
