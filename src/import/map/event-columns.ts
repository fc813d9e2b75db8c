/** A record whose members are those of an event: its other members are properties, so that flat tables can be loaded. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import { idOf, jsonText, objectOf, propertiesOf } from "./loose-json.ts";
import type { MappedEvent } from "./mapped.ts";
import { isEmpty } from "./members.ts";

const eventMembers = new Set([
  ...["uuid", "event", "distinct_id", "timestamp", "properties", "$set", "$set_once", "offset"],
]);
/** How tables name single properties. */
const propertyColumn = "properties.";

export const isEventMember = (name: string) => eventMembers.has(name);

export interface EventColumns {
  event: JsonObject;
  notTaken: string[];
}

/**
 * The event of a record.
 *
 * @param isOmitted whether a member belongs to the source's store and not to the event.
 * @param more      properties that the source keeps in members of its own; those of the property bag win.
 */
export function eventFromColumns(
  record: JsonObject,
  isOmitted: (name: string) => boolean,
  more: readonly (readonly [string, Json])[] = [],
): EventColumns {
  const properties = propertiesOf(record.properties);
  const event: JsonObject = {};
  const others: (readonly [string, Json])[] = [...more];
  const notTaken: string[] = [];
  for (const [name, value] of Object.entries(record)) {
    if (eventMembers.has(name)) event[name] = value;
    else if (value === null) continue;
    else if (isOmitted(name)) {
      if (!isEmpty(value)) notTaken.push(name);
    } else others.push([name.startsWith(propertyColumn) ? name.slice(propertyColumn.length) : name, value]);
  }
  event.properties = isJsonObject(properties) ? { ...objectFrom(others), ...properties } : properties;
  for (const name of ["$set", "$set_once"])
    if (event[name] !== undefined) event[name] = jsonText(event[name]);
  return { event, notTaken };
}

/** The event with what identifies it: its uuid, else an insert id, else its content (contract, import E1 and E2). */
export function identifiedEvent(
  record: JsonObject,
  event: JsonObject,
  uuid: string | undefined,
): MappedEvent {
  const { timestamp: _, ...others } = record;
  // A table has properties as text.
  const content = { ...others, properties: propertiesOf(record.properties) };
  return {
    event,
    sourceId: uuid ?? idOf(record.$insert_id ?? objectOf(event.properties).$insert_id),
    ...(uuid === undefined ? {} : { isUuid: true }),
    source: { name: record.event, ids: [idOf(record.distinct_id)], content },
  };
}
