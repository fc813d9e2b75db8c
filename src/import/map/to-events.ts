/**
 * Converts a record to the events that are sent, with their time and UUID, including those that link a device and its
 * user or set group properties. Pure except for the state of pairs, groups and equal records that is passed in.
 */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { getEventId, getEventIds, getLegacyId, importNamespace, type OrdinalOf } from "./event-id.ts";
import { type MappedEvent, type Pair, toEvent } from "./mapped.ts";
import { type TimeProblem, type TimeZone, toTime } from "./time.ts";

/** An event to be sent. */
export interface FinishedEvent {
  uuid: string;
  /** In the format of `/batch/`. */
  text: string;
  /** Why it has no time. */
  timeProblem: TimeProblem | undefined;
  /** Generated to link identities or for a group: the source has no such event. */
  isGenerated: boolean;
  /** It links these two, if the gate permits. */
  link?: {
    pair: Pair;
    /** The event without the link; absent: it only consists of the link. */
    unlinked?: string;
  };
  legacy?: LegacyEvent;
  /** Of a generated event: no other record of the import generates it, unless this one is rejected. */
  claim?: NewsClaim;
  /** What an earlier record has generated, and this one would otherwise. */
  spares?: readonly Spare[];
  /** For the summary; absent: it has no time. */
  about?: { distinctId: string; micros: number };
}

interface NewsClaim {
  news: string;
  release: () => void;
}

interface Spare {
  news: string;
  make: () => FinishedEvent;
}

/**
 * The event that an older version created from a record: the same event, if the store has one of these UUIDs with one of
 * these names and IDs.
 */
export interface LegacyEvent {
  uuids: readonly string[];
  names: readonly string[];
  distinctIds: readonly string[];
}

/** Remembers a string. @returns undefined if it is not new */
export type IsNew = (text: string) => Pick<NewsClaim, "release"> | undefined;

export interface FinishOptions {
  /** The clock of this computer. */
  nowMicros: number;
  /** For times without a zone; absent: UTC. */
  zone?: TimeZone | undefined;
  isNews: IsNew;
  ordinalOf: OrdinalOf;
  /** Whether an older version may have loaded the same records. */
  hasHistory: boolean;
}

export function toEvents(
  mapped: readonly MappedEvent[],
  line: number,
  record: JsonObject,
  options: FinishOptions,
): FinishedEvent[] {
  return mapped.flatMap((each, index) => {
    const micros = toMicros(each, options);
    const { timestamp: _, ...event } = each.event;
    if (typeof micros !== "number")
      return [{ uuid: noUuid, text: JSON.stringify(event), timeProblem: micros, isGenerated: false }];
    const { ordinalOf: getOrdinal, hasHistory } = options;
    const [uuid = noUuid, ...former] = getEventIds(each, micros, getOrdinal, hasHistory);
    event.timestamp = isoFromMicros(micros);
    const legacy = hasHistory ? getLegacyUuids(each, micros, line, record, index, options) : [];
    const olds = [...legacy, ...former].filter((old) => old !== uuid);
    const own: FinishedEvent = {
      uuid,
      text: JSON.stringify({ ...event, uuid }),
      timeProblem: undefined,
      isGenerated: false,
      about: { distinctId: String(event.distinct_id), micros },
      ...(olds.length === 0 ? {} : { legacy: getLegacy(each, olds) }),
      ...(each.isLink ? { link: { pair: each.pair!, unlinked: unlinkedString(event, uuid) } } : {}),
    };
    const generated = getGenerated(each, uuid, olds[0], event.timestamp);
    if (generated.length === 0) return [own];
    const created: FinishedEvent[] = [];
    const spares: Spare[] = [];
    for (const { news, make } of generated) {
      const claim = options.isNews(news);
      if (claim === undefined) spares.push({ news, make });
      else created.push({ ...make(), claim: { news, release: claim.release } });
    }
    return [...created, spares.length === 0 ? own : { ...own, spares }];
  });
}

/** Of an event without a time, which is rejected. */
const noUuid = "00000000-0000-0000-0000-000000000000";

/** Counts the equal records of a record that an earlier run has processed: later ones continue the numbering. */
export function passOver(mapped: readonly MappedEvent[], options: FinishOptions): void {
  for (const each of mapped) {
    const micros = toMicros(each, options);
    if (typeof micros === "number") getEventId(each, micros, options.ordinalOf);
  }
}

