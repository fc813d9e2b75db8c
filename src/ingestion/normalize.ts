/**
 * Converts an event as sent to the stored event, or drops it with a reason.
 *
 * Pure: no clock, no I/O; only the UUID of `makeUuid` does not come from the arguments. Never throws for any client
 * input. Source: contract, ingestion 5.3, 7, 10, 11, 14.3, 15; decisions 1 to 9 and 21.
 */

import type { CanonicalEvent, PersonMode } from "../journal/entry.ts";
import { canonicalUuid } from "../lib/ids.ts";
import { sanitizeJson } from "../lib/json/canonical.ts";
import { isoFromMicros } from "../lib/time.ts";
import { sentChain } from "./elements-chain.ts";
import { distinctId, eventName } from "./event-identity.ts";
import { type AddedMembers, serializeProperties } from "./event-properties.ts";
import { type EventTime, eventTime, historicalEventTime } from "./event-time.ts";
import type { RawItem } from "./item-table.ts";
import { missingData } from "./missing-data.ts";
import { type Outcome, type Warning, type WarningType, warning } from "./outcome.ts";

/** Common to all events of a request. */
export interface RequestFacts {
  /** When the request arrived, epoch microseconds. */
  readonly receivedMicros: number;
  /** The client's send time, epoch microseconds. */
  readonly sentAtMicros: number | undefined;
  /** The request is part of a historical migration. */
  readonly isHistorical: boolean;
  readonly added: AddedMembers;
  /** The name of items without one; only for person updates (`/engage/`). */
  readonly nameOfNameless: string | undefined;
  readonly makeUuid: () => string;
}

/** Data that a transport sends next to an event's properties instead of inside them. */
export interface ItemOptions {
  /** Replaces `$process_person_profile`; undefined when the properties decide. */
  readonly processPersonProfile: unknown;
  readonly ignoresSentAt: boolean;
  /** Names and JSON values of properties that are added unless the client sent them. */
  readonly defaults: readonly (readonly [string, string])[];
}

type Sent = Readonly<Record<string, unknown>>;

const noProperties: Sent = {};
const noWarnings: readonly Warning[] = [];
const noOptions: ItemOptions = { processPersonProfile: undefined, ignoresSentAt: false, defaults: [] };

/** Session replay, which the product does not support. */
const snapshot = "$snapshot";
/** Their purpose is to change a person or a group, which they must not do when sent as anonymous. */
const profileEvents = new Set([
  "$set",
  "$identify",
  "$create_alias",
  "$merge_dangerously",
  "$groupidentify",
  "$group_identify",
]);
const clientWarningName = "$$client_ingestion_warning";

/** Prepares what `normalize` needs to know about a request. */
export function requestFacts(request: {
  receivedMicros: number;
  sentAtMicros: number | undefined;
  isHistorical: boolean;
  clientIp: string | undefined;
  anonymizeIps: boolean;
  nameOfNameless?: string;
  makeUuid: () => string;
}): RequestFacts {
  const { receivedMicros, sentAtMicros, isHistorical, clientIp, anonymizeIps } = request;
  const { nameOfNameless, makeUuid } = request;
  const added = {
    ip: clientIp === undefined ? "" : `"$ip":${JSON.stringify(clientIp)}`,
    sentAt: sentAtMicros === undefined ? "" : `"$sent_at":"${isoFromMicros(sentAtMicros)}"`,
    anonymizeIps,
  };
  return { receivedMicros, sentAtMicros, isHistorical, added, nameOfNameless, makeUuid };
}

/**
 * Determines the outcome of one event.
 *
 * @param item its `properties`, if any, are an object (`payload.ts` ensures this).
 */
