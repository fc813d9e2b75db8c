/** What the event store is made again from: from nothing, or from an older copy; the archive adds the rest. */

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type EventDatabaseSettings, openEventDatabase } from "../../events/duckdb/database.ts";
import { EventLoader } from "../../events/duckdb/loader.ts";
import type { ArchivedSegment } from "../../journal/archive.ts";
import { firstLine } from "../../lib/errors.ts";
import { paths } from "../../paths.ts";
import { archivedAfter, type Cursors, entriesIn, type Gap, gapsBetween, segmentsIn } from "./range.ts";

/** An older copy of the data, such as a backup. */
export interface OlderCopy {
  /** For messages. */
  name: string;
  /**
   * Writes the copy into an empty folder as it would be in a data directory: the event store and journal segments.
   *
   * @throws the copy cannot be used
   */
  extract(folder: string): Promise<void>;
  /** The last entries that are in it, in a store or in its journal. */
  reach(): Promise<Cursors>;
}

export interface Base {
  name: string;
  /** The folder of the extracted copy; undefined: it is made from nothing. */
  folder?: string;
  /** What has to be applied on top of it. */
  files: readonly ArchivedSegment[];
  /** What is missing then. */
  gaps: readonly Gap[];
}

export interface BaseChoice {
  dataDir: string;
  settings: EventDatabaseSettings;
  needed: Cursors;
  /** The newest first. */
  copies: readonly OlderCopy[];
  /** Only a copy will do. */
  mustBeCopy: boolean;
  onDamage: (error: Error) => void;
}

const nothing: Cursors = { realtime: 0, historical: 0 };

/** The files that lead from the cursors to what is needed, and what is missing between them. */
export function wayFrom(
  dataDir: string,
  cursors: Cursors,
  needed: Cursors,
  more: readonly ArchivedSegment[] = [],
) {
  const own = archivedAfter(paths(dataDir).archive, cursors);
  const files = [...own, ...more.filter(({ lane, last }) => last > cursors[lane])];
  return { files, gaps: gapsBetween(cursors, needed, files) };
}

/**
 * The base with which nothing is missing, or else as little as can be.
 *
 * @returns undefined when only a copy will do and none can be used.
 */
export async function chooseBase(choice: BaseChoice): Promise<Base | undefined> {
  const { dataDir, needed } = choice;
  let best: Base | undefined = choice.mustBeCopy
    ? undefined
    : { name: "the archive", ...wayFrom(dataDir, nothing, needed) };
  for (const [index, copy] of choice.copies.entries()) {
    if (best?.gaps.length === 0) break;
    const folder = join(paths(dataDir).work, `base-${index}`);
    try {
      const base = await baseOf(choice, copy, folder);
      if (best === undefined || entriesIn(base.gaps) < entriesIn(best.gaps)) {
        if (best?.folder !== undefined) rmSync(best.folder, { recursive: true, force: true });
        best = base;
        continue;
      }
    } catch (error) {
      choice.onDamage(new Error(`${copy.name} cannot be used (${firstLine(error)}).`));
    }
    rmSync(folder, { recursive: true, force: true });
  }
  return best;
}

async function baseOf(
  { dataDir, settings, needed }: BaseChoice,
  copy: OlderCopy,
  folder: string,
): Promise<Base> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await copy.extract(folder);
  const place = paths(folder);
  let cursors = nothing;
  // Of an appliance whose event store had not been made yet.
  if (existsSync(place.events)) {
    const database = await openEventDatabase(place.events, settings);
    try {
      cursors = cursorsOf(await EventLoader.open(database));
    } finally {
      database.close();
    }
  }
  return { name: copy.name, folder, ...wayFrom(dataDir, cursors, needed, segmentsIn(place.journal)) };
}

/** Puts the copy's event store where the data directory's should be. */
export function placeBase(dataDir: string, { folder }: Base): void {
  if (folder === undefined) return;
  const [from, to] = [paths(folder).events, paths(dataDir).events];
  // The log first: it means nothing without the file, but the file would lack what is in it.
  for (const end of [".wal", ""]) if (existsSync(from + end)) renameSync(from + end, to + end);
}

/**
 * What would be missing if the event store were made again now, by names and descriptions alone.
 *
 * @param needed see `neededUpTo`.
 */
export async function expectedGaps(
  dataDir: string,
  needed: Cursors,
  copies: readonly OlderCopy[],
): Promise<readonly Gap[]> {
  let best: readonly Gap[] = wayFrom(dataDir, nothing, needed).gaps;
  for (const copy of copies) {
    if (best.length === 0) break;
    // What cannot be read is of no use.
    const reach = await copy.reach().catch(() => nothing);
    const { gaps } = wayFrom(dataDir, reach, needed);
    if (entriesIn(gaps) < entriesIn(best)) best = gaps;
  }
  return best;
}

export function cursorsOf(loader: EventLoader): Cursors {
  return { realtime: loader.cursor("realtime"), historical: loader.cursor("historical") };
}
