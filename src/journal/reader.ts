import { BufferPool } from "../lib/buffer-pool.ts";
import { AppError } from "../lib/errors.ts";
import { type Lane, type SealedSegment, scanSegment, truncateSegment } from "./segment.ts";

/** Acknowledged entries of a segment cannot be read. */
export class SegmentCorruptError extends AppError {
  readonly code = "segment_damaged";
  override readonly hint = "Restore a copy of the file if one exists, and see `flagkeep doctor`.";
  constructor(
    readonly path: string,
    /** The last entry before the first missing one. */
    readonly lastGood: number,
    /** The last entry that the segment should contain. */
    readonly last: number,
    readonly lost: readonly { first: number; last: number }[] = [{ first: lastGood + 1, last }],
  ) {
    const ranges = lost.map((range) => `${range.first} to ${range.last}`).join(", ");
    super(`Journal segment ${path} is corrupt: entries ${ranges} cannot be read.`);
  }
}

/**
 * A range of one lane of the journal, independent of its storage: the pipeline's input. Batches of a lane are
 * in order; in a cluster, there are gaps between and inside them.
 */
export interface JournalBatch {
  readonly lane: Lane;
  /** Sequence number of the first entry. */
  readonly first: number;
  /** Sequence number of the last entry. */
  readonly last: number;
  /** Approximate size of `text`. */
  readonly bytes: number;
  /** Reads the batch; may be called repeatedly. @param buffers may hold the text until they are reused */
  text(buffers?: BufferPool): Promise<SegmentString>;
}

/** A sealed segment as a batch. */
export type SegmentBatch = JournalBatch & SealedSegment;

export const getBatch = (segment: SealedSegment): SegmentBatch => ({
  ...segment,
  text: (buffers = new BufferPool(0)) => readInto(buffers, segment),
});

export interface SegmentString {
  /** The readable part, as an intact segment. */
  bytes: Buffer;
  /** Set if acknowledged entries are missing. */
  corruption?: SegmentCorruptError;
}

/** Reads a segment and verifies every block's hash. Corrupt blocks are skipped; `damage` lists the missing entries. */
export async function readSegment(segment: SealedSegment): Promise<SegmentString> {
  return await readInto(new BufferPool(0), segment);
}

async function readInto(buffers: BufferPool, segment: SealedSegment): Promise<SegmentString> {
  const bytes = await buffers.readFile(segment.path);
  const scan = scanSegment(bytes);
  if (scan === undefined || (scan.torn && scan.goodBytes < segment.bytes)) {
    const repaired = truncateSegment(bytes, segment);
    const { path, last } = segment;
    const corruption =
      repaired.lost.length === 0
        ? undefined
        : new SegmentCorruptError(path, repaired.lost[0]!.first - 1, last, repaired.lost);
    return { bytes: repaired.bytes, corruption };
  }
  return { bytes: bytes.subarray(0, scan.goodBytes) };
}
