/**
 * Makes of a record what is sent: events with their time and uuid, and those that join a device and its user or give a
 * group its properties. Pure but for what it is told of pairs and groups.
 */

import type { Json, JsonObject } from "../../lib/json.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { canonicalUuid } from "../../lib/uuid.ts";
import { eventOf, type MappedEvent } from "./mapped.ts";
import { type TimeProblem, timeOf } from "./time.ts";

/** An event to be sent. */
export interface FinishedEvent {
  uuid: string;
  /** As `/batch/` takes it. */
  text: string;
  /** Why it has no time. */
  timeProblem: TimeProblem | undefined;
  /** It was made to join identities or for a group: the source has no such event. */
  isMade: boolean;
}

/** Answers whether something was not said before, and remembers it. */
export type IsNews = (text: string) => boolean;

/** @param nowMicros the clock of this computer. */
export function finish(
  mapped: readonly MappedEvent[],
  line: number,
  record: JsonObject,
  options: { nowMicros: number; isLinking: boolean; isNews: IsNews },
): FinishedEvent[] {
  return mapped.flatMap((each, index) => {
    const time = timeOf(each.event.timestamp, each.isOwnExport ? undefined : options.nowMicros);
    const micros = typeof time === "number" ? time : undefined;
    const uuid = uuidOf(each.sourceId, micros, line, record, index);
    const { timestamp: _, ...event } = each.event;
    if (micros !== undefined) event.timestamp = isoFromMicros(micros);
    const own: FinishedEvent = {
      uuid,
      text: JSON.stringify({ ...event, uuid }),
      timeProblem: typeof time === "number" ? undefined : time,
      isMade: false,
    };
    // Without a time it is rejected, and so is what comes of it.
    return micros === undefined ? [own] : [...madeOf(each, uuid, event.timestamp!, options), own];
  });
}

/** Before the event itself, so that it is of the person and of the group as they are then. */
function madeOf(
  { pair, groups = [], event: source }: MappedEvent,
  uuid: string,
  timestamp: Json,
  { isLinking, isNews }: { isLinking: boolean; isNews: IsNews },
): FinishedEvent[] {
  const made: FinishedEvent[] = [];
  const add = (id: string, event: JsonObject) =>
    made.push({
      ...{ uuid: id, text: JSON.stringify({ ...event, uuid: id }), timeProblem: undefined, isMade: true },
    });
  if (pair !== undefined && isLinking && isNews(`pair:${JSON.stringify(pair)}`)) {
    const [device, user] = pair;
    const properties = { $anon_distinct_id: device };
    // The same in every file and at every time: a pair is joined once.
    const id = Bun.randomUUIDv5(`identify:${JSON.stringify(pair)}`, namespace);
    add(id, eventOf("$identify", user, timestamp, properties));
  }
  for (const { type, key, properties } of groups) {
    if (!isNews(`group:${JSON.stringify([type, key, properties])}`)) continue;
    const id = Bun.randomUUIDv5(`group:${uuid}:${JSON.stringify([type, key])}`, namespace);
    const inside = { $group_type: type, $group_key: key, $group_set: properties };
    add(id, eventOf("$groupidentify", source.distinct_id, timestamp, inside));
  }
  return made;
}

/**
 * The uuid of an event: its own, else one that its source id and time always lead to, else one made of its line number and
 * what stands there, so that neither another name of the file nor packing it makes other events of it.
 *
 * What is made carries the time of the event (version 7), by which the event store finds it fast.
 *
 * @param micros the time of the event.
 * @param record as it was read, before anything is renamed.
 * @param index  of the event in the record.
 */
export function uuidOf(
  sourceId: string | undefined,
  micros: number | undefined,
  line: number,
  record: JsonObject,
  index = 0,
): string {
  const own = sourceId === undefined ? undefined : canonicalUuid(sourceId);
  if (own !== undefined) return own;
  const place = `line:${line}:${JSON.stringify(record)}${index === 0 ? "" : `:${index}`}`;
  const hash = Bun.randomUUIDv5(sourceId === undefined ? place : `id:${sourceId}`, namespace);
  const ms = micros === undefined ? -1 : Math.floor(micros / 1_000);
  // As far as a uuid can hold it.
  if (ms < 0 || ms >= 2 ** 48) return hash;
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(15)}`;
}

/** Of this product's imports alone; never to be changed, or repeated imports would load everything twice. */
const namespace = "6f1a6a0e-5d0b-5c56-9d5c-3f6f2b2f7a11";
