/**
 * Format of a journal segment: NDJSON, loadable by the event store and readable by people.
 *
 *   {"segment":{"version":1,"lane":"realtime","first":1}}
 *   {"seq":1,"project_id":1,...}
 *   {"seq":2,"project_id":1,...}
 *   {"block":{"last":2,"bytes":1234,"hash":"9f86d081884c7d65"}}
 *
 * Entries made durable together end with one block line. Its hash covers the sequence number and the bytes since the
 * previous block and is seeded with that block's hash, so missing, foreign or changed blocks are detected. Bytes after
 * the last intact block were never acknowledged; zeros are allocated space (`segment-file.ts`).
 */

import { getSeq } from "./entry.ts";

/** `realtime` and `historical` events have separate queues; order is kept within a lane. */
export type Lane = "realtime" | "historical";
export const lanes: readonly Lane[] = ["realtime", "historical"];

/** A segment that is no longer written. */
export interface SealedSegment {
  lane: Lane;
  /** Sequence number of its first entry. */
  first: number;
  /** Sequence number of its last entry. */
  last: number;
  path: string;
  /** Size up to and including the last block line. */
  bytes: number;
}

const segmentVersion = 1;

/** Names sort like the sequence numbers of their entries. */
export function segmentFileName(first: number): string {
  return `${String(first).padStart(16, "0")}.ndjson`;
}

/** The first sequence number in a segment's file name; undefined for other files. */
export function firstOfFileName(name: string): number | undefined {
  const match = /^(\d{16})\.ndjson$/.exec(name);
  return match ? Number(match[1]) : undefined;
}

/** The first line of a segment, including its line break. */
export function segmentHeader(lane: Lane, first: number): string {
  return `{"segment":{"version":${segmentVersion},"lane":"${lane}","first":${first}}}\n`;
}

/** The hash that seeds the first block of a segment. */
export function hashSeed(first: number): bigint {
  return BigInt(first);
}

/** @param last sequence number of the block's last entry. */
export function hashBlock(bytes: Uint8Array, last: number, previous: bigint): bigint {
  return Bun.hash.xxHash64(bytes, previous ^ BigInt(last));
}

/** The line that ends a block and makes it valid. @param bytes of the block without this line */
export function blockLine(last: number, bytes: number, hash: bigint): string {
  return `{"block":{"last":${last},"bytes":${bytes},"hash":"${hash.toString(16).padStart(16, "0")}"}}\n`;
}

export interface SegmentScan {
  lane: Lane;
  first: number;
  /** Sequence number of the last durable entry; `first - 1` if the segment is empty. */
  last: number;
  /** Size up to the end of the last intact block (or of the header). */
  goodBytes: number;
  /** Hash of the last intact block; seeds the next. */
  hash: bigint;
  /** Whether bytes follow the last intact block. */
  torn: boolean;
}

const newline = 0x0a;
const blockMark = Buffer.from('\n{"block":{"last":');

/**
 * Scans the blocks of a segment up to the first corrupt one.
 * @returns undefined if even the header is unreadable
 */
export function scanSegment(bytes: Buffer): SegmentScan | undefined {
  const headerEnd = bytes.indexOf(newline) + 1;
  if (headerEnd === 0) return undefined;
  const header = parseLine(bytes.subarray(0, headerEnd)) as
    | { segment?: { version?: number; lane?: Lane; first?: number } }
    | undefined;
  const { version, lane, first } = header?.segment ?? {};
  if (
    version !== segmentVersion ||
    typeof first !== "number" ||
    (lane !== "realtime" && lane !== "historical")
  ) {
    return undefined;
  }
  const scan: SegmentScan = {
    lane,
    first,
    last: first - 1,
    goodBytes: headerEnd,
    hash: hashSeed(first),
    torn: false,
  };
  while (scan.goodBytes < bytes.length) {
    const block = nextBlock(bytes, scan.goodBytes, scan.hash);
    if (block === undefined) {
      scan.torn = true;
      break;
    }
    scan.last = block.last;
    scan.hash = block.hash;
    scan.goodBytes = block.end;
  }
  return scan;
}

