/**
 * Makes of a record what is sent: events with their time and uuid, and those that link a device and its user or give a
 * group its properties. Pure but for what it is told of pairs, groups and equal records.
 */

import type { Json, JsonObject } from "../../lib/json.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { eventIdOf, importNamespace, legacyIdOf, type OrdinalOf } from "./event-id.ts";
import { eventOf, type MappedEvent } from "./mapped.ts";
import { type TimeProblem, type TimeZone, timeOf } from "./time.ts";

/** An event to be sent. */
export interface FinishedEvent {
  uuid: string;
  /** As `/batch/` takes it. */
  text: string;
  /** Why it has no time. */
  timeProblem: TimeProblem | undefined;
  /** It was made to link identities or for a group: the source has no such event. */
  isMade: boolean;
  /** It links these two, if the gate lets it. */
  link?: {
    pair: readonly [device: string, user: string];
    /** The event without the link; left out: it is a link alone. */
    unlinked?: string;
  };
  legacy?: LegacyEvent;
}

/** What an older version made of a record: the same event, when the store has one of these names and ids under this uuid. */
export interface LegacyEvent {
  uuid: string;
  names: readonly string[];
  distinctIds: readonly string[];
}

/** Answers whether something was not said before, and remembers it. */
export type IsNews = (text: string) => boolean;

export interface FinishOptions {
  /** The clock of this computer. */
  nowMicros: number;
  /** Of times without a zone; left out: UTC. */
  zone?: TimeZone | undefined;
  isNews: IsNews;
  ordinalOf: OrdinalOf;
  /** Whether an older version may have loaded the same records. */
  hasHistory: boolean;
}

export function finish(
  mapped: readonly MappedEvent[],
  line: number,
  record: JsonObject,
  options: FinishOptions,
): FinishedEvent[] {
  return mapped.flatMap((each, index) => {
    const micros = microsOf(each, options);
    const { timestamp: _, ...event } = each.event;
    if (typeof micros !== "number")
      return [{ uuid: noUuid, text: JSON.stringify(event), timeProblem: micros, isMade: false }];
    const uuid = eventIdOf(each, micros, options.ordinalOf);
    event.timestamp = isoFromMicros(micros);
    const legacyUuid = options.hasHistory
      ? legacyIdOf(each.sourceId, legacyMicrosOf(each, micros, options), line, record, index)
      : undefined;
    const legacy = legacyUuid === uuid ? undefined : legacyUuid;
    const own: FinishedEvent = {
      ...{ uuid, text: JSON.stringify({ ...event, uuid }), timeProblem: undefined, isMade: false },
      ...(legacy === undefined ? {} : { legacy: legacyOf(each, legacy) }),
      ...(each.isLink ? { link: { pair: each.pair!, unlinked: unlinkedText(event, uuid) } } : {}),
    };
    return [...madeOf(each, uuid, legacy, event.timestamp, options), own];
  });
}

/** Of an event without a time: it is rejected. */
const noUuid = "00000000-0000-0000-0000-000000000000";

/** Counts the equal records of a record that an earlier run has taken: those behind it go on from there. */
export function passOver(mapped: readonly MappedEvent[], options: FinishOptions): void {
  for (const each of mapped) {
    const micros = microsOf(each, options);
    if (typeof micros === "number") eventIdOf(each, micros, options.ordinalOf);
  }
}

function microsOf(
  { event, isOwnExport }: MappedEvent,
  { nowMicros, zone }: FinishOptions,
): number | TimeProblem {
  return timeOf(event.timestamp, isOwnExport ? undefined : nowMicros, zone);
}

/** The time that an older version gave the event: it neither corrected times nor had an option for their zone. */
function legacyMicrosOf(each: MappedEvent, micros: number, { nowMicros, zone }: FinishOptions): number {
  if (each.legacyTime === undefined && zone === undefined) return micros;
  const found = timeOf(each.legacyTime ?? each.event.timestamp, each.isOwnExport ? undefined : nowMicros);
  return typeof found === "number" ? found : micros;
}

function legacyOf({ event, source }: MappedEvent, uuid: string): LegacyEvent {
  const texts = (values: readonly (Json | undefined)[]) =>
    values.filter((value) => typeof value === "string" || typeof value === "number").map(String);
  return {
    uuid,
    names: texts([event.event, source?.name]),
    distinctIds: texts([event.distinct_id, ...(source?.ids ?? [])]),
  };
}

function unlinkedText(event: JsonObject, uuid: string): string {
  const { $anon_distinct_id: _, ...properties } = event.properties as JsonObject;
  return JSON.stringify({ ...event, properties, uuid });
}

/** Before the event itself, so that it is of the person and of the group as they are then. */
function madeOf(
  { pair, isLink, groups = [], event: source }: MappedEvent,
  uuid: string,
  legacyUuid: string | undefined,
  timestamp: Json,
  { isNews }: FinishOptions,
): FinishedEvent[] {
  const made: FinishedEvent[] = [];
  const add = (id: string, event: JsonObject, more: Pick<FinishedEvent, "link" | "legacy">) =>
    made.push({
      ...{ uuid: id, text: JSON.stringify({ ...event, uuid: id }), timeProblem: undefined, isMade: true },
      ...more,
    });
  if (pair !== undefined && !isLink && isNews(`pair:${JSON.stringify(pair)}`)) {
    const [device, user] = pair;
    const properties = { $anon_distinct_id: device };
    // The same in every file and at every time: a pair is linked once.
    const id = Bun.randomUUIDv5(`identify:${JSON.stringify(pair)}`, importNamespace);
    add(id, eventOf("$identify", user, timestamp, properties), { link: { pair } });
  }
  for (const { type, key, properties } of groups) {
    if (!isNews(`group:${JSON.stringify([type, key, properties])}`)) continue;
    const idOf = (event: string) =>
      Bun.randomUUIDv5(`group:${event}:${JSON.stringify([type, key])}`, importNamespace);
    const inside = { $group_type: type, $group_key: key, $group_set: properties };
    const event = eventOf("$groupidentify", source.distinct_id, timestamp, inside);
    const legacy =
      legacyUuid === undefined
        ? {}
        : {
            legacy: {
              uuid: idOf(legacyUuid),
              names: ["$groupidentify"],
              distinctIds: [String(source.distinct_id)],
            },
          };
    add(idOf(uuid), event, legacy);
  }
  return made;
}
