/** Writes a page of events as JSON text; the properties go out as the text that came in. */

import { parseExactJson } from "../lib/exact-json.ts";
import { isoFromMicros } from "../lib/time.ts";
import { groupsOf } from "../people/identity/operations.ts";
import type { StoredEvent } from "./columns.ts";
import { parseElementsChain } from "./elements.ts";

/** What a page shows besides the events themselves. */
export interface PageContext {
  /** JSON text of the person of each distinct id that has one. */
  personTexts: ReadonlyMap<string, string>;
  /** Numbers of the project's group types by name. */
  groupTypeIndexes: ReadonlyMap<string, number>;
}

/** What a page's text may be long, persons included, before its last events are left to the next page. */
const textLengthMax = 64 * 1024 * 1024;

/**
 * @returns a JSON array of the first events, one at least, and how many those are.
 *
 * Source: contract, sdk-compat 4.10; the members `uuid`, `seq` and `historical` are ours.
 */
export function eventsText(
  events: readonly StoredEvent[],
  context: PageContext,
): { text: string; count: number } {
  const texts: string[] = [];
  let length = 0;
  for (const event of events) {
    if (length > textLengthMax) break;
    const text = eventText(event, context);
    length += text.length;
    texts.push(text);
  }
  return { text: `[${texts.join(",")}]`, count: texts.length };
}

/** The members of `listedMembers`. One template: what is put together by a loop over them takes twice as long. */
function eventText(event: StoredEvent, { personTexts, groupTypeIndexes }: PageContext): string {
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
 * Adds `$group_0`, `$group_1`, …: an event's groups under the numbers of their types, beside `$groups`.
 *
 * Added where events are read: a type keeps its number for ever, and whoever stores the event does not know it yet.
 * Source: contract, ingestion 14.2; decision 6.
 *
 * @param properties JSON text of the stored properties; it is kept as it is, members are added at its end.
 * @param typeIndexes numbers of the project's group types by name.
 */
export function withGroupColumns(properties: string, typeIndexes: ReadonlyMap<string, number>): string {
  if (typeIndexes.size === 0 || !properties.includes('"$groups"')) return properties;
  const parsed = parseExactJson(properties) as Record<string, unknown>;
  if (parsed.$process_person_profile === false) return properties;
  let members = "";
  for (const { type, key } of groupsOf(parsed.$groups)) {
    const name = `$group_${typeIndexes.get(type)}`;
    if (!typeIndexes.has(type) || Object.hasOwn(parsed, name)) continue;
    members += `,"${name}":${JSON.stringify(key)}`;
  }
  const end = properties.lastIndexOf("}");
  return properties.slice(0, end) + members + properties.slice(end);
}
