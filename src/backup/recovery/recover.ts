/**
 * Opens the event store whatever has become of its file: as it is, or made again from a backup's copy and the archive.
 *
 * Nothing is given up without being told to: when entries would be missing it says which, and leaves all as it is. A
 * broken file is put aside, not deleted. A crash at any moment is taken up by the next call.
 */

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RecoveryHooks } from "../../engine/stores.ts";
import {
  type EventDatabase,
  type EventDatabaseSettings,
  openEventDatabase,
} from "../../events/duckdb/database.ts";
import { EventLoader } from "../../events/duckdb/loader.ts";
import { newerFormatOf, openFailureOf } from "../../events/duckdb/open-failure.ts";
import { type ArchivedSegment, lastArchived } from "../../journal/archive.ts";
import { type Lane, lanes } from "../../journal/segment.ts";
import { AppError, firstLine, OperatorNeeded } from "../../lib/errors.ts";
import { shellWord } from "../../lib/shell-text.ts";
import { DataFromNewerVersion } from "../../lib/sqlite/migrate.ts";
import { paths } from "../../paths.ts";
import type { PeopleStore } from "../../people/store.ts";
import { readLastBackup } from "../last-backup.ts";
import { chooseBase, cursorsOf, type OlderCopy, placeBase, wayFrom } from "./base.ts";
import {
  doneOpening,
  noteOpening,
  putAsideSince,
  putEventStoreAside,
  putLogAside,
  readDamagedMark,
} from "./put-aside.ts";
import { type Cursors, entriesIn, type Gap, gapsText, neededUpTo } from "./range.ts";
import { replayArchive } from "./replay.ts";

/** The store of persons lacks what the event store or the archive has: going on from there would mix up numbers. */
class PersonsBehind extends OperatorNeeded {
  readonly code = "persons_behind";
  override readonly hint =
    "Stop Flagkeep and restore the last backup over it: `flagkeep backup restore FILE --force --replay`.";
  constructor(lane: Lane, has: number, known: number) {
    super(
      `The store of persons ends at the ${lane} entry ${has}, but entry ${known} was loaded: people.sqlite is missing or ` +
        "older than the rest.",
    );
  }
}

/** The event store cannot be made again in full. */
export class EventsWouldBeLost extends OperatorNeeded {
  readonly code = "events_would_be_lost";
  override readonly hint: string;
  constructor(
    reason: string,
    readonly gaps: readonly Gap[],
    backup: string,
  ) {
    super(`${reason} It can be made again only without the entries ${gapsText(gaps)}.`);
    const key = backup.endsWith(".age") ? " --backup-key-file KEY" : "";
    this.hint =
      `Stop Flagkeep and name a backup that reaches further, \`flagkeep rebuild --from ${shellWord(backup)}${key}\`, or do without ` +
      "these entries, `flagkeep rebuild --accept-loss`.";
  }
}

/** It was made again several times just now, and is broken again: the disk or the memory may be. */
class BrokenAgain extends OperatorNeeded {
  readonly code = "broken_again";
  override readonly hint =
    "Look at the disk and the memory of the machine, then start Flagkeep again; `flagkeep doctor` tells more.";
  constructor(reason: string, times: number) {
    super(`${reason} It was made again ${times} times within ten minutes, and does not stay whole.`);
  }
}

/** None of the backups can be used. */
class NoUsableCopy extends AppError {
  readonly code = "no_usable_copy";
  override readonly hint = "Give another one with --from, or none, to make the event store from the archive.";
}

/** Openings that ended the process, one after another, after which the file is taken for damaged. */
const crashedOpeningsMax = 3;
/** How often the file is made again within ten minutes. */
const madeAgainMax = 3;

export interface Recovery {
  dataDir: string;
  /** Who has it opened, again and again; see `noteOpening`. */
  opener: string;
  settings: EventDatabaseSettings;
  /** Opens the store of persons. Called when DuckDB has said that nobody else uses the data. */
  people: () => PeopleStore;
  /** Backups and the like, the newest first. */
  copies: () => Promise<readonly OlderCopy[]>;
  /** Makes it again even if it can be opened. */
  always?: boolean;
  /** Makes it again from a copy even if the archive would do. */
  mustBeCopy?: boolean;
  acceptLoss?: boolean;
  /** Opens a file that is known to be damaged as it is. */
  ignoresMark?: boolean;
  hooks: Omit<RecoveryHooks, "onIncomplete">;
}

export interface Recovered {
  database: EventDatabase;
  loader: EventLoader;
  people: PeopleStore;
  /** What was given up. */
  gaps: readonly Gap[];
  /** Journal entries that were applied again. */
  replayed: number;
  /** What it was made again from; undefined when it was not. */
  base?: string;
  /** Where the file is now that was there before. */
  putAside?: string;
}

/**
 * Opens the event store with everything that the journal does not hold any more.
 *
 * @throws {EventsWouldBeLost} nothing was changed.
 * @throws {ArchiveDamaged}    a file of the archive cannot be read; what is before it was applied.
 * @throws whatever DuckDB says when the file is in use, of a newer version, or memory or disk are short.
 */
