/** Writes a page of events as JSON text; the properties go out as the text that came in. */

import { isoFromMicros } from "../time.ts";
import { parseElementsChain } from "./elements.ts";
import type { StoredEvent } from "./list.ts";

/**
 * @param personTexts JSON text of the person of each distinct id that has one.
 * @returns a JSON array. Source: contract, sdk-compat 4.10; the members `uuid`, `seq` and `historical` are ours.
 */
export function eventsText(events: readonly StoredEvent[], personTexts: ReadonlyMap<string, string>): string {
  return `[${events.map((event) => eventText(event, personTexts.get(event.distinctId) ?? "null")).join(",")}]`;
}

function eventText(event: StoredEvent, person: string): string {
  const elements =
    event.elementsChain === "" ? "[]" : JSON.stringify(parseElementsChain(event.elementsChain));
  return (
    `{"id":"${event.uuid}","uuid":"${event.uuid}","event":${JSON.stringify(event.event)},` +
    `"distinct_id":${JSON.stringify(event.distinctId)},"timestamp":"${isoFromMicros(event.timestampMicros)}",` +
    `"properties":${event.properties},"person":${person},"elements":${elements},` +
    `"elements_chain":${JSON.stringify(event.elementsChain)},"seq":${event.seq},"historical":${event.historical}}`
  );
}
