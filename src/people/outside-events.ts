/**
 * What this data directory knows of events that are kept outside of it: in which store, how far they are loaded, and which
 * batch is under way. It is written before the store is asked for anything, so that whoever goes on after a crash asks for
 * exactly the same again.
 */

import type { Lane } from "../journal/segment.ts";
import { OperatorNeeded } from "../lib/errors.ts";
import type { PeopleDb } from "./open.ts";

/** A batch that was begun: everything up to `last` behind what is loaded. */
export interface BegunLoad {
  lane: Lane;
  last: number;
}

export class OutsideEvents {
  readonly loaded: Record<Lane, number> = { realtime: 0, historical: 0 };
  private under: BegunLoad | undefined;

  constructor(private readonly db: PeopleDb) {
    this.read();
  }

  /** Reads anew what is stored: another front may have loaded more. */
  read(): void {
    const rows = this.db.$client
      .query<[Lane, number, number | null], []>("SELECT lane, seq, begun_seq FROM outside_load")
      .values() as [Lane, number, number | null][];
    this.under = undefined;
    for (const [lane, seq, begun] of rows) {
      this.loaded[lane] = seq;
      if (begun !== null) this.under = { lane, last: begun };
    }
  }

  /** The store's name; given to it once, by chance. */
  storeId(): { id: string; isClaimed: boolean } {
    const found = this.db.$client
      .query<{ id: string; is_claimed: number }, []>("SELECT id, is_claimed FROM outside_store")
      .get();
    if (found !== null) return { id: found.id, isClaimed: found.is_claimed === 1 };
    const id = crypto.randomUUID();
    this.db.$client.run("INSERT INTO outside_store VALUES (?, 0)", [id]);
    return { id, isClaimed: false };
  }

  /** The store's name once it was told it. */
  knownId(): string | undefined {
    const found = this.db.$client
      .query<{ id: string }, []>("SELECT id FROM outside_store WHERE is_claimed = 1")
      .get();
    return found?.id;
  }

  /** The store knows its name. */
  noteClaimed(): void {
    this.db.$client.run("UPDATE outside_store SET is_claimed = 1");
  }

  get begun(): BegunLoad | undefined {
    return this.under;
  }

  /** Fixes the border of the batch that is loaded next. */
  begin({ lane, last }: BegunLoad): void {
    this.db.$client.run(
      `INSERT INTO outside_load VALUES (?1, ?2, ?3) ON CONFLICT (lane) DO UPDATE SET begun_seq = ?3`,
      [lane, this.loaded[lane], last],
    );
    this.under = { lane, last };
  }

  /** The lane is loaded up to there, and no batch is under way. */
  finish(lane: Lane, last: number): void {
    this.db.$client.run(
      `INSERT INTO outside_load VALUES (?1, ?2, NULL) ON CONFLICT (lane) DO UPDATE SET seq = ?2, begun_seq = NULL`,
      [lane, last],
    );
    this.loaded[lane] = last;
    this.under = undefined;
  }

  /** The last change whose persons are copied; 0 at first. */
  get mirrored(): number {
    const row = this.db.$client
      .query<{ change_id: number }, []>("SELECT change_id FROM outside_mirror")
      .get();
    return row?.change_id ?? 0;
  }

  noteMirrored(changeId: number): void {
    const { $client } = this.db;
    if ($client.run("UPDATE outside_mirror SET change_id = ?", [changeId]).changes === 0)
      $client.run("INSERT INTO outside_mirror VALUES (?)", [changeId]);
  }
}

/** How far events are loaded that are kept outside of a data directory, which may be of a version without such. */
export function loadedOutside(db: PeopleDb): Record<Lane, number> {
  const isKnown = db.$client.query("SELECT 1 FROM sqlite_master WHERE name = 'outside_load'").get() !== null;
  return isKnown ? new OutsideEvents(db).loaded : { realtime: 0, historical: 0 };
}

/** Whether the events of a data directory are outside of it. */
export function areEventsOutside(db: PeopleDb): boolean {
  return db.$client.query("SELECT 1 FROM outside_store WHERE is_claimed = 1").get() !== null;
}

/** Events are kept elsewhere than the settings say. */
class EventsElsewhere extends OperatorNeeded {
  readonly code = "events_elsewhere";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

export function eventsAreOutside(): EventsElsewhere {
  return new EventsElsewhere(
    "The events of this data directory are kept in ClickHouse.",
    "Name it with --events-url or FLAGKEEP_EVENTS_URL, or bring them back: `flagkeep migrate-events --to duckdb`.",
  );
}

/** @throws {EventsElsewhere} the events of a data directory are outside of it. */
export function requireEventsInside(db: PeopleDb): void {
  if (areEventsOutside(db)) throw eventsAreOutside();
}

/** @throws {EventsElsewhere} the events of a data directory, of which there are some, are in it. */
export function requireEventsOutside(db: PeopleDb, hasEvents: boolean): void {
  if (!hasEvents || areEventsOutside(db)) return;
  throw new EventsElsewhere(
    "The events of this data directory are in its file events.duckdb.",
    "Start it without --events-url, or move them: `flagkeep migrate-events --to clickhouse://…`.",
  );
}

/** The events of a data directory are outside of it from now on, loaded so far. */
export function keepOutside(
  db: PeopleDb,
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

/** They are in it again. */
export function keepInside(db: PeopleDb): void {
  const { $client } = db;
  $client.transaction(() => {
    for (const table of ["outside_store", "outside_load", "outside_mirror"])
      $client.run(`DELETE FROM ${table}`);
  })();
}
