/**
 * Turns one event as it was sent into the event that is stored, or drops it and says why.
 *
 * Pure: no clock, no I/O; the only thing that does not come from the arguments is the uuid that `makeUuid` is
 * asked for. Never throws for anything a client can send.
 * Source: contract, ingestion 5.3, 7, 8, 10, 11, 14.3, 15; README, decisions.
 */

import { isoFromMicros } from "../time.ts";
import { elementsChain } from "./elements-chain.ts";
import { type DistinctId, distinctId, eventName } from "./event-identity.ts";
import { type AddedMembers, propertiesText } from "./event-properties.ts";
import { type EventTime, eventTime } from "./event-time.ts";
import { canonicalUuid } from "./event-uuid.ts";
import type { RawItem } from "./item-table.ts";
import { type Outcome, type PersonMode, type Warning, type WarningType, warning } from "./outcome.ts";
import { firstCodePoints, hasNulEscape, hasSuspectEscape, isWellFormedJson, withoutNul } from "./unicode.ts";

/** What is the same for all events of a request. */
export interface RequestFacts {
  /** When the request arrived, epoch microseconds. */
  readonly receivedMicros: number;
  /** When the client says it sent it, epoch microseconds. */
  readonly sentAtMicros: number | undefined;
  readonly added: AddedMembers;
  /** The name of items that have none; only person updates (`/engage/`) give one. */
  readonly nameOfNameless: string | undefined;
  readonly makeUuid: () => string;
}

/** What a transport sends beside an event's properties instead of inside them. */
export interface ItemOptions {
  /** Takes the place of `$process_person_profile`; undefined when the properties decide. */
  readonly processPersonProfile: unknown;
  readonly ignoresSentAt: boolean;
  /** Names and JSON texts of properties that are added where the client has not sent them. */
  readonly defaults: readonly (readonly [string, string])[];
}

type Sent = Readonly<Record<string, unknown>>;

const NO_PROPERTIES: Sent = {};
const NO_WARNINGS: readonly Warning[] = [];
const NO_OPTIONS: ItemOptions = { processPersonProfile: undefined, ignoresSentAt: false, defaults: [] };

/** Contract: ingestion 8. */
const EVENT_BYTES_MAX = 1_000_000;
const GROUP_KEY_LENGTH_MAX = 400;
/** Far beyond real events; whatever reads stored events recursively must not run out of stack. */
const NESTING_MAX = 500;

/** Kinds of events that the appliance does not keep: performance samples and session replay. */
const NOT_STORED = new Set(["$performance_event", "$snapshot"]);
const GROUP_IDENTIFY = new Set(["$groupidentify", "$group_identify"]);
/** They exist to change a profile, so without one they are nothing. */
const PROFILE_EVENTS = new Set(["$identify", "$create_alias", "$merge_dangerously", ...GROUP_IDENTIFY]);
const SURVEY_EVENTS = new Set(["survey sent", "survey shown", "survey dismissed", "survey abandoned"]);
const CLIENT_WARNING = "$$client_ingestion_warning";

/** Prepares what `normalize` needs to know about a request. */
export function requestFacts(request: {
  receivedMicros: number;
  sentAtMicros: number | undefined;
  clientIp: string | undefined;
  anonymizeIps: boolean;
  nameOfNameless?: string;
  makeUuid: () => string;
}): RequestFacts {
  const { receivedMicros, sentAtMicros, clientIp, anonymizeIps, nameOfNameless, makeUuid } = request;
  const added = {
    ip: clientIp === undefined ? "" : `"$ip":${JSON.stringify(clientIp)}`,
    sentAt: sentAtMicros === undefined ? "" : `"$sent_at":"${isoFromMicros(sentAtMicros)}"`,
    anonymizeIps,
  };
  return { receivedMicros, sentAtMicros, added, nameOfNameless, makeUuid };
}

/** Decides what becomes of one event. */
export function normalize(item: RawItem, facts: RequestFacts, options: ItemOptions = NO_OPTIONS): Outcome {
  const { value } = item;
  const name = eventName(value.event ?? facts.nameOfNameless);
  if (name === undefined) return dropped("missing_event_name", item);
  if (NOT_STORED.has(name)) return dropped("event_not_stored", item, name);
  // First, because what follows may write parts of the event as JSON, which takes stack for every level.
  if (item.deepest > NESTING_MAX) return dropped("nested_too_deep", item, name);
  const properties = value.properties ?? NO_PROPERTIES;
  if (typeof properties !== "object" || Array.isArray(properties)) {
    return dropped("invalid_properties", item, name);
  }
  const sent = properties as Sent;
  const id = distinctId(item);
  if (name === CLIENT_WARNING) return { kind: "notice", warning: clientWarning(item, sent, id?.text) };
  if (id === undefined) return dropped("missing_distinct_id", item, name);
  const profileSwitch = options.processPersonProfile ?? sent.$process_person_profile;
  const mode: PersonMode = profileSwitch === false ? "propertyless" : "full";
  const refusal = damageOf(item) ?? profileRefusal(name, mode, sent);
  if (refusal !== undefined) return dropped(refusal, item, name, id.text);
  const uuid = typeof value.uuid === "string" ? canonicalUuid(value.uuid) : undefined;
  if (uuid === undefined && !isAbsent(value.uuid)) {
    return dropped("skipping_event_invalid_uuid", item, name, id.text);
  }

  const ignoresSentAt = options.ignoresSentAt || sent.$ignore_sent_at === true;
  const sentAtMicros = ignoresSentAt ? undefined : facts.sentAtMicros;
  const time = eventTime(value.timestamp, value.offset, facts.receivedMicros, sentAtMicros);
  const event = {
    uuid: uuid ?? facts.makeUuid(),
    isUuidMade: uuid === undefined,
    name,
    distinctId: id.text,
    time: time.micros,
    mode,
    elementsChain: elementsOf(sent),
    properties: propertiesText(item, facts.added, {
      mode,
      isModeGivenOutside: options.processPersonProfile !== undefined,
      ignoresSentAt,
      hasLineBreak: item.hasLineBreak,
      hasNulEscape: item.hasUnicodeEscape && hasNulEscape(rawText(item)),
      defaults: options.defaults,
    }),
  };
  return { kind: "event", event, warnings: warningsOf(item, name, id, profileSwitch, time) };
}