export function normalize(item: RawItem, facts: RequestFacts, options: ItemOptions = noOptions): Outcome {
  const { value } = item;
  const name = eventName(item, facts.nameOfNameless);
  if (name === undefined) return dropped("missing_event_name", item);
  if (name === snapshot) return dropped("event_not_stored", item, name);
  const sent = (value.properties ?? noProperties) as Sent;
  const id = distinctId(item);
  if (name === clientWarningName) return { kind: "notice", warning: clientWarning(item, sent, id) };
  if (id === undefined) return dropped("missing_distinct_id", item, name);
  const profileSwitch = options.processPersonProfile ?? sent.$process_person_profile;
  const mode: PersonMode = profileSwitch === false ? "propertyless" : "full";
  const uuid = typeof value.uuid === "string" ? canonicalUuid(value.uuid) : undefined;

  const ignoresSentAt = options.ignoresSentAt || sent.$ignore_sent_at === true;
  const { receivedMicros } = facts;
  const time = facts.isHistorical
    ? historicalEventTime(value.timestamp, receivedMicros)
    : eventTime(
        value.timestamp,
        value.offset,
        receivedMicros,
        ignoresSentAt ? undefined : facts.sentAtMicros,
      );
  const event = {
    uuid: uuid ?? facts.makeUuid(),
    hasGeneratedUuid: uuid === undefined,
    name,
    distinctId: id,
    time: time.micros,
    mode,
    elementsChain: sentChain(sent),
    properties: serializeProperties(item, facts.added, {
      mode,
      isModeGivenOutside: options.processPersonProfile !== undefined,
      ignoresSentAt,
      hasLineBreak: item.hasLineBreak,
      isUnstorable: item.hasUnicodeEscape && isUnstorable(rawString(item)),
      defaults: options.defaults,
    }),
  };
  return { kind: "event", event, warnings: getWarnings(item, event, sent, profileSwitch, time) };
}

/** Warnings about an event that is stored nevertheless. */
function getWarnings(
  item: RawItem,
  { name, distinctId: id, mode, hasGeneratedUuid }: CanonicalEvent,
  sent: Sent,
  profileSwitch: unknown,
  time: EventTime,
): readonly Warning[] {
  const types: WarningType[] = [];
  if (hasGeneratedUuid && !isAbsent(item.value.uuid)) types.push("invalid_uuid");
  if (profileSwitch !== undefined && typeof profileSwitch !== "boolean")
    types.push("invalid_process_person_profile");
  // Missing data is irrelevant: the event changes nothing.
  if (mode === "propertyless" && profileEvents.has(name))
    types.push("invalid_event_when_process_person_profile_is_false");
  else types.push(...missingData(name, item.value, sent));
  if (types.length === 0 && time.warning === undefined) return noWarnings;
  const about = getDetails(item, name, id);
  const warnings = types.map((type) => warning(type, about));
  if (time.warning !== undefined) {
    warnings.push(warning(time.warning, { ...about, timestamp: JSON.stringify(item.value.timestamp) }));
  }
  return warnings;
}

function dropped(type: WarningType, item: RawItem, name?: string, id?: string): Outcome {
  return { kind: "dropped", reason: warning(type, getDetails(item, name, id)) };
}

function getDetails({ value }: RawItem, name: string | undefined, id: string | undefined) {
  return { event: name, distinctId: id, eventUuid: typeof value.uuid === "string" ? value.uuid : undefined };
}

function rawString(item: RawItem): string {
  return item.text.slice(item.start, item.end);
}

function isUnstorable(json: string): boolean {
  return sanitizeJson(json) !== json;
}

/** Libraries that leave the UUID to the server send nothing, null or an empty string. */
function isAbsent(uuid: unknown): boolean {
  return uuid === undefined || uuid === null || uuid === "";
}

function clientWarning(item: RawItem, sent: Sent, id: string | undefined): Warning {
  const { $$client_ingestion_warning_message: message } = sent;
  return warning("client_ingestion_warning", {
    ...getDetails(item, clientWarningName, id),
    message: typeof message === "string" ? message : JSON.stringify(message),
  });
}
