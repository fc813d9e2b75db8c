/** Sources to rebuild the event store from: an empty one or an older copy, completed from the archive. */

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type EventDatabaseOptions, openEventDatabase } from "../../events/duckdb/database.ts";
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
   * Writes the copy into an empty folder with the layout of a data directory: the event store and journal segments.
   *
   * @throws the copy cannot be used
   */
  extract(folder: string): Promise<void>;
  /** The last entry per lane in it, in a store or in its journal. */
  lastSeqs(): Promise<Cursors>;
}

export interface RecoverySource {
  name: string;
  /** The folder of the extracted copy; undefined: rebuild from an empty store. */
  folder?: string;
  /** Files to apply on top of it. */
  files: readonly ArchivedSegment[];
  /** What is missing then. */
  gaps: readonly Gap[];
}

export interface RecoverySourceChoice {
  dataDir: string;
  options: EventDatabaseOptions;
  needed: Cursors;
  /** Newest first. */
  copies: readonly OlderCopy[];
  /** Requires a copy. */
  mustBeCopy: boolean;
  onCorruption: (error: Error) => void;
}

const nothing: Cursors = { realtime: 0, historical: 0 };

/** The files that lead from the cursors to what is needed, and the gaps between them. */
export function planFrom(
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
 * The source without gaps, or the one with the fewest missing entries.
 *
 * @returns undefined when a copy is required and none can be used.
 */
export async function chooseRecoverySource(
  choice: RecoverySourceChoice,
): Promise<RecoverySource | undefined> {
  const { dataDir, needed } = choice;
  let best: RecoverySource | undefined = choice.mustBeCopy
    ? undefined
    : { name: "the archive", ...planFrom(dataDir, nothing, needed) };
  for (const [index, copy] of choice.copies.entries()) {
    if (best?.gaps.length === 0) break;
    const folder = join(paths(dataDir).work, `base-${index}`);
    try {
      const base = await getBase(choice, copy, folder);
      if (best === undefined || entriesIn(base.gaps) < entriesIn(best.gaps)) {
        if (best?.folder !== undefined) rmSync(best.folder, { recursive: true, force: true });
        best = base;
        continue;
      }
    } catch (error) {
      choice.onCorruption(new Error(`${copy.name} cannot be used (${firstLine(error)}).`));
    }
    rmSync(folder, { recursive: true, force: true });
  }
  return best;
}

async function getBase(
  { dataDir, options, needed }: RecoverySourceChoice,
  copy: OlderCopy,
  folder: string,
): Promise<RecoverySource> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await copy.extract(folder);
  const dataPaths = paths(folder);
  let cursors = nothing;
  // The copy may be of a server without an event store yet.
  if (existsSync(dataPaths.events)) {
    const database = await openEventDatabase(dataPaths.events, options);
    try {
      cursors = getCursors(await EventLoader.open(database));
    } finally {
      database.close();
    }
  }
  return { name: copy.name, folder, ...planFrom(dataDir, cursors, needed, segmentsIn(dataPaths.journal)) };
}

/** Moves the copy's event store into the data directory. */
export function restoreSource(dataDir: string, { folder }: RecoverySource): void {
  if (folder === undefined) return;
  const from = paths(folder).events;
  const to = paths(dataDir).events;
  // The log first: without the file it is ignored, but a file without its log is incomplete.
  for (const end of [".wal", ""]) if (existsSync(from + end)) renameSync(from + end, to + end);
}

/**
 * What would be missing if the event store were rebuilt now, judged by file names and manifests alone.
 *
 * @param needed see `neededUpTo`.
 */
export async function expectedGaps(
  dataDir: string,
  needed: Cursors,
  copies: readonly OlderCopy[],
): Promise<readonly Gap[]> {
  let best: readonly Gap[] = planFrom(dataDir, nothing, needed).gaps;
  for (const copy of copies) {
    if (best.length === 0) break;
    // Unreadable copies are useless.
    const lastSeqs = await copy.lastSeqs().catch(() => nothing);
    const { gaps } = planFrom(dataDir, lastSeqs, needed);
    if (entriesIn(gaps) < entriesIn(best)) best = gaps;
  }
  return best;
}

export function getCursors(loader: EventLoader): Cursors {
  return { realtime: loader.cursor("realtime"), historical: loader.cursor("historical") };
}
