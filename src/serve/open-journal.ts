/** Opens the journal of the front: its own in the data directory, or the one that several fronts share. */

import type { Config } from "../config/settings.ts";
import { highestSeqs } from "../journal/archive.ts";
import type { PendingBytes } from "../journal/disk.ts";
import { Journal, type JournalPort } from "../journal/journal.ts";
import type { JournalUnavailableError } from "../journal/lane-writer.ts";
import type { Lane, SealedSegment } from "../journal/segment.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";
import type { PeopleDb } from "../people/open.ts";
import { laneCursors } from "../people/reader.ts";
import type { SharedFront } from "./shared-front.ts";

/**
 * Entries of a journal segment: what the pipeline applies in well under a second, which is how long a live event may
 * have to wait behind a historical segment.
 */
const segmentEntriesMax = 20_000;
const refusalLogMs = 10_000;

export interface JournalSurroundings {
  config: Config;
  log: Log;
  people: PeopleDb;
  /** Who loads what is in the journal. */
  loader: { offer(segments: readonly SealedSegment[]): void; debt(): PendingBytes };
  onRefused: (reason: JournalUnavailableError["reason"]) => void;
}

/** Recovers the journal, and hands to the loader what it has not loaded. */
export async function openJournal(
  { config, log, people, loader, onRefused }: JournalSurroundings,
  shared: SharedFront | undefined,
): Promise<JournalPort> {
  const logRefusal = refusalLog(log);
  const hooks = {
    onRefused(reason: JournalUnavailableError["reason"], lane: Lane) {
      onRefused(reason);
      logRefusal(reason, lane);
    },
    onFailure: (error: unknown, lane: Lane) =>
      log.error({ lane, error: String(error) }, "the journal could not be written"),
  };
  if (shared !== undefined) return shared.journal({ queueBytesMax: config["journal-queue"], ...hooks });
  const place = paths(config["data-dir"]);
  const { journal, segments, quarantined } = await Journal.open(
    place.journal,
    highestSeqs(place.archive, laneCursors(people)),
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
  for (const torn of quarantined)
    log.warn({ ...torn }, "a torn write at the end of the journal was put aside");
  loader.offer(segments);
  return journal;
}

/** One line in ten seconds: whoever is refused sends again. */
function refusalLog(log: Log): (reason: string, lane: Lane) => void {
  let requests = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (reason, lane) => {
    requests += 1;
    const now = performance.now();
    if (now < loggedAt + refusalLogMs) return;
    loggedAt = now;
    log.warn({ reason, lane, requests }, "events are refused");
    requests = 0;
  };
}
