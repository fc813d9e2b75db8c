/** Steps after the events of all files: persons and groups, then merges, deletions last (contract, import O1). */

import { isoFromMicros, nowMicros } from "../lib/time.ts";
import { addCounts, addName, emptyCounts, type ImportCounts } from "./counts.ts";
import type { ImportClient } from "./import-client.ts";
import type { LinkGate } from "./link-gate.ts";
import type { LookupStore } from "./lookup-store.ts";
import { heapPerson } from "./map/heap.ts";
import type { MergeKind } from "./map/lookups.ts";
import { mergeKinds } from "./map/lookups.ts";
import type { Pair } from "./map/mapped.ts";
import { finishedLink } from "./map/to-events.ts";
import type { Zone } from "./map/zone.ts";
import { type Resolved, type ResolvedOrder, sendResolved } from "./send-resolved.ts";
import type { SnapshotStore } from "./snapshots.ts";
import {
  joinedReason,
  type MergeOptions,
  mergeReasons,
  type ResolvedMerge,
  resolveMerges,
} from "./source-merges.ts";

/** Source users whose links are decided in one batch. */
const mergesPerDecision = 1_000;
/** Persons that are looked up and deleted in one batch. */
const personsPerDeletion = 200;
/** Concurrent deletions: each waits until it is applied. */
const deletionsUnderWay = 20;

export interface AfterFilesOrder extends ResolvedOrder {
  snapshots: SnapshotStore;
  store: LookupStore;
  gate: LinkGate;
  isLinking: boolean;
  zone?: Zone | undefined;
}

/** @returns the counts of the rows, over all runs. */
export async function finishImport(order: AfterFilesOrder): Promise<ImportCounts> {
  const { snapshots, store, target, isDryRun } = order;
  const counts = emptyCounts();
  if (!snapshots.isEmpty) addCounts(counts, await sendResolved("/snapshots", snapshots.resolve(), order));
  for (const kind of mergeKinds) {
    if (!store.has(kind)) continue;
    // The current owners of these IDs decide what may be linked.
    if (!isDryRun) await waitForSent(target);
    addCounts(counts, await sendResolved(`/${kind}`, linkedMerges(kind, order), order));
  }
  if (!isDryRun) {
    await waitForSent(target);
    await deletePersons(snapshots.deletedPersons(), target, counts);
  }
  return counts;
}

/** Lanes are loaded in order: when the end is loaded, everything is. */
async function waitForSent(target: ImportClient): Promise<void> {
  await target.waitUntilLoaded(await target.lastSeq());
}

async function* linkedMerges(kind: MergeKind, order: AfterFilesOrder): AsyncGenerator<Resolved> {
  const { store, gate, isLinking, zone } = order;
  const options: MergeOptions = { store, kind, zone, nowMicros: nowMicros(), idsOf: idsIn(store, kind) };
  let merges: ResolvedMerge[] = [];
  const decide = async (): Promise<Resolved[]> => {
    const pairs = merges.flatMap((merge) => merge.pairs);
    const decided = await gate.decide(pairs);
    let at = 0;
    const resolved = merges.map((merge) => {
      const linked: Pair[] = merge.pairs.filter(() => decided[at++]);
      const isJoined = linked.length > 0 || merge.pairs.length === 0;
      const rejection = isLinking ? mergeReasons.users : mergeReasons.unlinked;
      const events = linked.map((pair) => finishedLink(pair, isoFromMicros(merge.micros)));
      const rows = Array<string>(merge.rows).fill(isJoined ? joinedReason : rejection);
      const placeholders = merge.leftOut.filter((reason) => reason === mergeReasons.placeholder).length;
      return { events, leftOut: [...merge.leftOut, ...rows], placeholders };
    });
    merges = [];
    return resolved;
  };
  for (const merge of resolveMerges(options)) {
    merges.push(merge);
    if (merges.length >= mergesPerDecision) yield* await decide();
  }
  yield* await decide();
}

/** Distinct IDs of a source user: from its events, or from the table of users. */
function idsIn(store: LookupStore, kind: MergeKind): MergeOptions["idsOf"] {
  if (kind === "amplitude_merges") return (id) => store.sourceUserIds(kind, id);
  return (id) =>
    heapPerson(
      id,
      store.take("users", id).map(({ identity }) => identity),
    );
}

/** Deletes persons of earlier imports; those with realtime events are kept and counted (contract, import O3). */
async function deletePersons(
  deleted: Iterable<readonly string[]>,
  target: ImportClient,
  counts: ImportCounts,
): Promise<void> {
  let ids: string[] = [];
  let persons = 0;
  const flush = async () => {
    const found = await target.importedPersons(ids);
    [ids, persons] = [[], 0];
    const ours = found.filter(({ hasHistory, hasRealtime }) => hasHistory && !hasRealtime);
    const live = found.filter(({ hasRealtime }) => hasRealtime).length;
    if (live > 0) addName(counts.warnings, "deleted_person_is_live", live);
    for (let at = 0; at < ours.length; at += deletionsUnderWay)
      await Promise.all(ours.slice(at, at + deletionsUnderWay).map(({ uuid }) => target.deletePerson(uuid)));
  };
  for (const distinctIds of deleted) {
    if (distinctIds.length === 0) continue;
    ids.push(...distinctIds);
    persons += 1;
    if (persons >= personsPerDeletion) await flush();
  }
  if (ids.length > 0) await flush();
}
