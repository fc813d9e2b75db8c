/** Data of `flagkeep status`: from a running server directly, from a stopped one by its files. */

import { existsSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { Cron } from "croner";
import type { ProjectDirectory } from "../accounts/project-directory.ts";
import { readLastBackup } from "../backup/last-backup.ts";
import { discardedRanges } from "../journal/archive.ts";
import type { LaneState } from "../journal/journal.ts";
import { firstOfFileName, type Lane, lanes, scanSegment } from "../journal/segment.ts";
import { skippedEntries } from "../journal/skipped-entries.ts";
import { isoFromMicros, microsPerDay, nowMicros } from "../lib/time.ts";
import { isInUse } from "../lock.ts";
import { paths } from "../paths.ts";
import { arePersonsMissing } from "../persons/missing.ts";
import { openPersons, type PersonsDb } from "../persons/open.ts";
import { laneCursors } from "../persons/reader.ts";
import { openSpikes } from "../persons/spike-store.ts";
import { countStoredEvents } from "../persons/usage.ts";
import { countWarningsSince } from "../persons/warnings.ts";
import { callControl } from "../rpc/control.ts";
import { version } from "../version.ts";
import { folderUsage, type StoreUsage, storeUsage } from "./disk-usage.ts";
import { readLastScrub } from "./scrub-schedule.ts";
import { SqliteCorruption } from "./sqlite-corruption.ts";
import type { LaneStatus, Status, Volume } from "./status-schema.ts";

/** Fields that both a running and a stopped server read from the stores; `folderUsage` measures the folders. */
export function storedStatus(
  dataDir: string,
  people: PersonsDb | undefined,
  neededBytes: number | null = null,
): { disk: StoreUsage } & Pick<
  Status,
  "stored" | "volume" | "given_up" | "skipped_entries" | "last_backup" | "last_scrub" | "warnings" | "spikes"
> {
  const stores = storeUsage(dataDir);
  return {
    disk: stores,
    stored: storedEvents(stores, people === undefined ? 0 : countStoredEvents(people)),
    volume: getVolume(dataDir, neededBytes),
    skipped_entries: skippedEntries(paths(dataDir).quarantine),
    given_up: discardedRanges(paths(dataDir).archive).map(({ lane, first, last, reason, at }) => ({
      lane,
      first_seq: first,
      last_seq: last,
      reason,
      at,
    })),
    last_backup: readLastBackup(dataDir),
    last_scrub: readLastScrub(dataDir),
    warnings:
      people === undefined
        ? []
        : countWarningsSince(people, nowMicros() - microsPerDay).map(({ projectId, type, count }) => ({
            project_id: projectId,
            type,
            count,
          })),
    spikes:
      people === undefined
        ? []
        : openSpikes(people).map((spike) => ({
            id: spike.id,
            project_id: spike.projectId,
            started_at: isoFromMicros(spike.startedMicros),
            peak_per_minute: spike.peakPerMinute,
            usual_per_minute: spike.baselinePerMinute,
          })),
  };
}

/** Time of the next scheduled backup. @param schedule cron expression; empty for none */
export function nextBackup(schedule: string): Status["next_backup"] {
  const at = schedule === "" ? null : new Cron(schedule, { paused: true }).nextRun();
  if (at === null) return null;
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return { at: at.toISOString(), schedule, time_zone: timeZone };
}

/** Usage of replaced keys that are still accepted, and of their replacements, per project. */
export function replacedKeys(projects: Pick<ProjectDirectory, "formerKeyUses">): Status["replaced_keys"] {
  return projects.formerKeyUses().map((use) => ({
    project_id: use.projectId,
    kind: use.kind,
    ends_at: use.endsAt.toISOString(),
    requests: use.requests,
    requests_with_new: use.presentRequests,
    last_used_at: use.lastUsedAt?.toISOString() ?? null,
  }));
}

/** @param last per lane, the last acknowledged sequence number and the bytes waiting to be written to disk. */
export function laneStatus(
  last: readonly Pick<LaneState, "lane" | "lastSeq" | "waitingEntries" | "queuedBytes">[],
  applied: Record<Lane, number>,
): LaneStatus[] {
  return last.map(({ lane, lastSeq, waitingEntries, queuedBytes }) => ({
    lane,
    last_seq: lastSeq,
    applied_seq: applied[lane],
    lag_entries: lastSeq <= applied[lane] ? 0 : (waitingEntries ?? lastSeq - applied[lane]),
    queued_bytes: queuedBytes,
  }));
}

/** How long to retry a process that uses the data directory: it may be starting. */
const patienceMs = 2_000;
const pollMs = 100;

/**
 * Status of a data directory: from the running server, else from its files, which are not changed. Without a control
 * socket, the lock decides whether the server is stopped.
 */
export async function currentStatus(dataDir: string): Promise<Status> {
  for (const end = performance.now() + patienceMs; ; await Bun.sleep(pollMs)) {
    const running = await callControl<Status>(dataDir, "status");
    if (running !== undefined) return running;
    if (!isInUse(paths(dataDir).lock, dataDir)) return await stoppedStatus(dataDir);
    if (performance.now() > end)
      return { ...(await stoppedStatus(dataDir)), running: true, state: "unreachable" };
  }
}

/** Reads the files of a server that does not respond; changes nothing. */
async function stoppedStatus(dataDir: string): Promise<Status> {
  const dataPaths = paths(dataDir);
  const corruption = new SqliteCorruption(dataDir);
  const found = corruption.reading(
    () => (existsSync(dataPaths.people) ? openPersons(dataPaths.people, { readonly: true }) : undefined),
    undefined,
  );
  try {
    const none = { realtime: 0, historical: 0 };
    const applied = corruption.reading(() => (found === undefined ? none : laneCursors(found)), none);
    const stored =
      corruption.reading(() => storedStatus(dataDir, found), undefined) ?? storedStatus(dataDir, undefined);
    const last = lanes.map((lane) => ({
      lane,
      lastSeq: Math.max(applied[lane], lastSeqOnDisk(join(dataPaths.journal, lane))),
      queuedBytes: 0,
    }));
    if (arePersonsMissing(dataDir)) corruption.recordMissing();
    else if (corruption.reason !== null) corruption.recordFile("people.sqlite", "is corrupt");
    return {
      running: false,
      state: "stopped",
      version,
      url: null,
      started_at: null,
      uptime_seconds: null,
      events_per_second: 0,
      journal: laneStatus(last, applied),
      roles: [],
      next_backup: null,
      retention: null,
      replaced_keys: [],
      events_at: null,
      shared: null,
      workers: [],
      engine: { up: false, restarts: 0, rebuilding: null, trouble: null, properties: [] },
      sqlite_corruption: corruption.reason,
      ...stored,
      disk: { ...stored.disk, ...(await folderUsage(dataDir)) },
    };
  } finally {
    found?.$client.close();
  }
}

function lastSeqOnDisk(folder: string): number {
  if (!existsSync(folder)) return 0;
  const newest = readdirSync(folder)
    .filter((name) => firstOfFileName(name) !== undefined)
    .sort()
    .at(-1);
  return newest === undefined ? 0 : (scanSegment(readFileSync(join(folder, newest)))?.last ?? 0);
}

function storedEvents({ library_bytes: _, ...stores }: StoreUsage, events: number): Status["stored"] {
  const bytes = Object.values(stores).reduce((sum, part) => sum + part, 0);
  return { events, bytes_per_event: events === 0 ? null : Math.round(bytes / events) };
}

function getVolume(dataDir: string, neededBytes: number | null): Volume {
  const { bavail, bsize, blocks } = statfsSync(dataDir);
  return { free_bytes: bavail * bsize, total_bytes: blocks * bsize, needed_bytes: neededBytes };
}
