/** Writes a page of events as JSON text; the properties go out as the text that came in. */

import { isoFromMicros } from "../lib/time.ts";
import { parseElementsChain } from "./elements.ts";
import { withGroupColumns } from "./group-columns.ts";
import type { StoredEvent } from "./list.ts";

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

function eventText(event: StoredEvent, { personTexts, groupTypeIndexes }: PageContext): string {
  const person = personTexts.get(event.distinctId) ?? "null";
  const properties = withGroupColumns(event.properties, groupTypeIndexes);
  const elements =
    event.elementsChain === "" ? "[]" : JSON.stringify(parseElementsChain(event.elementsChain));
  return (
    `{"id":"${event.uuid}","uuid":"${event.uuid}","event":${JSON.stringify(event.event)},` +
    `"distinct_id":${JSON.stringify(event.distinctId)},"timestamp":"${isoFromMicros(event.timestampMicros)}",` +
    `"properties":${properties},"person":${person},"elements":${elements},` +
    `"elements_chain":${JSON.stringify(event.elementsChain)},"seq":${event.seq},"historical":${event.historical}}`
  );
}