export async function recoverEventStore(recovery: Recovery): Promise<Recovered> {
  const { dataDir, settings, hooks } = recovery;
  const place = paths(dataDir);
  // Opening a file that is not there would make one.
  const opened = existsSync(place.events) ? await openOrReason(recovery) : ({} as Opened);
  const people = recovery.people();
  const needed = neededUpTo(place.journal, {
    realtime: people.cursor("realtime"),
    historical: people.cursor("historical"),
  });
  requirePersons(people, lastArchived(place.archive));
  let reason = opened.reason;
  const isNew = !existsSync(place.events) && needed.realtime + needed.historical === 0;
  const database =
    isNew && !recovery.always ? await openEventDatabase(place.events, settings) : opened.database;
  if (database !== undefined) {
    const loader = opened.loader ?? (await EventLoader.open(database));
    requirePersons(people, cursorsOf(loader));
    const { files, gaps } = wayFrom(dataDir, cursorsOf(loader), needed);
    if (gaps.length === 0 && reason === undefined) {
      return { database, loader, people, ...(await catchUp(recovery, { loader, people, needed, files })) };
    }
    database.close();
    reason ??= "The event store lacks entries that are no longer in the journal.";
  }
  reason ??= "The event store's file is missing.";

  const base = await chooseBase({
    ...{ dataDir, settings, needed, copies: await recovery.copies(), onDamage: hooks.onDamage },
    mustBeCopy: recovery.mustBeCopy ?? false,
  });
  if (base === undefined) throw new NoUsableCopy("There is no backup that can be used.");
  if (base.gaps.length > 0 && !recovery.acceptLoss) {
    throw new EventsWouldBeLost(reason, base.gaps, readLastBackup(dataDir)?.file ?? "FILE");
  }
  if (recovery.always !== true) requireHope(dataDir, reason);
  const putAside = putEventStoreAside(dataDir);
  hooks.onStep("the event store is made again", { reason, from: base.name, put_aside: putAside });
  placeBase(dataDir, base);
  const made = await openEventDatabase(place.events, settings);
  const loader = await EventLoader.open(made);
  const { gaps, replayed } = await catchUp(recovery, { loader, people, needed, files: base.files });
  if (base.folder !== undefined) rmSync(base.folder, { recursive: true, force: true });
  return {
    ...{ database: made, loader, people, base: base.name, putAside, gaps: [...base.gaps, ...gaps] },
    replayed: Math.max(0, replayed - entriesIn(base.gaps)),
  };
}

/** @throws {BrokenAgain} */
function requireHope(dataDir: string, reason: string): void {
  const times = putAsideSince(dataDir, Date.now() - 600_000);
  if (times >= madeAgainMax) throw new BrokenAgain(reason, times);
}

/** Applies files behind the store's cursors. @returns how many entries, and what could not be read */
async function catchUp(
  { dataDir, acceptLoss = false, hooks }: Recovery,
  way: { loader: EventLoader; people: PeopleStore; needed: Cursors; files: readonly ArchivedSegment[] },
): Promise<{ replayed: number; gaps: Gap[] }> {
  const { loader, people, needed, files } = way;
  const place = paths(dataDir);
  const before = cursorsOf(loader);
  if (before.realtime >= needed.realtime && before.historical >= needed.historical) {
    return { replayed: 0, gaps: [] };
  }
  const gaps = await replayArchive({
    ...{ loader, needed, acceptLoss, identity: people, archived: files },
    workFolder: join(place.work, "replay"),
    quarantineFolder: place.quarantine,
    onProgress: hooks.onProgress,
    onDamage: hooks.onDamage,
  });
  const passed =
    loader.cursor("realtime") + loader.cursor("historical") - before.realtime - before.historical;
  return { replayed: Math.max(0, passed - entriesIn(gaps)), gaps };
}

/** @throws {PersonsBehind} */
function requirePersons(people: PeopleStore, loaded: Cursors): void {
  for (const lane of lanes) {
    if (people.cursor(lane) < loaded[lane]) throw new PersonsBehind(lane, people.cursor(lane), loaded[lane]);
  }
}

interface Opened {
  database?: EventDatabase;
  loader?: EventLoader;
  /** Why it has to be made again. */
  reason?: string;
}

/** @returns a reason to make the file again when there is one; without a database it cannot be opened. */
async function openOrReason(recovery: Recovery): Promise<Opened> {
  const { dataDir, opener, settings, always, ignoresMark, hooks } = recovery;
  const place = paths(dataDir);
  const mark = ignoresMark ? undefined : readDamagedMark(dataDir);
  const crashes = noteOpening(dataDir, opener);
  if (crashes >= crashedOpeningsMax) {
    doneOpening(dataDir);
    return { reason: `The event store's file is damaged (opening it ended the process ${crashes} times).` };
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const opened = await openWhole(place.events, settings);
      doneOpening(dataDir);
      if (mark !== undefined) return { ...opened, reason: `The event store's file is damaged (${mark}).` };
      return always ? { ...opened, reason: "It was asked for." } : opened;
    } catch (error) {
      doneOpening(dataDir);
      const newer = newerFormatOf(error);
      if (newer !== undefined) {
        throw new DataFromNewerVersion("file format of the event store", newer.found, newer.known);
      }
      const failure = openFailureOf(error, "opening");
      if (failure === "other") throw error;
      const reason = `The event store's file is damaged (${firstLine(error)}).`;
      if (failure === "file_broken" || attempt > 1) return { reason };
      // What was in the log is in the journal, which keeps it until it is in the file.
      const putAside = putLogAside(dataDir);
      hooks.onStep("the event store's log was damaged; the journal has what was in it", {
        put_aside: putAside,
      });
    }
  }
}

/** Opens the file, and reads what nothing goes on without. */
async function openWhole(path: string, settings: EventDatabaseSettings) {
  const database = await openEventDatabase(path, settings);
  try {
    return { database, loader: await EventLoader.open(database) };
  } catch (error) {
    database.close();
    throw error;
  }
}
