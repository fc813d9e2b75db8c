/**
 * Applied journal segments, kept compressed until a verified backup covers them.
 *
 * A file holds the segments of a range of one lane, `<first>-<last>.ndjson.zst`: zstd frames, each with one or more
 * whole segments as they were in the journal and a last line that says how far the frame reaches. `zstdcat` shows it.
 * When idle, the text is rewritten in columnar form, `<first>-<last>.columns.zst` (archive-columnar.ts).
 * A range begins where the one before it ends, so a gap in the names is a gap in the entries.
 */

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { zstdDecompressed, zstdFrames } from "../lib/zstd.ts";
import { decodeColumnar } from "./archive-columnar.ts";
import { SegmentCorruptError } from "./reader.ts";
import { type Lane, lanes, scanSegment } from "./segment.ts";

/** A file of the archive. */
export interface ArchivedSegment {
  lane: Lane;
  /** Sequence number of its first entry. */
  first: number;
  /** Sequence number of its last entry. */
  last: number;
  /** Compressed. */
  bytes: number;
  path: string;
}

/** One journal segment without its truncated bytes. */
export interface ArchivedText {
  first: number;
  last: number;
  bytes: Buffer;
}

/** Applied entries that were discarded before a backup covered them. */
export interface DiscardedRange {
  lane: Lane;
  first: number;
  last: number;
  /** `size`: the archive would have been larger than allowed; `disk`: the disk was almost full. */
  reason: "size" | "disk";
  /** ISO 8601, time of the last deletion. */
  at: string;
}

const looksMax = 5;
const givenUpName = "given-up.json";

/** The archive's files of a lane, in order. */
export function listArchive(folder: string, lane: Lane): ArchivedSegment[] {
  let found = look(folder, lane);
  // A file may be replaced by a longer one while the others are read.
  for (let attempt = 1; found.isStale && attempt < looksMax; attempt++) found = look(folder, lane);
  const { files } = found;
  // Of two with the same beginning the longer one first: after a crash the shorter may still be there.
  files.sort((a, b) => a.first - b.first || b.last - a.last);
  let reached = 0;
  return files.filter(({ last }) => {
    if (last <= reached) return false;
    reached = last;
    return true;
  });
}

function look(folder: string, lane: Lane): { files: ArchivedSegment[]; isStale: boolean } {
  const files: ArchivedSegment[] = [];
  let isStale = false;
  for (const name of namesIn(join(folder, lane))) {
    const match = /^(\d{16})-(\d{16})\.(?:ndjson|columns)\.zst$/.exec(name);
    if (match === null) continue;
    const path = join(folder, lane, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) isStale = true;
    else files.push({ lane, first: Number(match[1]), last: Number(match[2]), bytes: stats.size, path });
  }
  return { files, isStale };
}

/** Per lane, the last entry in the archive; 0 if empty. */
export function lastArchived(folder: string): Record<Lane, number> {
  const last = (lane: Lane) => listArchive(folder, lane).at(-1)?.last ?? 0;
  return { realtime: last("realtime"), historical: last("historical") };
}

/** Per lane, the highest sequence number that is known to be used, also when the store of persons was lost. */
export function highestSeqs(folder: string, applied: Record<Lane, number>): Record<Lane, number> {
  const archived = lastArchived(folder);
  return {
    realtime: Math.max(applied.realtime, archived.realtime),
    historical: Math.max(applied.historical, archived.historical),
  };
}

/** Sorted as text, names are in the order of their entries. */
export function archivedFileName(first: number, last: number): string {
  return `${String(first).padStart(16, "0")}-${String(last).padStart(16, "0")}${rowsEnding}`;
}

const rowsEnding = ".ndjson.zst";
const columnsEnding = ".columns.zst";

export function isColumnar(path: string): boolean {
  return path.endsWith(columnsEnding);
}

/** The path of a file in columnar form. */
export function columnarPath(path: string): string {
  return path.slice(0, -rowsEnding.length) + columnsEnding;
}

/** The last line of a frame. */
export function frameEnd(last: number): string {
  return `{"archived":{"last":${last}}}\n`;
}

