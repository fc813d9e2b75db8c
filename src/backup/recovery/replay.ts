/** Replays archived segments through the pipeline into an event store that does not have them. */

import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Pipeline } from "../../engine/pipeline/pipeline.ts";
import type { EventLoader } from "../../events/duckdb/loader.ts";
import { type ArchivedSegment, type ArchivedString, readArchived } from "../../journal/archive.ts";
import { getBatch, readSegment, type SegmentBatch, type SegmentCorruptError } from "../../journal/reader.ts";
import { lanes, type SealedSegment, segmentFileName, segmentHeader } from "../../journal/segment.ts";
import { OperatorActionError } from "../../lib/errors.ts";
import { defaultBatchBytes, defaultStepBytes } from "../../lib/memory-budget.ts";
import type { IdentityStore } from "../../persons/batch.ts";
import { type Cursors, formatGaps, type Gap } from "./range.ts";

/** An archive file cannot be read. */
class ArchiveCorruptError extends OperatorActionError {
  readonly code = "archive_damaged";
  override readonly hint =
    "Restore the file from a copy, or stop Flagkeep and run `flagkeep rebuild --accept-loss`.";
  constructor(path: string, gap: Gap) {
    super(`${path} is corrupt: entries ${formatGaps([gap])} cannot be read.`);
  }
}

export interface Replay {
  loader: EventLoader;
  identity: IdentityStore;
  /** Files of the archive or of a journal. */
  archived: readonly ArchivedSegment[];
  /** Final cursors, even if entries before them are missing. */
  needed: Cursors;
  /** Continues after unreadable entries. */
  acceptLoss: boolean;
  /** For unpacked segments; emptied. */
  workFolder: string;
  quarantineFolder: string;
  /** Entries applied so far, and in total. */
  onProgress: (done: number, total: number) => void;
  /** Called for unreadable data; the replay continues. */
  onCorruption: (error: Error) => void;
}

/**
 * @returns the unreadable entries, when losses are accepted.
 * @throws {ArchiveCorruptError} unless losses are accepted; the entries before it were applied.
 */
export async function replayArchive(replay: Replay): Promise<Gap[]> {
  const { loader, archived, workFolder } = replay;
  const total = archived.reduce((sum, file) => sum + file.last - file.first + 1, 0);
  let done = 0;
  rmSync(workFolder, { recursive: true, force: true });
  mkdirSync(workFolder, { recursive: true, mode: 0o700 });
  const apply = applier(replay);
  const lost: Gap[] = [];
  for (const file of inOrderOfArchiving(archived)) {
    await apply(await unpack(replay, file, lost));
    done += file.last - file.first + 1;
    replay.onProgress(done, total);
  }
  for (const lane of lanes) {
    const first = loader.cursor(lane) + 1;
    const last = replay.needed[lane];
    if (first <= last) await apply([workingCopy(workFolder, { lane, first, last }, undefined)]);
  }
  while (!(await loader.checkpoint())) await Bun.sleep(50);
  rmSync(workFolder, { recursive: true, force: true });
  return lost;
}

/** A separate pipeline: nothing is counted, reported or archived a second time. */
function applier({ loader, identity, quarantineFolder, onCorruption }: Replay) {
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  mkdirSync(quarantineFolder, { recursive: true, mode: 0o700 });
  const pipeline = new Pipeline<SegmentBatch>(
    identity,
    loader,
    {
      keep: (batches) => {
        for (const { path } of batches) rmSync(path, { force: true });
      },
      idle: async () => undefined,
    },
    {
      stepBytes: defaultStepBytes,
      portionBytes: defaultBatchBytes,
      bulkPauseMs: 0,
      checkpointBytes: 512 * 1024 * 1024,
      checkpointIntervalMs: 60_000,
      workFolder: quarantineFolder,
    },
    {
      onApplied: () => undefined,
      onFlagUsage: () => undefined,
      onSpikes: () => undefined,
      onCorruption,
      onFatal: failure.reject,
    },
  );
  return async (segments: readonly SealedSegment[]) => {
    pipeline.offer(segments.map(getBatch));
    await Promise.race([pipeline.settle(), failure.promise]);
  };
}

/** Approximates the original order across lanes, so that the same one of two equal events is kept. */
function inOrderOfArchiving(archived: readonly ArchivedSegment[]): ArchivedSegment[] {
  const at = (file: ArchivedSegment | undefined) =>
    file === undefined ? Number.POSITIVE_INFINITY : statSync(file.path).mtimeMs;
  const [realtime, historical] = lanes.map((lane) =>
    archived.filter((file) => file.lane === lane).sort((a, b) => a.first - b.first),
  );
  const order: ArchivedSegment[] = [];
  while (order.length < archived.length) {
    const next = at(realtime![0]) <= at(historical![0]) ? realtime!.shift() : historical!.shift();
    order.push(next!);
  }
  return order;
}

async function unpack(replay: Replay, file: ArchivedSegment, lost: Gap[]): Promise<SealedSegment[]> {
  const { lane, last } = file;
  const { segments, corruption } = await readFile(file);
  if (corruption !== undefined) {
    const gap = { lane, first: corruption.lastGood + 1, last };
    const error = new ArchiveCorruptError(file.path, gap);
    if (!replay.acceptLoss) throw error;
    replay.onCorruption(error);
    lost.push(gap);
  }
  // An empty segment represents an unreadable file.
  const texts = segments.length > 0 ? segments : [{ first: file.first, bytes: undefined }];
  return texts.map(({ first, bytes }, index) =>
    workingCopy(replay.workFolder, { lane, first, last: (texts[index + 1]?.first ?? last + 1) - 1 }, bytes),
  );
}

/** Reads a file of the archive or of a journal. */
export async function readFile(
  file: ArchivedSegment,
): Promise<{ segments: ArchivedString[]; corruption?: SegmentCorruptError }> {
  if (file.path.endsWith(".zst")) return await readArchived(file);
  const { bytes, corruption } = await readSegment(file);
  return { segments: [{ first: file.first, last: file.last, bytes }], corruption };
}

function workingCopy(folder: string, { lane, first, last }: Gap, bytes: Buffer | undefined): SealedSegment {
  const text = bytes ?? Buffer.from(segmentHeader(lane, first));
  const path = join(folder, `${lane}-${segmentFileName(first)}`);
  writeFileSync(path, text, { mode: 0o600 });
  return { lane, first, last, path, bytes: text.length };
}
