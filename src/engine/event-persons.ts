/** The persons of a page of events, as JSON text. */

import type { StoredEvent } from "../events/columns.ts";
import { isoFromMicros } from "../lib/time.ts";
import type { PeopleDb } from "../people/open.ts";
import { nameAmong, nameProperties, type PersonText } from "../people/person.ts";
import { propertiesWith } from "../people/property-lists.ts";
import { distinctIdsOf, personTextsByDistinctIds } from "../people/reader.ts";

/**
 * Finds who each event's distinct id belongs to now: after a merge all earlier events answer under the survivor.
 *
 * @returns JSON text by distinct id; ids without a person are left out.
 */
export function personTextsOf(
  people: PeopleDb,
  projectId: number,
  events: readonly StoredEvent[],
): Map<string, string> {
  const persons = personTextsByDistinctIds(
    people,
    projectId,
    events.map((event) => event.distinct_id),
  );
  const distinctIds = distinctIdsOf(people, [...persons.values()]);
  const texts = new Map<number, string>();
  const textOf = (person: PersonText) => {
    const text = texts.get(person.id) ?? personText(people, person, distinctIds.get(person.id) ?? []);
    texts.set(person.id, text);
    return text;
  };
  return new Map([...persons].map(([distinctId, person]) => [distinctId, textOf(person)]));
}

function personText(people: PeopleDb, person: PersonText, distinctIds: string[]): string {
  const { json, values } = propertiesWith(people.$client, person.storedProperties, nameProperties);
  const name = nameAmong(values) ?? person.mainDistinctId;
  return (
    `{"id":"${person.uuid}","uuid":"${person.uuid}","name":${JSON.stringify(name)},` +
    `"distinct_ids":${JSON.stringify(distinctIds)},"properties":${json},` +
    `"created_at":"${isoFromMicros(person.createdMicros)}","is_identified":${person.isIdentified}}`
  );
}