/** What is wrong with an event that is kept all the same. */
function warningsOf(
  item: RawItem,
  name: string,
  id: DistinctId,
  profileSwitch: unknown,
  time: EventTime,
): readonly Warning[] {
  const isOddSwitch = profileSwitch !== undefined && typeof profileSwitch !== "boolean";
  const isOddSurvey = SURVEY_EVENTS.has(name) && lacksSurveyId(item);
  if (!id.isTruncated && !isOddSwitch && !isOddSurvey && time.warning === undefined) return NO_WARNINGS;
  const about = aboutOf(item, name, id.text);
  const warnings: Warning[] = [];
  if (id.isTruncated) warnings.push(warning("distinct_id_truncated", about));
  if (isOddSwitch) warnings.push(warning("invalid_process_person_profile", about));
  if (isOddSurvey) warnings.push(warning("survey_without_id", about));
  if (time.warning !== undefined) {
    warnings.push(warning(time.warning, { ...about, timestamp: JSON.stringify(item.value.timestamp) }));
  }
  return warnings;
}

function lacksSurveyId(item: RawItem): boolean {
  const { $survey_id: id = null } = (item.value.properties ?? NO_PROPERTIES) as Sent;
  return id === null || id === "";
}

function dropped(type: WarningType, item: RawItem, name?: string, id?: string): Outcome {
  return { kind: "dropped", reason: warning(type, aboutOf(item, name, id)) };
}

function aboutOf({ value }: RawItem, name: string | undefined, id: string | undefined) {
  return { event: name, distinctId: id, eventUuid: typeof value.uuid === "string" ? value.uuid : undefined };
}

function rawText(item: RawItem): string {
  return item.text.slice(item.start, item.end);
}

/** Why the text of an item cannot be stored, whatever it means. */
function damageOf(item: RawItem): WarningType | undefined {
  if (isTooLarge(item)) return "message_size_too_large";
  if (!item.hasUnicodeEscape) return undefined;
  const raw = rawText(item);
  const isSuspect = hasSuspectEscape(raw) || !raw.isWellFormed();
  return isSuspect && !isWellFormedJson(raw) ? "invalid_unicode" : undefined;
}

function isTooLarge(item: RawItem): boolean {
  const units = item.end - item.start;
  // A code unit of a text has one to three bytes in UTF-8.
  if (units * 3 <= EVENT_BYTES_MAX) return false;
  return units > EVENT_BYTES_MAX || Buffer.byteLength(rawText(item)) > EVENT_BYTES_MAX;
}

/** Libraries that leave the uuid to the server send nothing, null or an empty text. */
function isAbsent(uuid: unknown): boolean {
  return uuid === undefined || uuid === null || uuid === "";
}

function profileRefusal(name: string, mode: PersonMode, sent: Sent): WarningType | undefined {
  if (mode === "propertyless" && PROFILE_EVENTS.has(name)) {
    return "invalid_event_when_process_person_profile_is_false";
  }
  if (!GROUP_IDENTIFY.has(name)) return undefined;
  // JSON for what is no string: an object can bring a `toString` of its own that is no function.
  const key = typeof sent.$group_key === "string" ? sent.$group_key : (JSON.stringify(sent.$group_key) ?? "");
  if (firstCodePoints(key, GROUP_KEY_LENGTH_MAX) !== key) return "group_key_too_long";
  const set = sent.$group_set ?? {};
  return typeof set !== "object" || Array.isArray(set) ? "invalid_group_set" : undefined;
}

function clientWarning(item: RawItem, sent: Sent, id: string | undefined): Warning {
  const { $$client_ingestion_warning_message: message } = sent;
  return warning("client_ingestion_warning", {
    ...aboutOf(item, CLIENT_WARNING, id),
    message: typeof message === "string" ? message : JSON.stringify(message),
  });
}

/** The clicked elements: newer libraries send the chain itself, older ones a list. */
function elementsOf(sent: Sent): string | null {
  if (typeof sent.$elements_chain === "string" && sent.$elements_chain !== "") {
    return withoutNul(sent.$elements_chain);
  }
  const chain = Array.isArray(sent.$elements) ? withoutNul(elementsChain(sent.$elements)) : "";
  return chain === "" ? null : chain;
}
