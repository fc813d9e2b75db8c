/** Writes a page of events as JSON text; the properties go out as the text that came in. */

import { isoFromMicros } from "../time.ts";
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

/**
 * @returns a JSON array. Source: contract, sdk-compat 4.10; the members `uuid`, `seq` and `historical` are ours.
 */
export function eventsText(events: readonly StoredEvent[], context: PageContext): string {
  return `[${events.map((event) => eventText(event, context)).join(",")}]`;
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
