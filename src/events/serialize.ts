/** Serializes a page of events as JSON; properties are passed through as received. */

import { parseExactJson } from "../lib/json/exact.ts";
import { isoFromMicros } from "../lib/time.ts";
import { getGroups } from "../persons/identity/operations.ts";
import { parseElementsChain } from "./autocapture-elements.ts";
import type { StoredEvent } from "./columns.ts";

/** Data of a page in addition to the events. */
export interface PageContext {
  /** JSON of the person by distinct ID, if any. */
  personTexts: ReadonlyMap<string, string>;
  /** Indexes of the project's group types by name. */
  groupTypeIndexes: ReadonlyMap<string, number>;
}

/** Maximum length of a page with persons; further events are left for the next page. */
const textLengthMax = 64 * 1024 * 1024;

/**
 * @returns a JSON array of the first events, at least one, and their number. Source: contract, sdk-compat 4.10; the
 * members `uuid`, `seq` and `historical` are ours.
 */
export function serializeEvents(
  events: readonly StoredEvent[],
  context: PageContext,
): { text: string; count: number } {
  const texts: string[] = [];
  let length = 0;
  for (const event of events) {
    if (length > textLengthMax) break;
    const text = serializeEvent(event, context);
    length += text.length;
    texts.push(text);
  }
  return { text: `[${texts.join(",")}]`, count: texts.length };
}

/** The members of `listedMembers`. A single template: a loop over the members takes twice as long. */
function serializeEvent(event: StoredEvent, { personTexts, groupTypeIndexes }: PageContext): string {
  const { uuid, distinct_id: distinctId, elements_chain: chain } = event;
  const person = personTexts.get(distinctId) ?? "null";
  const properties = withGroupColumns(event.properties, groupTypeIndexes);
  const elements = chain === "" ? "[]" : JSON.stringify(parseElementsChain(chain));
  return (
    `{"id":"${uuid}","uuid":"${uuid}","event":${JSON.stringify(event.event)},` +
    `"distinct_id":${JSON.stringify(distinctId)},"timestamp":"${isoFromMicros(event.timestamp)}",` +
    `"properties":${properties},"person":${person},"elements":${elements},` +
    `"elements_chain":${JSON.stringify(chain)},"seq":${event.seq},"historical":${event.historical}}`
  );
}

/**
 * Adds `$group_0`, `$group_1`, …: an event's groups by type index, in addition to `$groups`. Added on read, because the
 * index, which is permanent, is unknown when the event is stored. Source: contract, ingestion 14.2; decision 6.
 * @param properties JSON of the stored properties; members are appended
 * @param typeIndexes indexes of the project's group types by name
 */
export function withGroupColumns(properties: string, typeIndexes: ReadonlyMap<string, number>): string {
  if (typeIndexes.size === 0 || !properties.includes('"$groups"')) return properties;
  const parsed = parseExactJson(properties) as Record<string, unknown>;
  if (parsed.$process_person_profile === false) return properties;
  let members = "";
  for (const { type, key } of getGroups(parsed.$groups)) {
    const name = `$group_${typeIndexes.get(type)}`;
    if (!typeIndexes.has(type) || Object.hasOwn(parsed, name)) continue;
    members += `,"${name}":${JSON.stringify(key)}`;
  }
  const end = properties.lastIndexOf("}");
  return properties.slice(0, end) + members + properties.slice(end);
}
