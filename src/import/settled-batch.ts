/**
 * Settles a batch before it is sent: which links the gate permits, and which events the store has already, also from
 * imports of an older version with other UUIDs.
 */

import type { ImportClient } from "./import-client.ts";
import type { LinkGate } from "./link-gate.ts";
import type { FinishedEvent, LegacyEvent } from "./map/to-events.ts";
import type { CopiedEvent } from "./read/record.ts";
import type { RecentUuids } from "./recent.ts";

/** An event to be sent: mapped from a record, or copied from it. */
export type Item = SendItem | CopiedItem;
export type SendItem = Pick<FinishedEvent, "uuid" | "isGenerated" | "text" | "link" | "legacy" | "about">;
export interface CopiedItem extends Pick<FinishedEvent, "uuid" | "isGenerated"> {
  text: CopiedEvent;
  link?: undefined;
  legacy?: undefined;
  about: CopiedEvent["about"];
}

/** Counts of a batch's events. */
export interface Known {
  accepted: number;
  duplicate: number;
  made: number;
}

export interface SettledBatch {
  known: Known;
  /** The items to send. */
  items: readonly Item[];
}

export interface SettlingDeps {
  gate: LinkGate;
  recent: RecentUuids;
  target: Pick<ImportClient, "knownUuids" | "storedEvents">;
}

/** Whether a batch is sent unchanged, independent of links and stored events. */
export function isPlain(items: readonly Item[]): boolean {
  return items.every(({ link, legacy }) => link === undefined && legacy === undefined);
}

/** UUIDs are compared with earlier batches before the first await. */
export async function settle(
  items: readonly Item[],
  { gate, recent, target }: SettlingDeps,
): Promise<SettledBatch> {
  const fresh = new Set(items.filter(({ uuid, isGenerated }) => !isGenerated && recent.add(uuid)));
  const linked = await throughGate(items, gate);
  for (const item of linked) if (item.isGenerated && recent.add(item.uuid)) fresh.add(item);
  const doubtful = [...fresh].flatMap(({ uuid, legacy }) => [uuid, ...(legacy?.uuids ?? [])]);
  const known = doubtful.length === 0 ? new Set<string>() : await target.knownUuids(doubtful);
  const olds = await storedByOlderVersion(linked, known, target);
  const isNew = (item: Item) => fresh.has(item) && !known.has(item.uuid) && !olds.has(item);
  const own = linked.filter(({ isGenerated }) => !isGenerated);
  const accepted = own.filter(isNew).length;
  const generated = linked.filter((item) => item.isGenerated && isNew(item)).length;
  return {
    known: { accepted, duplicate: own.length - accepted, made: generated },
    items: olds.size === 0 ? linked : linked.filter((item) => !olds.has(item)),
  };
}

/** The items without the links that the gate rejects. Unchanged items are the same objects. */
async function throughGate(items: readonly Item[], gate: LinkGate): Promise<readonly Item[]> {
  const links = items.filter((item): item is SendItem => item.link !== undefined);
  if (links.length === 0) return items;
  const decided = await gate.decide(links.map(({ link }) => link!.pair));
  const rejected = new Set<Item>(links.filter((_, index) => !decided[index]));
  if (rejected.size === 0) return items;
  return items.flatMap((item) => {
    if (!rejected.has(item)) return [item];
    const unlinked = item.link?.unlinked;
    if (unlinked === undefined) return [];
    // In place: the object may be a member of `fresh`.
    (item as SendItem).text = unlinked;
    return [item];
  });
}

/** Items that an older version has stored under another UUID. Source: contract, import 1.6 E3. */
async function storedByOlderVersion(
  items: readonly Item[],
  known: ReadonlySet<string>,
  target: SettlingDeps["target"],
): Promise<ReadonlySet<Item>> {
  const candidates = items.filter(({ legacy }) => legacy?.uuids.some((uuid) => known.has(uuid)));
  if (candidates.length === 0) return new Set();
  const uuids = new Set(candidates.flatMap(({ legacy }) => legacy!.uuids));
  const stored = new Map((await target.storedEvents([...uuids])).map((event) => [event.uuid, event]));
  const isSame = ({ uuids, names, distinctIds }: LegacyEvent) =>
    uuids.some((uuid) => {
      const event = stored.get(uuid);
      return event !== undefined && names.includes(event.event) && distinctIds.includes(event.distinctId);
    });
  return new Set(candidates.filter(({ legacy }) => isSame(legacy!)));
}
