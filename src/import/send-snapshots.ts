/** Sends the persons and groups that an import describes, after its events (contract, import O1). */

import { addCounts, addName, emptyCounts, type ImportCounts } from "./counts.ts";
import type { FinishedEvent } from "./map/finish.ts";
import { type ImportProgress, noProgress } from "./progress-file.ts";
import { type SettlingServices, settle } from "./settled-batch.ts";
import type { SnapshotStore } from "./snapshots.ts";
import type { ImportTarget, RequestWriter } from "./target.ts";

/** Under which the progress is recorded; no file has this name. */
const progressName = "/snapshots";
const eventsPerBatch = 5_000;

export interface SnapshotOrder extends SettlingServices {
  snapshots: SnapshotStore;
  progress: ImportProgress;
  target: ImportTarget;
  requests: RequestWriter;
  isDryRun: boolean;
  isResumed: boolean;
}

/** @returns what became of the rows, over all runs; how many there are is in the counts of their files. */
export async function sendSnapshots(order: SnapshotOrder): Promise<Partial<ImportCounts>> {
  const { snapshots, progress, isDryRun, isResumed, target, requests } = order;
  if (snapshots.isEmpty) return {};
  let done = isResumed && !isDryRun ? progress.read(progressName) : noProgress();
  const { line: skipTo, sending } = done;
  const repeatTo = sending?.line ?? 0;
  let events: FinishedEvent[] = [];
  let leftOut: string[] = [];
  let line = 0;
  const flush = async () => {
    const { known, items } = await settle(events, order);
    // Of a batch that an earlier run was sending, what was new then counts.
    const { accepted, duplicate, made } = sending?.line === line ? sending : known;
    const news = { accepted, duplicate, made };
    const more = { ...news, left_out: {} };
    for (const reason of leftOut) addName(more.left_out, reason);
    [events, leftOut] = [[], []];
    if (!isDryRun) {
      progress.write(progressName, { ...done, sending: { ...news, line } });
      if (items.length > 0) {
        const bytes = requests.write(items.map(({ text }) => text));
        await target.send(bytes);
        requests.release(bytes);
      }
    }
    const counts = emptyCounts();
    addCounts(counts, done.counts);
    addCounts(counts, more);
    done = { ...noProgress(), line, counts };
  };
  for (const resolved of snapshots.resolve()) {
    line += 1;
    if (line <= skipTo || done.isDone) continue;
    events.push(...resolved.events);
    leftOut.push(...resolved.leftOut);
    if (line < repeatTo) continue;
    if (line === repeatTo || events.length + leftOut.length >= eventsPerBatch) await flush();
  }
  if (events.length + leftOut.length > 0) await flush();
  if (!isDryRun) progress.write(progressName, { ...done, isDone: true });
  const { read: _, ...counts } = done.counts;
  return counts;
}
