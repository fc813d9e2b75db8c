/** Reads a sealed segment back. */

import { AppError } from "../lib/errors.ts";
import { ReusedBuffers } from "../lib/reused-buffers.ts";
import { type Lane, type SealedSegment, scanSegment, truncateSegment } from "./segment.ts";

/** A segment that was acknowledged can no longer be read in full. */
export class SegmentCorruptError extends AppError {
  readonly code = "segment_damaged";
  override readonly hint = "Put back a copy of the file if there is one, and see `flagkeep doctor`.";
  constructor(
    readonly path: string,
    /** The last entry before the first that is missing. */
    readonly lastGood: number,
    /** The last entry it should have. */
    readonly last: number,
    readonly lost: readonly { first: number; last: number }[] = [{ first: lastGood + 1, last }],
  ) {
    const ranges = lost.map((range) => `${range.first} to ${range.last}`).join(", ");
    super(`Journal segment ${path} is corrupt: entries ${ranges} cannot be read.`);
  }
}

/**
 * A stretch of one lane of the journal, independent of its storage: the pipeline's input.
 *
 * Batches of a lane follow each other without a gap, whatever was skipped inside them.
 */
export interface JournalBatch {
  readonly lane: Lane;
  /** Sequence number of its first entry. */
  readonly first: number;
  /** Sequence number of its last entry. */
  readonly last: number;
  /** About as many as `text` has. */
  readonly bytes: number;
  /** Reads it; again and again, if asked. @param buffers where its text may be kept for as long as they are not used again. */
  text(buffers?: ReusedBuffers): Promise<SegmentText>;
}

/** A sealed segment as a batch. */
export type SegmentBatch = JournalBatch & SealedSegment;

export const batchOf = (segment: SealedSegment): SegmentBatch => ({
  ...segment,
  text: (buffers = new ReusedBuffers(0)) => readInto(buffers, segment),
});

export interface SegmentText {
  /** The readable part: a whole segment of its own. */
  bytes: Buffer;
  /** Set when acknowledged entries are missing. */
  damage?: SegmentCorruptError;
}

/**
 * Reads a segment and checks every block's hash.
 *
 * Corrupt blocks are skipped; `damage` lists the missing entries.
 */
export async function readSegment(segment: SealedSegment): Promise<SegmentText> {
  return await readInto(new ReusedBuffers(0), segment);
}

async function readInto(buffers: ReusedBuffers, segment: SealedSegment): Promise<SegmentText> {
  const bytes = await buffers.readFile(segment.path);
  const scan = scanSegment(bytes);
  if (scan === undefined || (scan.torn && scan.goodBytes < segment.bytes)) {
    const mended = truncateSegment(bytes, segment);
    const { path, last } = segment;
    const damage =
      mended.lost.length === 0
        ? undefined
        : new SegmentCorruptError(path, mended.lost[0]!.first - 1, last, mended.lost);
    return { bytes: mended.bytes, damage };
  }
  return { bytes: bytes.subarray(0, scan.goodBytes) };
}
