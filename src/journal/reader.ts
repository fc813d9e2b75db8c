/** Reads a sealed segment back: its entries, and the bytes that the event store may load. */

import { readFile } from "node:fs/promises";
import { AppError } from "../errors.ts";
import { type SealedSegment, scanSegment } from "./segment.ts";

/** A segment that was acknowledged can no longer be read in full. */
export class SegmentDamaged extends AppError {
  readonly code = "segment_damaged";
  override readonly hint = "Run `flagkeep doctor`; restore the file from a copy of the disk if there is one.";
  constructor(
    readonly path: string,
    readonly lastGood: number,
    readonly last: number,
  ) {
    super(`The journal segment ${path} is readable up to entry ${lastGood} only; it should reach ${last}.`);
  }
}

export interface SegmentText {
  /** One JSON text per line, without header and block lines. */
  lines: string[];
  /** Whether the file itself has bytes behind the last whole block, so that it must not be loaded as it is. */
  torn: boolean;
  /** The readable part. */
  bytes: Buffer;
  /** Set when acknowledged entries are missing. */
  damage?: SegmentDamaged;
}

/**
 * Reads a segment and checks every block's hash.
 *
 * Entries before the first damaged block are returned in any case; `damage` says that some are missing behind it.
 */
export async function readSegment(segment: SealedSegment): Promise<SegmentText> {
  const bytes = await readFile(segment.path);
  const scan = scanSegment(bytes);
  if (scan === undefined) {
    const damage = new SegmentDamaged(segment.path, segment.first - 1, segment.last);
    return { lines: [], torn: true, bytes: bytes.subarray(0, 0), damage };
  }
  const good = bytes.subarray(0, scan.goodBytes);
  const lines = good
    .toString("utf8")
    .split("\n")
    .filter((line) => line.startsWith('{"seq":'));
  const damage =
    scan.torn && scan.goodBytes < segment.bytes
      ? new SegmentDamaged(segment.path, scan.last, segment.last)
      : undefined;
  return { lines, torn: scan.torn, bytes: good, damage };
}
