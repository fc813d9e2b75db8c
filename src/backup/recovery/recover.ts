/**
 * Opens the event store in any state of its file: as it is, or rebuilt from a backup's copy and the archive.
 *
 * Never discards entries without consent: if entries would be missing, it throws with their ranges and changes nothing.
 * A corrupt file is quarantined, not deleted. After a crash at any point, the next call resumes.
 */

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RecoveryCallbacks } from "../../engine/stores.ts";
import {
  type EventDatabase,
  type EventDatabaseOptions,
  openEventDatabase,
} from "../../events/duckdb/database.ts";
import { EventLoader } from "../../events/duckdb/loader.ts";
import { getNewerFormat, toOpenError } from "../../events/duckdb/open-error.ts";
import { type ArchivedSegment, lastArchived } from "../../journal/archive.ts";
import { type Lane, lanes } from "../../journal/segment.ts";
import { AppError, firstLine, OperatorActionError } from "../../lib/errors.ts";
import { NewerDataVersionError } from "../../lib/sqlite.ts";
import { shellWord } from "../../lib/terminal-text.ts";
import { paths } from "../../paths.ts";
import type { PersonStore } from "../../persons/store.ts";
import { readLastBackup } from "../last-backup.ts";
import {
  openingStarted,
  openingSucceeded,
  quarantinedSince,
  quarantineEventStore,
  quarantineWal,
  readCorruptMark,
} from "./quarantine.ts";
import { type Cursors, entriesIn, formatGaps, type Gap, neededUpTo } from "./range.ts";
import {
  chooseRecoverySource,
  getCursors,
  type OlderCopy,
  planFrom,
  restoreSource,
} from "./recovery-source.ts";
import { replayArchive } from "./replay.ts";

/** The persons store is behind the event store or the archive: continuing from there would reuse sequence numbers. */
class PersonStoreBehindError extends OperatorActionError {
  readonly code = "persons_behind";
  override readonly hint =
    "Stop Flagkeep and restore the last backup over it: `flagkeep backup restore FILE --force --replay`.";
  constructor(lane: Lane, has: number, known: number) {
    super(
      `The person store ends at ${lane} entry ${has}, but entry ${known} was loaded: people.sqlite is missing or ` +
        "older than the other stores.",
    );
  }
}

/** The event store cannot be rebuilt completely. */
export class DataLossError extends OperatorActionError {
  readonly code = "events_would_be_lost";
  override readonly hint: string;
  constructor(
    reason: string,
    readonly gaps: readonly Gap[],
    backup: string,
  ) {
    super(`${reason} It can only be rebuilt without entries ${formatGaps(gaps)}.`);
    const key = backup.endsWith(".age") ? " --backup-key-file KEY" : "";
    this.hint =
      `Stop Flagkeep and rebuild from a newer backup, \`flagkeep rebuild --from ${shellWord(backup)}${key}\`, or without ` +
      "these entries, `flagkeep rebuild --accept-loss`.";
  }
}

/** Recently rebuilt several times and corrupt again: the disk or the memory may be faulty. */
class RepeatedCorruptionError extends OperatorActionError {
  readonly code = "broken_again";
  override readonly hint =
    "Check the disk and memory of the machine, then restart Flagkeep; see also `flagkeep doctor`.";
  constructor(reason: string, times: number) {
    super(`${reason} It was rebuilt ${times} times within ten minutes and is corrupt again.`);
  }
}

/** None of the backups can be used. */
class NoRecoverySourceError extends AppError {
  readonly code = "no_usable_copy";
  override readonly hint =
    "Choose another backup with --from, or omit it to rebuild the event store from the archive.";
}

/** Consecutive openings that crashed the process, after which the file is considered corrupt. */
const crashedOpeningsMax = 3;
/** Rebuilds allowed within ten minutes. */
const rebuiltMax = 3;

export interface Recovery {
  dataDir: string;
  /** The process that restarts this one; see `openingStarted`. */
  opener: string;
  options: EventDatabaseOptions;
  /** Opens the persons store. Called after DuckDB has locked the data. */
  people: () => PersonStore;
  /** Backups and similar copies, newest first. */
  copies: () => Promise<readonly OlderCopy[]>;
  /** Rebuilds the file even if it can be opened. */
  always?: boolean;
  /** Rebuilds from a copy even if the archive is complete. */
  mustBeCopy?: boolean;
  acceptLoss?: boolean;
  /** Opens a file that is marked as corrupt as it is. */
  ignoresMark?: boolean;
  hooks: Omit<RecoveryCallbacks, "onIncomplete">;
}

export interface Recovered {
  database: EventDatabase;
  loader: EventLoader;
  people: PersonStore;
  /** Discarded entries. */
  gaps: readonly Gap[];
  /** Number of replayed journal entries. */
  replayed: number;
  /** Source of the rebuild; undefined without one. */
  base?: string;
  /** Path of the quarantined previous file. */
  quarantined?: string;
}

/**
 * Opens the event store with every entry that the journal no longer holds.
 *
 * @throws {DataLossError} nothing was changed.
 * @throws {ArchiveDamaged}    an archive file is unreadable; the entries before it were applied.
 * @throws DuckDB's error when the file is in use or of a newer version, or memory or disk space is short.
 */
