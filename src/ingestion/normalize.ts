/**
 * Converts an event as sent to the stored event, or drops it with a reason.
 *
 * Pure: no clock, no I/O; only the UUID of `generateUuid` does not come from the arguments. Never throws for any client
 * input. Source: contract, ingestion 5.3, 7, 10, 11, 14.3, 15; decisions 1 to 9 and 21.
 */

import type { CanonicalEvent, PersonMode } from "../journal/entry.ts";
import { canonicalUuid } from "../lib/ids.ts";
import { sanitizeJson, sanitizeString } from "../lib/json/canonical.ts";
import { memberSource } from "../lib/json/spans.ts";
import { isoFromMicros } from "../lib/time.ts";
import { sentChain } from "./elements-chain.ts";
import { type AddedMembers, serializeProperties } from "./event-properties.ts";
import { type EventTime, eventTime, historicalEventTime, isTime } from "./event-time.ts";
import type { RawItem } from "./item-table.ts";
import { type Outcome, type Warning, type WarningType, warning } from "./outcome.ts";

/*
 * Special events without their essential data: they are stored, and a warning names what is missing.
 *
 * Pure. The scanner (`src/scan/assembly/`) leaves every event that could get one of these warnings to this file.
 * Source: contract, ingestion 15.4.
 */

type Members = Readonly<Record<string, unknown>>;

const surveyEvents = new Set(["survey sent", "survey shown", "survey dismissed", "survey abandoned"]);
const groupEvents = new Set(["$groupidentify", "$group_identify"]);

/**
 * The warnings about one event.
 *
 * @param name       its stored name.
 * @param item       the event as sent.
 * @param properties its properties.
 */
function missingData(name: string, item: Members, properties: Members): readonly WarningType[] {
  const types: WarningType[] = [];
  if (groupEvents.has(name)) {
    if (isBlank(properties.$group_type) || isBlank(properties.$group_key))
      types.push("groupidentify_without_group");
    if (!isObjectOrAbsent(properties.$group_set)) types.push("invalid_group_set");
  } else if (name === "$create_alias") {
    if (isBlank(properties.alias)) types.push("create_alias_without_alias");
  } else if (name === "$merge_dangerously") {
    if (isBlank(properties.alias)) types.push("merge_without_alias");
  } else if (name === "$screen") {
    if (isBlank(properties.$screen_name)) types.push("screen_without_name");
  } else if (surveyEvents.has(name) && isBlank(properties.$survey_id)) types.push("survey_without_id");
  if (!hasValidSet(name, item, properties)) types.push("invalid_set");
  const { $unset: unset = null } = properties;
  if (unset !== null && typeof unset !== "object") types.push("invalid_unset");
  if (!isObjectOrAbsent(properties.$groups)) types.push("invalid_groups");
  if (!isAbsent(item.offset) && typeof item.offset !== "number") types.push("invalid_offset");
  const hasOwnTime = !isAbsent(item.timestamp) || typeof item.offset === "number";
  if (!hasOwnTime && isTime(properties.timestamp)) types.push("timestamp_in_properties");
  return types;
}

/** Only `$set` requires properties to set or to remove. */
function hasValidSet(name: string, item: Members, properties: Members): boolean {
  const sent = [item.$set, item.$set_once, properties.$set, properties.$set_once];
  if (!sent.every(isObjectOrAbsent)) return false;
  return name !== "$set" || !isAbsent(properties.$unset) || !sent.every(isAbsent);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isObjectOrAbsent(value: unknown): boolean {
  return isAbsent(value) || (typeof value === "object" && !Array.isArray(value));
}

/** Whether a value names nothing: absent, whitespace, or an object or list. */
function isBlank(value: unknown): boolean {
  return typeof value === "string" ? value.trim() === "" : isAbsent(value) || typeof value === "object";
}

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
  readonly generateUuid: () => string;
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
  generateUuid: () => string;
}): RequestFacts {
  const { receivedMicros, sentAtMicros, isHistorical, clientIp, anonymizeIps } = request;
  const { nameOfNameless, generateUuid } = request;
  const added = {
    ip: clientIp === undefined ? "" : `"$ip":${JSON.stringify(clientIp)}`,
    sentAt: sentAtMicros === undefined ? "" : `"$sent_at":"${isoFromMicros(sentAtMicros)}"`,
    anonymizeIps,
  };
  return { receivedMicros, sentAtMicros, isHistorical, added, nameOfNameless, generateUuid };
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
    uuid: uuid ?? facts.generateUuid(),
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
  if (hasGeneratedUuid && !isUnset(item.value.uuid)) types.push("invalid_uuid");
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
function isUnset(uuid: unknown): boolean {
  return uuid === undefined || uuid === null || uuid === "";
}

function clientWarning(item: RawItem, sent: Sent, id: string | undefined): Warning {
  const { $$client_ingestion_warning_message: message } = sent;
  return warning("client_ingestion_warning", {
    ...getDetails(item, clientWarningName, id),
    message: typeof message === "string" ? message : JSON.stringify(message),
  });
}

/**
 * The stored name, of any length, numbers in the client's spelling.
 *
 * @param nameOfNameless replaces an absent or null name.
 * @returns undefined when the name is absent or only whitespace.
 */
export function eventName(item: RawItem, nameOfNameless: string | undefined): string | undefined {
  const claimed = item.value.event ?? nameOfNameless;
  const isScalar = typeof claimed === "number" || typeof claimed === "boolean";
  const name = isScalar ? toDisplayString(item, item.start, "event", claimed) : claimed;
  if (typeof name !== "string" || name.trim() === "") return undefined;
  return sanitizeString(name);
}

/**
 * The distinct ID, of any length: next to the properties, else inside them.
 *
 * @returns undefined when it is absent or only whitespace. Whitespace around an ID is preserved.
 */
export function distinctId(item: RawItem): string | undefined {
  const { value } = item;
  const properties = (value.properties ?? {}) as Record<string, unknown>;
  const found =
    toDisplayString(item, item.start, "distinct_id", value.distinct_id) ??
    toDisplayString(item, item.start, "$distinct_id", value.$distinct_id) ??
    toDisplayString(item, item.propertiesStart, "distinct_id", properties.distinct_id) ??
    toDisplayString(item, item.propertiesStart, "$distinct_id", properties.$distinct_id);
  if (found === undefined) return undefined;
  return found.trim() === "" ? undefined : sanitizeString(found);
}

/** Strings unchanged, numbers in the client's spelling, everything else as JSON. */
function toDisplayString(
  item: RawItem,
  objectStart: number,
  name: string,
  value: unknown,
): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? memberSource(item.text, objectStart, name) : JSON.stringify(value);
}
