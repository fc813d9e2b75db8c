/**
 * Moves all events from one event store to the other: most of them while Flagkeep runs, the last ones once it has
 * stopped.
 *
 * The target is filled next to the store in use, with its own cursor, so that an interrupted migration resumes. The
 * settings of the directory change only when both have the same events and no process uses the data directory.
 */

import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ClickHouseLoader } from "../events/clickhouse/loader.ts";
import { clickhouseSql } from "../events/clickhouse/sql-dialect.ts";
import { ClickHouseStore } from "../events/clickhouse/store.ts";
import { type EventDatabaseOptions, openEventDatabase } from "../events/duckdb/database.ts";
import { EventLoader } from "../events/duckdb/loader.ts";
import { duckdbSql } from "../events/duckdb/sql-dialect.ts";
import {
  type EventSum,
  eventSums,
  type MigrationPage,
  type MigrationRequest,
  toStorable,
} from "../events/migration-reader.ts";
import type { EventSql } from "../events/sql-dialect.ts";
import type { EventStore } from "../events/store.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import type { ClickHouseAddress } from "../lib/store-urls.ts";
import { acquireStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { ExternalEvents, useExternalStore, useLocalStore } from "../persons/external-events.ts";
import { openPersons } from "../persons/open.ts";
import { laneCursors } from "../persons/reader.ts";

/** The stores do not have the same events. */
class MigrationMismatchError extends AppError {
  readonly code = "move_differs";
  override readonly hint = "Nothing was changed. Delete the copied events there, and migrate again.";
}

/** The target already contains data. */
class MigrationRejectedError extends AppError {
  readonly code = "move_refused";
}

/** The event store in use. */
export interface MigrationSource {
  loadedSeqs(): Promise<Record<Lane, number>>;
  page(request: MigrationRequest): Promise<MigrationPage>;
  sums(until: Record<Lane, number>): Promise<EventSum[]>;
}

export interface MigrationTarget {
  readonly events: EventStore;
  ask<Result>(query: (store: EventSql) => Promise<Result>): Promise<Result>;
  /** Switches to this store; requires the lock of the data directory. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface MigrationTotals {
  events: number;
  /** Per lane, the last journal entry in the target. */
  seqs: Record<Lane, number>;
}

/**
 * Copies what is missing in the target, and compares.
 *
 * @param onProgress receives the copied and the total number of entries.
 */
export async function migrateEvents(
  source: MigrationSource,
  target: MigrationTarget,
  onProgress: (done: number, total: number) => void,
): Promise<MigrationTotals> {
  const until = await source.loadedSeqs();
  const total = until.realtime + until.historical;
  for (const lane of lanes) {
    for (let seqs = 1; target.events.cursor(lane) < until[lane]; ) {
      const after = target.events.cursor(lane);
      // A batch interrupted by a crash keeps its boundary.
      const started = target.events.unfinished();
      const end = started?.lane === lane ? started.last : until[lane];
      const page = await source.page({
        lane,
        after,
        until: end,
        seqs: started?.lane === lane ? end - after : seqs,
      });
      await target.events.load(
        lane,
        page.last,
        page.events.map((row) => toStorable(row, lane)),
      );
      seqs = page.seqs;
      onProgress(target.events.cursor("realtime") + target.events.cursor("historical"), total);
    }
  }
  while (!(await target.events.checkpoint())) await Bun.sleep(50);
  const there = await target.ask((store) => eventSums(store, until));
  const here = await source.sums(until);
  if (JSON.stringify(there) !== JSON.stringify(here))
    throw new MigrationMismatchError(difference(here, there));
  return { events: here.reduce((sum, { count }) => sum + count, 0), seqs: until };
}

function difference(here: readonly EventSum[], there: readonly EventSum[]): string {
  const name = ({ projectId, lane }: EventSum) => `${projectId} ${lane}`;
  const found = new Map(there.map((each) => [name(each), each]));
  for (const each of here) {
    const other = found.get(name(each));
    if (other?.count === each.count && other.sum === each.sum) continue;
    const what = other?.count === each.count ? "others" : `${other?.count ?? 0}`;
    return `Project ${each.projectId} has ${each.count} ${each.lane} events here, but ${what} in the target store.`;
  }
  return "The target store has events of projects without events here.";
}

/** @throws {OperatorActionError} the database belongs to another installation. @throws {ClickHouseUnreachableError} */
export async function clickhouseTarget(
  dataDir: string,
  address: ClickHouseAddress,
): Promise<MigrationTarget> {
  const dataPaths = paths(dataDir);
  const progress = openPersons(join(dataDir, "moving-events.sqlite"));
  const external = new ExternalEvents(progress);
  const store = new ClickHouseStore(address, external);
  const close = async () => {
    progress.$client.close();
    await store.close();
  };
  try {
    await store.open();
  } catch (error) {
    await close();
    throw error;
  }
  const events = new ClickHouseLoader(store);
  return {
    events,
    ask: (query) => query(clickhouseSql(store.connection, {})),
    async finish() {
      await whenAlone(dataDir, events, () => {
        const people = openPersons(dataPaths.people);
        useExternalStore(people, { id: external.storeId().id, loaded: external.loaded });
        people.$client.close();
        for (const path of [dataPaths.events, `${dataPaths.events}.wal`])
          if (existsSync(path)) renameSync(path, `${path}.moved`);
      });
      await close();
      removeSqlite(join(dataDir, "moving-events.sqlite"));
    },
    close,
  };
}

/** @throws {MigrationRejectedError} */
export async function duckdbTarget(
  dataDir: string,
  settings: Omit<EventDatabaseOptions, "temporaryFolder">,
): Promise<MigrationTarget> {
  const storePaths = paths(dataDir);
  if (existsSync(storePaths.events)) throw new MigrationRejectedError(`${storePaths.events} already exists.`);
  const path = `${storePaths.events}.moving`;
  const temporaryFolder = join(dataDir, "moving-events");
  const database = await openEventDatabase(path, { ...settings, temporaryFolder });
  const events = await EventLoader.open(database);
  return {
    events,
    async ask(query) {
      const connection = await database.connect();
      return await query(duckdbSql(connection)).finally(() => connection.closeSync());
    },
    async finish() {
      database.close();
      await whenAlone(dataDir, events, () => {
        const people = openPersons(storePaths.people);
        for (const end of ["", ".wal"])
          if (existsSync(`${path}${end}`)) renameSync(`${path}${end}`, `${storePaths.events}${end}`);
        useLocalStore(people);
        people.$client.close();
      });
      rmSync(temporaryFolder, { recursive: true, force: true });
    },
    close: async () => database.close(),
  };
}

/** @throws {DirectoryInUseError} @throws {MigrationRejectedError} events arrived meanwhile. */
async function whenAlone(dataDir: string, events: EventStore, work: () => void): Promise<void> {
  const files = paths(dataDir);
  const lock = await acquireStoresLock(files, dataDir);
  try {
    const people = openPersons(files.people, { readonly: true });
    const applied = laneCursors(people);
    people.$client.close();
    if (lanes.some((lane) => applied[lane] !== events.cursor(lane)))
      throw new MigrationRejectedError("New events arrived during the migration. Run the command again.");
    work();
  } finally {
    lock.release();
  }
}

function removeSqlite(path: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
}
