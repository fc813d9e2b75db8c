/** Finds the events that ingestion would drop, before sending, with the rules of ingestion itself. */

import { InvalidItemError, PayloadTooComplexError } from "../http/decode/errors.ts";
import { normalize, requestFacts } from "../ingestion/normalize.ts";
import type { Outcome, WarningType } from "../ingestion/outcome.ts";
import { parsePayload } from "../ingestion/payload.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { nowMicros } from "../lib/time.ts";
import { isGroupIdentify } from "../persons/identity/event-names.ts";
import { propertyBytesMax } from "../persons/identity/property-state.ts";
import { toObject } from "./map/lenient-json.ts";
import { parseJsonString } from "./read/json-text.ts";

/** Such events would get the time of the import, which is never right for old data. */
const withoutTime = new Set<WarningType>(["ignored_invalid_timestamp", "historical_event_without_timestamp"]);

/** An event that ingestion rejects because of its size (contract, import O4). */
export const tooLarge = "message_size_too_large";

/** In UTF-8, a character of a JavaScript string has at most this many bytes. */
const bytesPerCharacter = 3;

/** Whether the JSON of an event has more bytes than this; `length` is in bytes unless it is a string. */
export function isLarger(text: string | { length: number }, bytesMax: number): boolean {
  if (typeof text !== "string") return text.length > bytesMax;
  return text.length * bytesPerCharacter > bytesMax && Buffer.byteLength(text) > bytesMax;
}

/** Why each of the events with these JSON texts would be dropped; undefined for accepted ones. */
export function getRejections(texts: readonly string[]): (string | undefined)[] {
  if (texts.length === 0) return [];
  try {
    return rejections(texts);
  } catch {
    // One invalid event would fail the whole batch.
    return texts.map((text) => {
      try {
        return rejections([text])[0];
      } catch (error) {
        if (error instanceof PayloadTooComplexError) return tooLarge;
        return error instanceof InvalidItemError ? error.reason : "invalid_payload";
      }
    });
  }
}

function rejections(texts: readonly string[]): (string | undefined)[] {
  const facts = requestFacts({
    receivedMicros: nowMicros(),
    sentAtMicros: undefined,
    isHistorical: true,
    clientIp: undefined,
    anonymizeIps: false,
    makeUuid: () => "00000000-0000-4000-8000-000000000000",
  });
  const { items } = parsePayload(`[${texts.join(",")}]`, true);
  return texts.map((_, index) => toRejection(normalize(items.at(index), facts)));
}

function toRejection(outcome: Outcome): string | undefined {
  if (outcome.kind === "notice") return outcome.warning.type;
  if (outcome.kind === "dropped") return outcome.reason.type;
  return outcome.warnings.find(({ type }) => withoutTime.has(type))?.type;
}

/** Which properties of one event exceed the limit of a person or a group. @param text JSON of an event or its record. */
export function getSizeViolation(text: string): string | undefined {
  const event = parseJsonString(text) as JsonObject;
  const properties = toObject(event.properties);
  const getSize = (...values: (Json | undefined)[]) =>
    Buffer.byteLength(JSON.stringify(Object.assign({}, ...values.map(toObject))));
  const { $set, $set_once, $group_set } = properties;
  if (isGroupIdentify(String(event.event)))
    return getSize($group_set) > propertyBytesMax ? "group_properties_size_violation" : undefined;
  const bytes = getSize($set_once, event.$set_once, $set, event.$set);
  return bytes > propertyBytesMax ? "person_properties_size_violation" : undefined;
}
