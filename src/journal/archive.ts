/**
 * Applied journal segments, stored compressed until a verified backup covers them. A file has a contiguous range of one
 * lane, `<first>-<last>.ndjson.zst`: zstd frames of whole segments, each ending with a line with its last entry. Idle
 * time is used to rewrite it in columnar form, `<first>-<last>.columns.zst` (archive-columnar.ts).
 */

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { zstdDecompressed, zstdFrames } from "../lib/zstd.ts";
import { decodeColumnar } from "./archive-columnar.ts";
import { SegmentCorruptError } from "./reader.ts";
import { type Lane, lanes, scanSegment } from "./segment.ts";

/** An archive file. */
export interface ArchivedSegment {
  lane: Lane;
  /** Sequence number of its first entry. */
  first: number;
  /** Sequence number of its last entry. */
  last: number;
  /** Compressed size. */
  bytes: number;
  path: string;
}

/** A journal segment without truncated bytes. */
export interface ArchivedString {
  first: number;
  last: number;
  bytes: Buffer;
}

/** Applied entries discarded before a backup covered them. */
export interface DiscardedRange {
  lane: Lane;
  first: number;
  last: number;
  /** `size`: the archive exceeded its maximum size; `disk`: the disk was almost full. */
  reason: "size" | "disk";
  /** Time of the last deletion, ISO 8601. */
  at: string;
}

const looksMax = 5;
const discardedName = "given-up.json";

/** The archive files of a lane, in order. */
export function listArchive(folder: string, lane: Lane): ArchivedSegment[] {
  let found = inspect(folder, lane);
  // A file may be replaced by a longer one while others are read.
  for (let attempt = 1; found.isStale && attempt < looksMax; attempt++) found = inspect(folder, lane);
  const { files } = found;
  // Longer range first: after a crash, the file that it replaces may still exist.
  files.sort((a, b) => a.first - b.first || b.last - a.last);
  let lastSeq = 0;
  return files.filter(({ last }) => {
    if (last <= lastSeq) return false;
    lastSeq = last;
    return true;
  });
}

function inspect(folder: string, lane: Lane): { files: ArchivedSegment[]; isStale: boolean } {
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

/** Last archived entry per lane; 0 if empty. */
export function lastArchived(folder: string): Record<Lane, number> {
  const last = (lane: Lane) => listArchive(folder, lane).at(-1)?.last ?? 0;
  return { realtime: last("realtime"), historical: last("historical") };
}

/** Highest sequence number known to be used per lane, even if the person store was lost. */
export function highestSeqs(folder: string, applied: Record<Lane, number>): Record<Lane, number> {
  const archived = lastArchived(folder);
  return {
    realtime: Math.max(applied.realtime, archived.realtime),
    historical: Math.max(applied.historical, archived.historical),
  };
}

/** Names sort like the sequence numbers of their entries. */
export function archivedFileName(first: number, last: number): string {
  return `${String(first).padStart(16, "0")}-${String(last).padStart(16, "0")}${rowsEnding}`;
}

const rowsEnding = ".ndjson.zst";
const columnsEnding = ".columns.zst";

export function isColumnar(path: string): boolean {
  return path.endsWith(columnsEnding);
}

/** The columnar counterpart of a file's path. */
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
 * Reads an archive file and verifies the hashes of all blocks.
 * @returns its segments up to the first corruption; `damage` is set if entries are missing
 */
export async function readArchived(
  archived: ArchivedSegment,
): Promise<{ segments: ArchivedString[]; corruption?: SegmentCorruptError }> {
  const { lane, first, last, path } = archived;
  const segments: ArchivedString[] = [];
  const corruptAfter = (good: number) => ({
    segments,
    corruption: new SegmentCorruptError(path, good, last),
  });
  const archivedJson = await toDisplayString(path).catch(() => undefined);
  if (archivedJson === undefined) return corruptAfter(first - 1);
  const { text } = archivedJson;
  let lastSeq = first - 1;
  // A file can also be truncated between two frames.
  const isWhole =
    archivedJson.isWhole && text.toString("utf8", text.length - frameEnd(last).length) === frameEnd(last);
  for (let start = 0; start < text.length; ) {
    const next = text.indexOf(segmentMark, start);
    const end = next === -1 ? text.length : next + 1;
    const bytes = withoutFrameEnd(text.subarray(start, end));
    const scan = scanSegment(bytes);
    if (scan === undefined || scan.torn || scan.lane !== lane || scan.first <= lastSeq) {
      return corruptAfter(Math.max(lastSeq, scan?.last ?? 0));
    }
    segments.push({ first: scan.first, last: scan.last, bytes });
    lastSeq = scan.last;
    start = end;
  }
  return isWhole ? { segments } : corruptAfter(lastSeq);
}

/**
 * The text of a file's frames; for a truncated file, the readable part with `isWhole` false.
 * @throws system errors, or an error about corrupt data
 */
export async function toDisplayString(path: string): Promise<{ text: Buffer; isWhole: boolean }> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" || isColumnar(path)) throw error;
  });
  // The file may have been rewritten since it was listed.
  if (bytes === undefined) return await toDisplayString(columnarPath(path));
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
 * Deletes files covered by a verified backup. Any process may call it, even while the archive is written.
 * @param folder of the archive
 * @param covered per lane, the last sequence number in the backup's stores or journal
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
    return JSON.parse(readFileSync(join(folder, discardedName), "utf8")) as DiscardedRange[];
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
  const path = join(folder, discardedName);
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
