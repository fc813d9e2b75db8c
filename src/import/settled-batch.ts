/**
 * Settles a batch before it is sent: which links the gate lets through, and what of it the store has already, also from
 * imports of an older version, which gave events other uuids.
 */

import type { LinkGate } from "./link-gate.ts";
import type { FinishedEvent, LegacyEvent } from "./map/finish.ts";
import type { CopiedEvent } from "./read/record.ts";
import type { RecentUuids } from "./recent-uuids.ts";
import type { ImportTarget } from "./target.ts";

/** An event to be sent: made of a record, or copied from it. */
export type Item = MadeItem | CopiedItem;
export type MadeItem = Pick<FinishedEvent, "uuid" | "isMade" | "text" | "link" | "legacy">;
export interface CopiedItem extends Pick<FinishedEvent, "uuid" | "isMade"> {
  text: CopiedEvent;
  link?: undefined;
  legacy?: undefined;
}

/** What of a batch is new. */
export interface Known {
  accepted: number;
  duplicate: number;
  made: number;
}

export interface SettledBatch {
  known: Known;
  /** What is sent. */
  items: readonly Item[];
}

export interface SettlingServices {
  gate: LinkGate;
  recent: RecentUuids;
  target: Pick<ImportTarget, "knownUuids" | "storedEvents">;
}

/** Whether a batch is sent as it is, whatever its links and what is stored. */
export function isPlain(items: readonly Item[]): boolean {
  return items.every(({ link, legacy }) => link === undefined && legacy === undefined);
}

/** Whose uuids were sent before is found out before it returns. */
export async function settle(
  items: readonly Item[],
  { gate, recent, target }: SettlingServices,
): Promise<SettledBatch> {
  const fresh = new Set(items.filter(({ uuid, isMade }) => !isMade && recent.add(uuid)));
  const linked = await throughGate(items, gate);
  for (const item of linked) if (item.isMade && recent.add(item.uuid)) fresh.add(item);
  const doubtful = [...fresh].flatMap(({ uuid, legacy }) => [uuid, ...(legacy ? [legacy.uuid] : [])]);
  const known = doubtful.length === 0 ? new Set<string>() : await target.knownUuids(doubtful);
  const olds = await storedByOlderVersion(linked, known, target);
  const isNew = (item: Item) => fresh.has(item) && !known.has(item.uuid) && !olds.has(item);
  const own = linked.filter(({ isMade }) => !isMade);
  const accepted = own.filter(isNew).length;
  const made = linked.filter((item) => item.isMade && isNew(item)).length;
  return {
    known: { accepted, duplicate: own.length - accepted, made },
    items: olds.size === 0 ? linked : linked.filter((item) => !olds.has(item)),
  };
}

/** The items without the links that the gate refuses. The items that stay as they are are the same objects. */
async function throughGate(items: readonly Item[], gate: LinkGate): Promise<readonly Item[]> {
  const links = items.filter((item): item is MadeItem => item.link !== undefined);
  if (links.length === 0) return items;
  const decided = await gate.decide(links.map(({ link }) => link!.pair));
  const refused = new Set<Item>(links.filter((_, index) => !decided[index]));
  if (refused.size === 0) return items;
  return items.flatMap((item) => {
    if (!refused.has(item)) return [item];
    const unlinked = item.link?.unlinked;
    if (unlinked === undefined) return [];
    // In place: it may be known as fresh.
    (item as MadeItem).text = unlinked;
    return [item];
  });
}

/** Items that an older version has stored under another uuid. Source: contract, import 1.6 E3. */
async function storedByOlderVersion(
  items: readonly Item[],
  known: ReadonlySet<string>,
  target: SettlingServices["target"],
): Promise<ReadonlySet<Item>> {
  const candidates = items.filter(({ legacy }) => legacy !== undefined && known.has(legacy.uuid));
  if (candidates.length === 0) return new Set();
  const uuids = new Set(candidates.map(({ legacy }) => legacy!.uuid));
  const stored = new Map((await target.storedEvents([...uuids])).map((event) => [event.uuid, event]));
  const isSame = ({ uuid, names, distinctIds }: LegacyEvent) => {
    const event = stored.get(uuid);
    return event !== undefined && names.includes(event.event) && distinctIds.includes(event.distinctId);
  };
  return new Set(candidates.filter(({ legacy }) => isSame(legacy!)));
}