function toMicros(
  { event, isOwnExport }: MappedEvent,
  { nowMicros, zone }: FinishOptions,
): number | TimeProblem {
  return toTime(event.timestamp, isOwnExport ? undefined : nowMicros, zone);
}

/** The UUIDs of versions before 0.2, and of 0.2 for sources whose ID has changed since. */
function getLegacyUuids(
  each: MappedEvent,
  micros: number,
  line: number,
  record: JsonObject,
  index: number,
  options: FinishOptions,
): string[] {
  const { legacySourceId } = each;
  const oldMicros = getLegacyMicros(each, micros, options);
  const first = getLegacyId(legacySourceId ?? each.sourceId, oldMicros, line, record, index);
  if (legacySourceId === undefined) return [first];
  return [first, getEventId({ ...each, sourceId: legacySourceId }, micros, options.ordinalOf)];
}

/** The time that an older version gave the event: it neither corrected times nor had an option for their zone. */
function getLegacyMicros(each: MappedEvent, micros: number, { nowMicros, zone }: FinishOptions): number {
  if (each.legacyTime === undefined && zone === undefined) return micros;
  const found = toTime(each.legacyTime ?? each.event.timestamp, each.isOwnExport ? undefined : nowMicros);
  return typeof found === "number" ? found : micros;
}

function getLegacy({ event, source }: MappedEvent, uuids: readonly string[]): LegacyEvent {
  const texts = (values: readonly (Json | undefined)[]) =>
    values.filter((value) => typeof value === "string" || typeof value === "number").map(String);
  return {
    uuids,
    names: texts([event.event, source?.name]),
    distinctIds: texts([event.distinct_id, ...(source?.ids ?? [])]),
  };
}

function unlinkedString(event: JsonObject, uuid: string): string {
  const { $anon_distinct_id: _, ...properties } = event.properties as JsonObject;
  return JSON.stringify({ ...event, properties, uuid });
}

/** The event that links a device and its user. @param timestamp ISO. */
function getLink(pair: Pair, timestamp: Json): { uuid: string; event: JsonObject } {
  const [device, user] = pair;
  // The same in every file and at every time: a pair is linked once.
  const uuid = Bun.randomUUIDv5(`identify:${JSON.stringify(pair)}`, importNamespace);
  return { uuid, event: toEvent("$identify", user, timestamp, { $anon_distinct_id: device }) };
}

/** A link that the gate has permitted, to be sent. */
export function finishedLink(pair: Pair, timestamp: string): FinishedEvent {
  const { uuid, event } = getLink(pair, timestamp);
  return { uuid, text: JSON.stringify({ ...event, uuid }), timeProblem: undefined, isGenerated: true };
}

/** Sent before the event itself, so that it belongs to the person and to the group as they are then. */
function getGenerated(
  { pair, isLink, groups = [], event: source }: MappedEvent,
  uuid: string,
  legacyUuid: string | undefined,
  timestamp: Json,
): Spare[] {
  const finished = (id: string, event: JsonObject, more: Pick<FinishedEvent, "link" | "legacy">) => ({
    uuid: id,
    text: JSON.stringify({ ...event, uuid: id }),
    timeProblem: undefined,
    isGenerated: true,
    ...more,
  });
  const generated: Spare[] = [];
  if (pair !== undefined && !isLink)
    generated.push({
      news: `pair:${JSON.stringify(pair)}`,
      make: () => {
        const { uuid: id, event } = getLink(pair, timestamp);
        return finished(id, event, { link: { pair } });
      },
    });
  for (const { type, key, properties } of groups) {
    const make = () => {
      const getId = (event: string) =>
        Bun.randomUUIDv5(`group:${event}:${JSON.stringify([type, key])}`, importNamespace);
      const inside = { $group_type: type, $group_key: key, $group_set: properties };
      const event = toEvent("$groupidentify", source.distinct_id, timestamp, inside);
      const distinctIds = [String(source.distinct_id)];
      const legacy =
        legacyUuid === undefined
          ? {}
          : { legacy: { uuids: [getId(legacyUuid)], names: ["$groupidentify"], distinctIds } };
      return finished(getId(uuid), event, legacy);
    };
    generated.push({ news: `group:${JSON.stringify([type, key, properties])}`, make });
  }
  return generated;
}
