/**
 * Moves all events from one event store to the other: most of them while Flagkeep runs, the last ones when it has stopped.
 *
 * The other store is filled beside the one in use, with a cursor of its own, so that a move which was broken off goes on where
 * it was. Only when both have the same events, and nobody uses the data directory, the settings of the directory change.
 */

import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { clickhouseSql } from "../events/clickhouse/dialect.ts";
import { ClickHouseLoader } from "../events/clickhouse/loader.ts";
import { ClickHouseStore } from "../events/clickhouse/store.ts";
import { duckdbSql, type EventSql } from "../events/dialect.ts";
import { type EventDatabaseSettings, openEventDatabase } from "../events/duckdb/database.ts";
import { EventLoader } from "../events/duckdb/loader.ts";
import { type EventSum, eventSums, type MovePage, type MoveRequest, storableOf } from "../events/move.ts";
import type { EventStore } from "../events/store.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import { AppError } from "../lib/errors.ts";
import { takeStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";
import { keepInside, keepOutside, OutsideEvents } from "../people/outside-events.ts";
import { laneCursors } from "../people/reader.ts";

/** The stores do not have the same events. */
class MoveDiffers extends AppError {
  readonly code = "move_differs";
  override readonly hint = "Nothing was changed. Remove what was copied there, and move again.";
}

/** There is something where the events should go. */
class MoveRefused extends AppError {
  readonly code = "move_refused";
}

/** The event store that is in use. */
export interface MoveSource {
  loadedSeqs(): Promise<Record<Lane, number>>;
  page(request: MoveRequest): Promise<MovePage>;
  sums(until: Record<Lane, number>): Promise<EventSum[]>;
}

/** Where the events go. */
export interface MoveTarget {
  readonly events: EventStore;
  ask<Result>(query: (store: EventSql) => Promise<Result>): Promise<Result>;
  /** Uses it from now on; nobody may use the data directory. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface Moved {
  events: number;
  /** Entries of the journal, per lane, that the target has. */
  seqs: Record<Lane, number>;
}

/** Copies what the target lacks, and compares. @param onProgress told how many entries of how many are there */
export async function moveEvents(
  source: MoveSource,
  target: MoveTarget,
  onProgress: (done: number, total: number) => void,
): Promise<Moved> {
  const until = await source.loadedSeqs();
  const total = until.realtime + until.historical;
  for (const lane of lanes) {
    for (let seqs = 1; target.events.cursor(lane) < until[lane]; ) {
      const after = target.events.cursor(lane);
      // A batch that was begun before a crash keeps its border.
      const begun = target.events.unfinished();
      const end = begun?.lane === lane ? begun.last : until[lane];
      const page = await source.page({
        lane,
        after,
        until: end,
        seqs: begun?.lane === lane ? end - after : seqs,
      });
      await target.events.load(
        lane,
        page.last,
        page.events.map((row) => storableOf(row, lane)),
      );
      seqs = page.seqs;
      onProgress(target.events.cursor("realtime") + target.events.cursor("historical"), total);
    }
  }
  while (!(await target.events.checkpoint())) await Bun.sleep(50);
  const [there, here] = [await target.ask((store) => eventSums(store, until)), await source.sums(until)];
  if (JSON.stringify(there) !== JSON.stringify(here)) throw new MoveDiffers(difference(here, there));
  return { events: here.reduce((sum, { count }) => sum + count, 0), seqs: until };
}

function difference(here: readonly EventSum[], there: readonly EventSum[]): string {
  const name = ({ projectId, lane }: EventSum) => `${projectId} ${lane}`;
  const found = new Map(there.map((each) => [name(each), each]));
  for (const each of here) {
    const other = found.get(name(each));
    if (other?.count === each.count && other.sum === each.sum) continue;
    const what = other?.count === each.count ? "others" : `${other?.count ?? 0}`;
    return `Project ${each.projectId} has ${each.count} ${each.lane} events, and ${what} where they went.`;
  }
  return "There are events of projects that have none here.";
}

/** @throws {OperatorNeeded} the database belongs to others. @throws {EventsUnreachable} */
export async function clickhouseTarget(dataDir: string, address: ClickHouseAddress): Promise<MoveTarget> {
  const place = paths(dataDir);
  const progress = openPeople(join(dataDir, "moving-events.sqlite"));
  const outside = new OutsideEvents(progress);
  const store = new ClickHouseStore(address, outside);
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
        const people = openPeople(place.people);
        keepOutside(people, { id: outside.storeId().id, loaded: outside.loaded });
        people.$client.close();
        for (const path of [place.events, `${place.events}.wal`])
          if (existsSync(path)) renameSync(path, `${path}.moved`);
      });
      await close();
      removeSqlite(join(dataDir, "moving-events.sqlite"));
    },
    close,
  };
}

/** @throws {MoveRefused} */
export async function duckdbTarget(
  dataDir: string,
  settings: Omit<EventDatabaseSettings, "temporaryFolder">,
): Promise<MoveTarget> {
  const place = paths(dataDir);
  if (existsSync(place.events)) throw new MoveRefused(`There is a file ${place.events} already.`);
  const path = `${place.events}.moving`;
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
        const people = openPeople(place.people);
        for (const end of ["", ".wal"])
          if (existsSync(`${path}${end}`)) renameSync(`${path}${end}`, `${place.events}${end}`);
        keepInside(people);
        people.$client.close();
      });
      rmSync(temporaryFolder, { recursive: true, force: true });
    },
    close: async () => database.close(),
  };
}

/** @throws {DirectoryInUse} @throws {MoveRefused} events came in meanwhile. */
async function whenAlone(dataDir: string, events: EventStore, work: () => void): Promise<void> {
  const place = paths(dataDir);
  const lock = await takeStoresLock(place, dataDir);
  try {
    const people = openPeople(place.people, { readonly: true });
    const applied = laneCursors(people);
    people.$client.close();
    if (lanes.some((lane) => applied[lane] !== events.cursor(lane)))
      throw new MoveRefused("Events came in meanwhile; run the command again.");
    work();
  } finally {
    lock.release();
  }
}

function removeSqlite(path: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
}
