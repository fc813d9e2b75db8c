/** Opens the server's journal: a local one in the data directory, or the shared one of a cluster. */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readLastBackup } from "../backup/last-backup.ts";
import type { Config } from "../config/settings.ts";
import { highestSeqs } from "../journal/archive.ts";
import type { PendingBytes } from "../journal/disk.ts";
import { Journal, type JournalPort } from "../journal/journal.ts";
import type { JournalUnavailableError } from "../journal/lane-writer.ts";
import { type Lane, lanes, type SealedSegment } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import type { SqliteCorruption } from "../operate/sqlite-corruption.ts";
import { paths } from "../paths.ts";
import type { PersonsDb } from "../persons/open.ts";
import { laneCursors } from "../persons/reader.ts";
import type { ClusterNode } from "./cluster-node";

/**
 * Entries of a journal segment: the pipeline applies them in well under a second, which bounds how long a live event
 * waits for a historical segment.
 */
const segmentEntriesMax = 20_000;
const rejectionLogMs = 10_000;

export interface JournalDeps {
  config: Config;
  log: Log;
  people: PersonsDb;
  corruption: SqliteCorruption;
  /** Loads journal entries into the stores. */
  loader: { offer(segments: readonly SealedSegment[]): void; debt(): PendingBytes };
  onRejected: (reason: JournalUnavailableError["reason"]) => void;
}

/** Recovers the journal, and hands the entries that are not loaded to the loader. */
export async function openJournal(
  { config, log, people, corruption, loader, onRejected }: JournalDeps,
  shared: ClusterNode | undefined,
): Promise<JournalPort> {
  const logRejection = rejectionLog(log);
  const hooks = {
    onRejected(reason: JournalUnavailableError["reason"], lane: Lane) {
      onRejected(reason);
      logRejection(reason, lane);
    },
    onFailure: (error: unknown, lane: Lane) =>
      log.error({ lane, error: String(error) }, "failed to write the journal"),
  };
  if (shared !== undefined) {
    const applied = () => corruption.reading(() => laneCursors(people), { realtime: 0, historical: 0 });
    return shared.journal({ queueBytesMax: config["journal-queue"], applied, ...hooks });
  }
  const dataPaths = paths(config["data-dir"]);
  const read = corruption.reading(() => laneCursors(people), undefined);
  if (read === undefined && !areSeqsKnown(config["data-dir"]))
    throw new SequenceUnknownError(dataPaths.people);
  const loaded = read ?? knownSeqs(config["data-dir"]);
  const { journal, segments, quarantined } = await Journal.open(
    dataPaths.journal,
    highestSeqs(dataPaths.archive, loaded),
    {
      segmentBytesMax: config["journal-segment-size"],
      segmentEntriesMax,
      sealIntervalMs: config["journal-seal-interval"],
      flushIntervalMs: config["journal-flush-interval"],
      queueBytesMax: config["journal-queue"],
      reserveBytes: config["journal-reserve"],
    },
    { onSealed: (segment) => loader.offer([segment]), debt: () => loader.debt(), ...hooks },
  );
  for (const torn of quarantined) log.warn({ ...torn }, "quarantined a torn write at the end of the journal");
  loader.offer(segments);
  return journal;
}

/** Sequence numbers would be reused, and the event store would drop the second entry: capture must not start. */
class SequenceUnknownError extends AppError {
  readonly code = "sequence_unknown";
  override readonly hint =
    "Put a copy of people.sqlite back, restore the last backup, or run `flagkeep persons recreate --accept-loss`.";
  constructor(path: string) {
    super(
      `${path} cannot be read, and neither the journal, its archive nor a backup contains the last entry number.`,
    );
  }
}

/** Whether a source other than the persons store knows the last sequence numbers. */
function areSeqsKnown(dataDir: string): boolean {
  const { events, journal, archive } = paths(dataDir);
  const isFilled = (folder: string) => existsSync(folder) && readdirSync(folder).length > 0;
  return (
    !existsSync(events) ||
    readLastBackup(dataDir) !== null ||
    isFilled(archive) ||
    lanes.some((lane) => isFilled(join(journal, lane)))
  );
}

/**
 * Per lane, the last entry of the last backup and of the archive: numbering continues there when the persons store is
 * unreadable, so that no number is reused.
 */
export function knownSeqs(dataDir: string): Record<Lane, number> {
  const backedUp = { realtime: 0, historical: 0 };
  for (const { lane, last_seq } of readLastBackup(dataDir)?.positions ?? []) backedUp[lane] = last_seq;
  return highestSeqs(paths(dataDir).archive, backedUp);
}

/** Log at most every 10 s: rejected clients retry. */
function rejectionLog(log: Log): (reason: string, lane: Lane) => void {
  let requests = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (reason, lane) => {
    requests += 1;
    const now = performance.now();
    if (now < loggedAt + rejectionLogMs) return;
    loggedAt = now;
    log.warn({ reason, lane, requests }, "rejecting events");
    requests = 0;
  };
}
