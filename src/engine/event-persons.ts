/** The persons of a page of events, as JSON. */

import type { StoredEvent } from "../events/columns.ts";
import { isoFromMicros } from "../lib/time.ts";
import { nameAmong, nameProperties, type PersonJson } from "../persons/person.ts";
import type { PersonReader } from "../persons/person-reader.ts";

/**
 * Finds the current owner of each event's distinct ID: after a merge, earlier events belong to the surviving person.
 * @returns JSON by distinct ID; IDs without a person are omitted
 */
export async function getPersonJson(
  reader: PersonReader,
  projectId: number,
  events: readonly StoredEvent[],
): Promise<Map<string, string>> {
  const persons = await reader.personsByDistinctIds(
    projectId,
    events.map((event) => event.distinct_id),
  );
  const distinctIds = await reader.distinctIds([...persons.values()]);
  const texts = new Map<number, string>();
  const getText = (person: PersonJson) => {
    const text = texts.get(person.id) ?? personJson(person, distinctIds.get(person.id) ?? []);
    texts.set(person.id, text);
    return text;
  };
  return new Map([...persons].map(([distinctId, person]) => [distinctId, getText(person)]));
}

function personJson(person: PersonJson, distinctIds: string[]): string {
  const { json, values } = person.propertiesWith(nameProperties);
  const name = nameAmong(values) ?? person.mainDistinctId;
  return (
    `{"id":"${person.uuid}","uuid":"${person.uuid}","name":${JSON.stringify(name)},` +
    `"distinct_ids":${JSON.stringify(distinctIds)},"properties":${json},` +
    `"created_at":"${isoFromMicros(person.createdMicros)}","is_identified":${person.isIdentified}}`
  );
}