/**
 * Copies the intact blocks of a corrupt segment. A block after a corrupt one is verified with the hash recorded in the
 * corrupt one's block line.
 * @param range first and last entries by file names, as the header may be corrupt
 * @returns an intact segment of the readable entries, its last entry, and the ranges of unreadable entries
 */
export function truncateSegment(bytes: Buffer, range: { lane: Lane; first: number; last: number }) {
  const lost: { first: number; last: number }[] = [];
  const parts: Buffer[] = [Buffer.from(segmentHeader(range.lane, range.first))];
  let written = hashSeed(range.first);
  let previous = written;
  let lastSeq = range.first - 1;
  let isAfterCorruption = false;
  for (let start = bytes.indexOf(newline) + 1; start < bytes.length; ) {
    const block = nextBlock(bytes, start, previous);
    if (block !== undefined) {
      const entries = bytes.subarray(start, block.entriesEnd);
      const first = getSeq(entries);
      if (isAfterCorruption && first > lastSeq + 1) lost.push({ first: lastSeq + 1, last: first - 1 });
      written = hashBlock(entries, block.last, written);
      parts.push(entries, Buffer.from(blockLine(block.last, entries.length, written)));
      ({ last: lastSeq, hash: previous, end: start } = block);
      isAfterCorruption = false;
      continue;
    }
    isAfterCorruption = true;
    const mark = bytes.indexOf(blockMark, start);
    const end = mark === -1 ? -1 : bytes.indexOf(newline, mark + 1);
    if (end === -1) break;
    const { hash } = getBlock(bytes.subarray(mark + 1, end + 1)) ?? {};
    if (/^[0-9a-f]{16}$/.test(hash ?? "")) previous = BigInt(`0x${hash}`);
    start = end + 1;
  }
  if (lastSeq < range.last) lost.push({ first: lastSeq + 1, last: range.last });
  return { bytes: Buffer.concat(parts), lost, reached: lastSeq };
}

/**
 * Detects intact blocks after a corrupt one. A block is started only when the previous one is on disk, so those entries
 * were acknowledged and the bytes between are corrupt; after a torn write no intact block follows.
 * @param range lane and first entry by file name, as the header may be corrupt
 * @returns the last entry of those blocks, if any
 */
export function readableAfterCorruption(
  bytes: Buffer,
  scan: SegmentScan | undefined,
  range: { lane: Lane; first: number },
): number | undefined {
  if (scan !== undefined && !scan.torn) return undefined;
  const first = scan?.first ?? range.first;
  const last = scan?.last ?? first - 1;
  const { reached: lastSeq } = truncateSegment(bytes, { lane: range.lane, first, last });
  return lastSeq > last ? lastSeq : undefined;
}

function nextBlock(bytes: Buffer, start: number, previous: bigint) {
  // Entries cannot contain this mark: it starts with a line break, and entries are single lines with another prefix.
  const mark = bytes.indexOf(blockMark, start);
  if (mark === -1) return undefined;
  const entriesEnd = mark + 1;
  const lineEnd = bytes.indexOf(newline, entriesEnd);
  if (lineEnd === -1) return undefined;
  const block = getBlock(bytes.subarray(entriesEnd, lineEnd + 1));
  if (typeof block?.last !== "number" || block.bytes !== entriesEnd - start) return undefined;
  const hash = hashBlock(bytes.subarray(start, entriesEnd), block.last, previous);
  if (hash.toString(16).padStart(16, "0") !== block.hash) return undefined;
  return { last: block.last, hash, entriesEnd, end: lineEnd + 1 };
}

function getBlock(line: Buffer): { last?: number; bytes?: number; hash?: string } | undefined {
  const parsed = parseLine(line) as { block?: { last?: number; bytes?: number; hash?: string } } | undefined;
  return parsed?.block;
}

function parseLine(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}
