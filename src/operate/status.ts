/** What `flagkeep status` tells: of a running appliance by itself, of a stopped one from its files. */

import { existsSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { Cron } from "croner";
import type { ProjectDirectory } from "../accounts/project-directory.ts";
import { readLastBackup } from "../backup/last-backup.ts";
import { discardedRanges } from "../journal/archive.ts";
import { firstOfFileName, type Lane, lanes, scanSegment } from "../journal/segment.ts";
import { isoFromMicros, microsPerDay, nowMicros } from "../lib/time.ts";
import { isInUse } from "../lock.ts";
import { paths } from "../paths.ts";
import { openPeople, type PeopleDb } from "../people/open.ts";
import { laneCursors } from "../people/reader.ts";
import { openSpikes } from "../people/spikes/spike-store.ts";
import { countStoredEvents } from "../people/usage.ts";
import { countWarningsSince } from "../people/warnings.ts";
import { askControl } from "../rpc/control.ts";
import { version } from "../version.ts";
import { folderUse, type StoreUse, storeUse } from "./disk-use.ts";
import { readLastScrub } from "./scrub/last-scrub.ts";
import type { LaneStatus, Status, Volume } from "./status-shape.ts";

/** What both kinds of status read from the stores; folders are looked at besides, see `folderUse`. */
export function storedStatus(
  dataDir: string,
  people: PeopleDb | undefined,
  neededBytes: number | null = null,
): { disk: StoreUse } & Pick<
  Status,
  "stored" | "volume" | "given_up" | "last_backup" | "last_scrub" | "warnings" | "spikes"
> {
  const stores = storeUse(dataDir);
  return {
    disk: stores,
    stored: storedEvents(stores, people === undefined ? 0 : countStoredEvents(people)),
    volume: volumeOf(dataDir, neededBytes),
    given_up: discardedRanges(paths(dataDir).archive).map(({ lane, first, last, reason, at }) => ({
      ...{ lane, first_seq: first, last_seq: last, reason, at },
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
            usual_per_minute: spike.usualPerMinute,
          })),
  };
}

/** When the next scheduled backup is made. @param schedule cron expression; empty for none */
export function nextBackup(schedule: string): Status["next_backup"] {
  const at = schedule === "" ? null : new Cron(schedule, { paused: true }).nextRun();
  if (at === null) return null;
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return { at: at.toISOString(), schedule, time_zone: timeZone };
}

/** Of projects with a key that was replaced and counts for a while yet: how much both are used. */
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

/** @param last per lane, the last acknowledged sequence number and the bytes that wait for the disk. */
export function laneStatus(
  last: readonly { lane: Lane; lastSeq: number; queuedBytes: number }[],
  applied: Record<Lane, number>,
): LaneStatus[] {
  return last.map(({ lane, lastSeq, queuedBytes }) => ({
    lane,
    last_seq: lastSeq,
    applied_seq: applied[lane],
    lag_entries: Math.max(0, lastSeq - applied[lane]),
    queued_bytes: queuedBytes,
  }));
}

/** How long a process that uses the data directory is asked again: it may be starting. */
const patienceMs = 2_000;
const pollMs = 100;

/**
 * The state of a data directory: of a running server by itself, else from its files, which are not changed. Where the
 * control socket is missing, the lock decides whether it is stopped.
 */
export async function currentStatus(dataDir: string): Promise<Status> {
  for (const end = performance.now() + patienceMs; ; await Bun.sleep(pollMs)) {
    const running = await askControl<Status>(dataDir, "status");
    if (running !== undefined) return running;
    if (!isInUse(paths(dataDir).lock, dataDir)) return await stoppedStatus(dataDir);
    if (performance.now() > end)
      return { ...(await stoppedStatus(dataDir)), running: true, state: "unreachable" };
  }
}

/** Reads the files of a server that does not answer; changes nothing. */
async function stoppedStatus(dataDir: string): Promise<Status> {
  const place = paths(dataDir);
  const people = existsSync(place.people) ? openPeople(place.people, { readonly: true }) : undefined;
  try {
    const applied = people === undefined ? { realtime: 0, historical: 0 } : laneCursors(people);
    const last = lanes.map((lane) => ({
      lane,
      lastSeq: Math.max(applied[lane], lastSeqOnDisk(join(place.journal, lane))),
      queuedBytes: 0,
    }));
    const stored = storedStatus(dataDir, people);
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
      engine: { up: false, restarts: 0, rebuilding: null, trouble: null, properties: [] },
      ...stored,
      disk: { ...stored.disk, ...(await folderUse(dataDir)) },
    };
  } finally {
    people?.$client.close();
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

function storedEvents({ library_bytes: _, ...stores }: StoreUse, events: number): Status["stored"] {
  const bytes = Object.values(stores).reduce((sum, part) => sum + part, 0);
  return { events, bytes_per_event: events === 0 ? null : Math.round(bytes / events) };
}

function volumeOf(dataDir: string, neededBytes: number | null): Volume {
  const { bavail, bsize, blocks } = statfsSync(dataDir);
  return { free_bytes: bavail * bsize, total_bytes: blocks * bsize, needed_bytes: neededBytes };
}