export async function recoverEventStore(recovery: Recovery): Promise<Recovered> {
  const { dataDir, options, hooks } = recovery;
  const dataPaths = paths(dataDir);
  // Opening a missing file would create one.
  const opened = existsSync(dataPaths.events) ? await openOrReason(recovery) : ({} as Opened);
  const people = recovery.people();
  const needed = neededUpTo(dataPaths.journal, {
    realtime: people.cursor("realtime"),
    historical: people.cursor("historical"),
  });
  assertPersons(people, lastArchived(dataPaths.archive));
  let reason = opened.reason;
  const isNew = !existsSync(dataPaths.events) && needed.realtime + needed.historical === 0;
  const database =
    isNew && !recovery.always ? await openEventDatabase(dataPaths.events, options) : opened.database;
  if (database !== undefined) {
    const loader = opened.loader ?? (await EventLoader.open(database));
    assertPersons(people, getCursors(loader));
    const { files, gaps } = planFrom(dataDir, getCursors(loader), needed);
    if (gaps.length === 0 && reason === undefined) {
      return { database, loader, people, ...(await catchUp(recovery, { loader, people, needed, files })) };
    }
    database.close();
    reason ??= "The event store misses entries that are no longer in the journal.";
  }
  reason ??= "events.duckdb is missing.";

  const base = await chooseRecoverySource({
    dataDir,
    options,
    needed,
    copies: await recovery.copies(),
    onCorruption: hooks.onCorruption,
    mustBeCopy: recovery.mustBeCopy ?? false,
  });
  if (base === undefined) throw new NoRecoverySourceError("No usable backup was found.");
  if (base.gaps.length > 0 && !recovery.acceptLoss) {
    throw new DataLossError(reason, base.gaps, readLastBackup(dataDir)?.file ?? "FILE");
  }
  if (recovery.always !== true) assertRecoverable(dataDir, reason);
  const quarantined = quarantineEventStore(dataDir);
  hooks.onStep("rebuilding the event store", { reason, from: base.name, put_aside: quarantined });
  restoreSource(dataDir, base);
  const created = await openEventDatabase(dataPaths.events, options);
  const loader = await EventLoader.open(created);
  const { gaps, replayed } = await catchUp(recovery, { loader, people, needed, files: base.files });
  if (base.folder !== undefined) rmSync(base.folder, { recursive: true, force: true });
  return {
    database: created,
    loader,
    people,
    base: base.name,
    quarantined,
    gaps: [...base.gaps, ...gaps],
    replayed: Math.max(0, replayed - entriesIn(base.gaps)),
  };
}

/** @throws {RepeatedCorruptionError} */
function assertRecoverable(dataDir: string, reason: string): void {
  const times = quarantinedSince(dataDir, Date.now() - 600_000);
  if (times >= rebuiltMax) throw new RepeatedCorruptionError(reason, times);
}

/** Applies files after the store's cursors. @returns the number of entries, and what could not be read */
async function catchUp(
  { dataDir, acceptLoss = false, hooks }: Recovery,
  way: { loader: EventLoader; people: PersonStore; needed: Cursors; files: readonly ArchivedSegment[] },
): Promise<{ replayed: number; gaps: Gap[] }> {
  const { loader, people, needed, files } = way;
  const storePaths = paths(dataDir);
  const before = getCursors(loader);
  if (before.realtime >= needed.realtime && before.historical >= needed.historical) {
    return { replayed: 0, gaps: [] };
  }
  const gaps = await replayArchive({
    loader,
    needed,
    acceptLoss,
    identity: people,
    archived: files,
    workFolder: join(storePaths.work, "replay"),
    quarantineFolder: storePaths.quarantine,
    onProgress: hooks.onProgress,
    onCorruption: hooks.onCorruption,
  });
  const passed =
    loader.cursor("realtime") + loader.cursor("historical") - before.realtime - before.historical;
  return { replayed: Math.max(0, passed - entriesIn(gaps)), gaps };
}

/** @throws {PersonStoreBehindError} */
function assertPersons(people: PersonStore, loaded: Cursors): void {
  for (const lane of lanes) {
    if (people.cursor(lane) < loaded[lane])
      throw new PersonStoreBehindError(lane, people.cursor(lane), loaded[lane]);
  }
}

interface Opened {
  database?: EventDatabase;
  loader?: EventLoader;
  /** Why it has to be rebuilt. */
  reason?: string;
}

/** @returns a reason to rebuild the file, if any; without a database the file cannot be opened. */
async function openOrReason(recovery: Recovery): Promise<Opened> {
  const { dataDir, opener, options, always, ignoresMark, hooks } = recovery;
  const files = paths(dataDir);
  const mark = ignoresMark ? undefined : readCorruptMark(dataDir);
  const crashes = openingStarted(dataDir, opener);
  if (crashes >= crashedOpeningsMax) {
    openingSucceeded(dataDir);
    return { reason: `events.duckdb is corrupt (opening it crashed the process ${crashes} times).` };
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const opened = await openComplete(files.events, options);
      openingSucceeded(dataDir);
      if (mark !== undefined) return { ...opened, reason: `events.duckdb is corrupt (${mark}).` };
      return always ? { ...opened, reason: "Requested." } : opened;
    } catch (error) {
      openingSucceeded(dataDir);
      const newer = getNewerFormat(error);
      if (newer !== undefined) {
        throw new NewerDataVersionError("file format of the event store", newer.found, newer.known);
      }
      const failure = toOpenError(error, "opening");
      if (failure === "other") throw error;
      const reason = `events.duckdb is corrupt (${firstLine(error)}).`;
      if (failure === "file_broken" || attempt > 1) return { reason };
      // The journal keeps the entries in the log until they are in the file.
      const quarantined = quarantineWal(dataDir);
      hooks.onStep("quarantined a corrupt write-ahead log of the event store", {
        put_aside: quarantined,
      });
    }
  }
}

/** Opens the file, and reads what every start needs. */
async function openComplete(path: string, options: EventDatabaseOptions) {
  const database = await openEventDatabase(path, options);
  try {
    return { database, loader: await EventLoader.open(database) };
  } catch (error) {
    database.close();
    throw error;
  }
}
