/**
 * The format of a journal segment.
 *
 * A segment is plain NDJSON, so that the event store can load it as it is and a person can read it:
 *
 *   {"segment":{"version":1,"lane":"realtime","first":1}}
 *   {"seq":1,"project_id":1,...}
 *   {"seq":2,"project_id":1,...}
 *   {"block":{"last":2,"bytes":1234,"hash":"9f86d081884c7d65"}}
 *
 * Everything that was made durable together ends with one block line. Its hash covers the number and the bytes
 * since the block before it and is seeded with that block's hash, so a missing, foreign or changed block is noticed. Bytes
 * after the last whole block were never acknowledged.
 */

import { seqOf } from "./entry.ts";

/** `realtime` and `historical` events wait in separate queues; order is kept within a lane. */
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
  /** Bytes up to and including its last block line. */
  bytes: number;
}

const segmentVersion = 1;

/** Sorted as text, names are in the order of their entries. */
export function segmentFileName(first: number): string {
  return `${String(first).padStart(16, "0")}.ndjson`;
}

/** The first sequence number of a segment by its file name; undefined for other files. */
export function firstOfFileName(name: string): number | undefined {
  const match = /^(\d{16})\.ndjson$/.exec(name);
  return match ? Number(match[1]) : undefined;
}

/** The first line of a segment, with its line break. */
export function segmentHeader(lane: Lane, first: number): string {
  return `{"segment":{"version":${segmentVersion},"lane":"${lane}","first":${first}}}\n`;
}

/** The hash that the first block of a segment is seeded with. */
export function hashSeed(first: number): bigint {
  return BigInt(first);
}

/** @param last sequence number of the block's last entry. */
export function hashBlock(bytes: Uint8Array, last: number, previous: bigint): bigint {
  return Bun.hash.xxHash64(bytes, previous ^ BigInt(last));
}

/** The line that ends a block and makes it valid. @param bytes of the block without this line. */
export function blockLine(last: number, bytes: number, hash: bigint): string {
  return `{"block":{"last":${last},"bytes":${bytes},"hash":"${hash.toString(16).padStart(16, "0")}"}}\n`;
}

export interface SegmentScan {
  lane: Lane;
  first: number;
  /** Sequence number of the last durable entry; `first - 1` if the segment is empty. */
  last: number;
  /** Bytes from the start to the end of the last whole block (or of the header). */
  goodBytes: number;
  /** Hash of the last whole block; seeds the next. */
  hash: bigint;
  /** Whether bytes follow the last whole block. */
  torn: boolean;
}

const newline = 0x0a;
const blockMark = Buffer.from('\n{"block":{"last":');

/**
 * Walks the blocks of a segment and stops at the first that is not whole.
 *
 * @returns undefined when not even the header is readable.
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
 * Copies the whole blocks of a corrupt segment: a block that follows a damaged one can be checked with the hash that
 * the damaged one says it had.
 *
 * @param of its first and last entries by name, as its own header may be damaged.
 * @returns a whole segment of what can be read, its last entry, and the ranges of entries that cannot be read.
 */
export function truncateSegment(bytes: Buffer, of: { lane: Lane; first: number; last: number }) {
  const lost: { first: number; last: number }[] = [];
  const parts: Buffer[] = [Buffer.from(segmentHeader(of.lane, of.first))];
  let written = hashSeed(of.first);
  let previous = written;
  let reached = of.first - 1;
  let isBehindDamage = false;
  for (let start = bytes.indexOf(newline) + 1; start < bytes.length; ) {
    const block = nextBlock(bytes, start, previous);
    if (block !== undefined) {
      const entries = bytes.subarray(start, block.entriesEnd);
      const first = seqOf(entries);
      if (isBehindDamage && first > reached + 1) lost.push({ first: reached + 1, last: first - 1 });
      written = hashBlock(entries, block.last, written);
      parts.push(entries, Buffer.from(blockLine(block.last, entries.length, written)));
      ({ last: reached, hash: previous, end: start } = block);
      isBehindDamage = false;
      continue;
    }
    isBehindDamage = true;
    const mark = bytes.indexOf(blockMark, start);
    const end = mark === -1 ? -1 : bytes.indexOf(newline, mark + 1);
    if (end === -1) break;
    const { hash } = blockOf(bytes.subarray(mark + 1, end + 1)) ?? {};
    if (/^[0-9a-f]{16}$/.test(hash ?? "")) previous = BigInt(`0x${hash}`);
    start = end + 1;
  }
  if (reached < of.last) lost.push({ first: reached + 1, last: of.last });
  return { bytes: Buffer.concat(parts), lost, reached };
}

/**
 * How far whole blocks go behind one that is not: a block is begun when the one before it is on the disk, so those were
 * acknowledged, and what is between them is damaged. After a torn write no whole block follows.
 *
 * @param of the lane and the first entry by name, as the header may be damaged.
 * @returns the last entry of those blocks; undefined when there are none.
 */
export function readableAfterCorruption(
  bytes: Buffer,
  scan: SegmentScan | undefined,
  of: { lane: Lane; first: number },
): number | undefined {
  if (scan !== undefined && !scan.torn) return undefined;
  const first = scan?.first ?? of.first;
  const last = scan?.last ?? first - 1;
  const { reached } = truncateSegment(bytes, { lane: of.lane, first, last });
  return reached > last ? reached : undefined;
}

function nextBlock(bytes: Buffer, start: number, previous: bigint) {
  // An entry cannot hold this mark: it starts after a line break, and entries are single lines with another start.
  const mark = bytes.indexOf(blockMark, start);
  if (mark === -1) return undefined;
  const entriesEnd = mark + 1;
  const lineEnd = bytes.indexOf(newline, entriesEnd);
  if (lineEnd === -1) return undefined;
  const block = blockOf(bytes.subarray(entriesEnd, lineEnd + 1));
  if (typeof block?.last !== "number" || block.bytes !== entriesEnd - start) return undefined;
  const hash = hashBlock(bytes.subarray(start, entriesEnd), block.last, previous);
  if (hash.toString(16).padStart(16, "0") !== block.hash) return undefined;
  return { last: block.last, hash, entriesEnd, end: lineEnd + 1 };
}

function blockOf(line: Buffer): { last?: number; bytes?: number; hash?: string } | undefined {
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
