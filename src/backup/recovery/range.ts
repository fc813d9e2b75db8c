/** Locates journal entries: in the event store, in the archive, in the journal, or nowhere. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ArchivedSegment, listArchive } from "../../journal/archive.ts";
import { firstOfFileName, type Lane, lanes, scanSegment } from "../../journal/segment.ts";

export type Cursors = Record<Lane, number>;

/** Entries that exist nowhere. */
export interface Gap {
  lane: Lane;
  first: number;
  last: number;
}

/**
 * Per lane, the last entry that an event store must have for the journal to continue from there.
 *
 * @param applied the cursors of the persons store, which covers everything that ever was in the event store.
 */
export function neededUpTo(journalFolder: string, applied: Cursors): Cursors {
  const upTo = (lane: Lane) => {
    const [first] = segmentNames(journalFolder, lane);
    return first === undefined ? applied[lane] : Math.min(applied[lane], firstOfFileName(first)! - 1);
  };
  return { realtime: upTo("realtime"), historical: upTo("historical") };
}

/** The archive's files with entries after the cursors. */
export function archivedAfter(archiveFolder: string, cursors: Cursors): ArchivedSegment[] {
  return lanes.flatMap((lane) => listArchive(archiveFolder, lane).filter(({ last }) => last > cursors[lane]));
}

/** The segments of a journal without a writer, such as a backup's. */
export function segmentsIn(journalFolder: string): ArchivedSegment[] {
  return lanes.flatMap((lane) =>
    segmentNames(journalFolder, lane).flatMap((name) => {
      const path = join(journalFolder, lane, name);
      const bytes = readFileSync(path);
      const scan = scanSegment(bytes);
      if (scan === undefined) return [];
      return [{ lane, first: scan.first, last: scan.last, path, bytes: scan.goodBytes }];
    }),
  );
}

/** Per lane, the last entry of a journal without a writer; 0 if empty. */
export function lastInJournal(journalFolder: string): Cursors {
  const last: Cursors = { realtime: 0, historical: 0 };
  for (const segment of segmentsIn(journalFolder)) last[segment.lane] = segment.last;
  return last;
}

function segmentNames(journalFolder: string, lane: Lane): string[] {
  try {
    const names = readdirSync(join(journalFolder, lane));
    return names.filter((name) => firstOfFileName(name) !== undefined).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The entries missing between the cursors and what is needed after these files are applied. */
export function gapsBetween(cursors: Cursors, needed: Cursors, files: readonly ArchivedSegment[]): Gap[] {
  return lanes.flatMap((lane) => {
    const gaps: Gap[] = [];
    let lastSeq = cursors[lane];
    const ofLane = files.filter((file) => file.lane === lane).sort((a, b) => a.first - b.first);
    for (const { first, last } of ofLane) {
      if (first > lastSeq + 1 && lastSeq < needed[lane]) {
        gaps.push({ lane, first: lastSeq + 1, last: Math.min(first - 1, needed[lane]) });
      }
      lastSeq = Math.max(lastSeq, last);
    }
    if (lastSeq < needed[lane]) gaps.push({ lane, first: lastSeq + 1, last: needed[lane] });
    return gaps;
  });
}

/** How many sequence numbers the gaps span; some may never have been used. */
export function entriesIn(gaps: readonly Gap[]): number {
  return gaps.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

/** `realtime 1 to 500 and historical 3 to 9 (about 507 events)` */
export function formatGaps(gaps: readonly Gap[]): string {
  const ranges = gaps.map(({ lane, first, last }) => `${lane} ${first} to ${last}`).join(" and ");
  return `${ranges} (about ${entriesIn(gaps)} events)`;
}
