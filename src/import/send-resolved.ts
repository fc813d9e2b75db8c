/** Sends events that an import knows only after its files: persons and groups, and merges (contract, import O1). */

import { addCounts, addName, emptyCounts, type ImportCounts } from "./counts.ts";
import type { ImportClient, RequestWriter } from "./import-client.ts";
import type { FinishedEvent } from "./map/to-events.ts";
import { type ImportProgress, noProgress } from "./progress-file.ts";
import type { Receipt } from "./receipt.ts";
import { type SettlingDeps, settle } from "./settled-batch.ts";

const eventsPerBatch = 5_000;

/** The result of related rows. */
export interface Resolved {
  events: readonly FinishedEvent[];
  /** Rows that became no event, by reason. */
  leftOut: readonly string[];
  /** Rows with a placeholder ID that were not counted when they were read. */
  placeholders?: number;
}

export interface ResolvedOrder extends SettlingDeps {
  progress: ImportProgress;
  target: ImportClient;
  requests: RequestWriter;
  isDryRun: boolean;
  isResumed: boolean;
  receipt: Receipt;
}

/**
 * Sends resolved rows, in order.
 *
 * @param progressName under which the progress is recorded; no file has this name.
 * @param all          the same in every run.
 * @returns the counts of the rows, over all runs; their number is in the counts of their files.
 */
export async function sendResolved(
  progressName: string,
  all: Iterable<Resolved> | AsyncIterable<Resolved>,
  order: ResolvedOrder,
): Promise<Partial<ImportCounts>> {
  const { progress, isDryRun, isResumed, target, requests } = order;
  let done = isResumed && !isDryRun ? progress.read(progressName) : noProgress();
  const { line: skipTo, sending } = done;
  const repeatTo = sending?.line ?? 0;
  let events: FinishedEvent[] = [];
  let leftOut: string[] = [];
  let placeholders = 0;
  let line = 0;
  const flush = async () => {
    const { known, items } = await settle(events, order);
    // For a batch that an earlier run was sending, the recorded counts apply.
    const { accepted, duplicate, made: generated } = sending?.line === line ? sending : known;
    const news = { accepted, duplicate, made: generated };
    const more = { ...news, left_out: {}, placeholder_ids: placeholders };
    for (const reason of leftOut) addName(more.left_out, reason);
    [events, leftOut, placeholders] = [[], [], 0];
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
  for await (const resolved of all) {
    line += 1;
    order.receipt.addSpan(order.receipt.addEvents(resolved.events));
    if (line <= skipTo || done.isDone) continue;
    events.push(...resolved.events);
    leftOut.push(...resolved.leftOut);
    placeholders += resolved.placeholders ?? 0;
    if (line < repeatTo) continue;
    if (line === repeatTo || events.length + leftOut.length >= eventsPerBatch) await flush();
  }
  if (events.length + leftOut.length > 0) await flush();
  if (!isDryRun) progress.write(progressName, { ...done, isDone: true });
  const { read: _, ...counts } = done.counts;
  return counts;
}