const newline = 0x0a;
const segmentMark = Buffer.from('\n{"segment":{"version":');
const endMark = Buffer.from('\n{"archived":{"last":');

/**
 * Reads a file of the archive and checks the hashes of all blocks in it.
 *
 * @returns its segments up to the first damage; `damage` is set when entries are missing behind them.
 */
export async function readArchived(
  archived: ArchivedSegment,
): Promise<{ segments: ArchivedText[]; damage?: SegmentCorruptError }> {
  const { lane, first, last, path } = archived;
  const segments: ArchivedText[] = [];
  const damagedBehind = (good: number) => ({ segments, damage: new SegmentCorruptError(path, good, last) });
  const archivedText = await textOf(path).catch(() => undefined);
  if (archivedText === undefined) return damagedBehind(first - 1);
  const { text } = archivedText;
  let reached = first - 1;
  // A file can also end between two frames.
  const isWhole =
    archivedText.isWhole && text.toString("utf8", text.length - frameEnd(last).length) === frameEnd(last);
  for (let start = 0; start < text.length; ) {
    const next = text.indexOf(segmentMark, start);
    const end = next === -1 ? text.length : next + 1;
    const bytes = withoutFrameEnd(text.subarray(start, end));
    const scan = scanSegment(bytes);
    if (scan === undefined || scan.torn || scan.lane !== lane || scan.first <= reached) {
      return damagedBehind(Math.max(reached, scan?.last ?? 0));
    }
    segments.push({ first: scan.first, last: scan.last, bytes });
    reached = scan.last;
    start = end;
  }
  return isWhole ? { segments } : damagedBehind(reached);
}

/**
 * The text of a file's frames, as far as it goes when the file is cut off: `isWhole` is false then.
 *
 * @throws what the system says, or that the bytes are damaged.
 */
export async function textOf(path: string): Promise<{ text: Buffer; isWhole: boolean }> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" || isColumnar(path)) throw error;
  });
  // It may have been rewritten since it was listed.
  if (bytes === undefined) return await textOf(columnarPath(path));
  const { length, isWhole } = zstdFrames(bytes);
  const text = await zstdDecompressed(bytes.subarray(0, length));
  return { text: isColumnar(path) ? decodeColumnar(text) : text, isWhole };
}

function withoutFrameEnd(bytes: Buffer): Buffer {
  const mark = bytes.lastIndexOf(endMark);
  return mark !== -1 && bytes.indexOf(newline, mark + 1) === bytes.length - 1
    ? bytes.subarray(0, mark + 1)
    : bytes;
}

/**
 * Deletes what a verified backup covers. May be called by any process, also while the archive is written.
 *
 * @param folder  the archive's.
 * @param covered per lane, the last sequence number that is in the backup's stores or in its journal.
 */
export function pruneArchive(folder: string, covered: Record<Lane, number>): void {
  for (const lane of lanes) {
    for (const { last, path } of listArchive(folder, lane)) {
      if (last <= covered[lane]) rmSync(path, { force: true });
    }
  }
  const left = discardedRanges(folder).filter(({ lane, last }) => last > covered[lane]);
  if (left.length < discardedRanges(folder).length) writeDiscarded(folder, left);
}

/** Ranges discarded since the last backup, one per lane. */
export function discardedRanges(folder: string): DiscardedRange[] {
  try {
    return JSON.parse(readFileSync(join(folder, givenUpName), "utf8")) as DiscardedRange[];
  } catch {
    return [];
  }
}

/** Records a discarded range durably. */
export function recordDiscarded(folder: string, range: DiscardedRange): void {
  const before = discardedRanges(folder);
  const same = before.find(({ lane }) => lane === range.lane);
  const joined = same === undefined ? range : { ...range, first: Math.min(same.first, range.first) };
  writeDiscarded(folder, [...before.filter(({ lane }) => lane !== range.lane), joined]);
}

function writeDiscarded(folder: string, ranges: readonly DiscardedRange[]): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, givenUpName);
  writeFileSync(`${path}.tmp`, JSON.stringify(ranges), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
