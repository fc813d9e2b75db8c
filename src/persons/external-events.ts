/**
 * State of an external event store, kept in the data directory: the store's ID, how far events are loaded, and the load
 * in progress. It is written before each request, so that after a crash exactly the same request is repeated.
 */

import { type Lane, lanes } from "../journal/segment.ts";
import { OperatorActionError } from "../lib/errors.ts";
import type { PersonsDb } from "./open.ts";

/** A load in progress: everything after the loaded entries up to `last`. */
export interface StartedLoad {
  lane: Lane;
  last: number;
  /** Another engine has started it: its inserts may be on their way. */
  isResumed?: boolean;
}

/** How far an engine has loaded events into an external store. */
export interface LoadProgress {
  /** Per lane, the last loaded number. */
  readonly loaded: Readonly<Record<Lane, number>>;
  readonly started: StartedLoad | undefined;
  /** Distinguishes inserts of equal ranges by several engines; empty if there is one. */
  readonly batchName: string;
  /** Fixes the end of the next load. */
  start(load: StartedLoad): void;
  /** Records that the load up to `last` has finished. */
  finish(lane: Lane, last: number): void;
  /** Whether a stored event belongs to the load in progress. */
  isUnfinished(event: { projectId: number; lane: Lane; seq: number }): boolean;
}

export class ExternalEvents implements LoadProgress {
  readonly batchName = "";
  readonly loaded: Record<Lane, number> = { realtime: 0, historical: 0 };
  private under: StartedLoad | undefined;

  constructor(private readonly db: PersonsDb) {
    this.read();
  }

  /** Reads the state again: another node may have loaded events. */
  read(): void {
    const rows = this.db.$client
      .query<[Lane, number, number | null], []>("SELECT lane, seq, begun_seq FROM outside_load")
      .values() as [Lane, number, number | null][];
    this.under = undefined;
    for (const [lane, seq, started] of rows) {
      this.loaded[lane] = seq;
      if (started !== null) this.under = { lane, last: started };
    }
  }

  /** The store's ID; generated at random on first use. */
  storeId(): { id: string; isClaimed: boolean } {
    const found = this.db.$client
      .query<{ id: string; is_claimed: number }, []>("SELECT id, is_claimed FROM outside_store")
      .get();
    if (found !== null) return { id: found.id, isClaimed: found.is_claimed === 1 };
    const id = crypto.randomUUID();
    this.db.$client.run("INSERT INTO outside_store VALUES (?, 0)", [id]);
    return { id, isClaimed: false };
  }

  /** The store's ID if the store has recorded it. */
  knownId(): string | undefined {
    const found = this.db.$client
      .query<{ id: string }, []>("SELECT id FROM outside_store WHERE is_claimed = 1")
      .get();
    return found?.id;
  }

  /** Records that the store has recorded its ID. */
  recordClaimed(): void {
    this.db.$client.run("UPDATE outside_store SET is_claimed = 1");
  }

  get started(): StartedLoad | undefined {
    return this.under;
  }

  start({ lane, last }: StartedLoad): void {
    this.db.$client.run(
      `INSERT INTO outside_load VALUES (?1, ?2, ?3) ON CONFLICT (lane) DO UPDATE SET begun_seq = ?3`,
      [lane, this.loaded[lane], last],
    );
    this.under = { lane, last };
  }

  finish(lane: Lane, last: number): void {
    this.db.$client.run(
      `INSERT INTO outside_load VALUES (?1, ?2, NULL) ON CONFLICT (lane) DO UPDATE SET seq = ?2, begun_seq = NULL`,
      [lane, last],
    );
    this.loaded[lane] = last;
    this.under = undefined;
  }

  isUnfinished({ lane, seq }: { lane: Lane; seq: number }): boolean {
    return this.under?.lane === lane && seq > this.loaded[lane] && seq <= this.under.last;
  }

  /** The last change that was copied to the event store; 0 if none. */
  get copiedChangeId(): number {
    const row = this.db.$client
      .query<{ change_id: number }, []>("SELECT change_id FROM outside_mirror")
      .get();
    return row?.change_id ?? 0;
  }

  markMirrored(changeId: number): void {
    const { $client } = this.db;
    if ($client.run("UPDATE outside_mirror SET change_id = ?", [changeId]).changes === 0)
      $client.run("INSERT INTO outside_mirror VALUES (?)", [changeId]);
  }
}

/** How far events are loaded into an external store; also for data directories of versions without that feature. */
export function loadedExternally(db: PersonsDb): Record<Lane, number> {
  const isKnown = db.$client.query("SELECT 1 FROM sqlite_master WHERE name = 'outside_load'").get() !== null;
  return isKnown ? new ExternalEvents(db).loaded : { realtime: 0, historical: 0 };
}

/** Records how far all events are applied and loaded, if that was stored elsewhere. */
export function recordPositions(
  { $client }: PersonsDb,
  applied: Record<Lane, number>,
  loaded: Record<Lane, number> = applied,
): void {
  for (const lane of lanes) {
    $client.run("UPDATE lane_cursor SET seq = ?1 WHERE lane = ?2 AND seq < ?1", [applied[lane], lane]);
    $client.run(
      `INSERT INTO outside_load VALUES (?1, ?2, NULL) ON CONFLICT (lane) DO UPDATE SET seq = ?2, begun_seq = NULL
       WHERE seq < ?2`,
      [lane, loaded[lane]],
    );
  }
}

/** Whether the events of a data directory are in an external store. */
export function hasExternalEvents(db: PersonsDb): boolean {
  return db.$client.query("SELECT 1 FROM outside_store WHERE is_claimed = 1").get() !== null;
}

/** Events are not where the settings say. */
class ExternalEventsError extends OperatorActionError {
  readonly code = "events_elsewhere";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

export function eventsAreExternal(): ExternalEventsError {
  return new ExternalEventsError(
    "The events of this data directory are kept in ClickHouse.",
    "Set --events-url or FLAGKEEP_EVENTS_URL, or migrate them back: `flagkeep migrate-events --to duckdb`.",
  );
}

/** @throws {ExternalEventsError} the events are in an external store */
export function assertLocalEvents(db: PersonsDb): void {
  if (hasExternalEvents(db)) throw eventsAreExternal();
}

/** @throws {ExternalEventsError} the data directory has events and stores them locally */
export function assertExternalEvents(db: PersonsDb, hasEvents: boolean): void {
  if (!hasEvents || hasExternalEvents(db)) return;
  throw new ExternalEventsError(
    "The events of this data directory are in events.duckdb.",
    "Start it without --events-url, or migrate them: `flagkeep migrate-events --to clickhouse://…`.",
  );
}

/** Switches a data directory to an external event store, loaded so far. */
export function useExternalStore(
  db: PersonsDb,
  { id, loaded }: { id: string; loaded: Record<Lane, number> },
): void {
  const { $client } = db;
  $client.transaction(() => {
    for (const table of ["outside_store", "outside_load", "outside_mirror"])
      $client.run(`DELETE FROM ${table}`);
    $client.run("INSERT INTO outside_store VALUES (?, 1)", [id]);
    for (const [lane, seq] of Object.entries(loaded))
      $client.run("INSERT INTO outside_load VALUES (?, ?, NULL)", [lane, seq]);
  })();
}

/** Switches a data directory back to the local event store. */
export function useLocalStore(db: PersonsDb): void {
  const { $client } = db;
  $client.transaction(() => {
    for (const table of ["outside_store", "outside_load", "outside_mirror"])
      $client.run(`DELETE FROM ${table}`);
  })();
}
