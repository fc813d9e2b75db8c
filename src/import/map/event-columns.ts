/** Records with the members of an event: other members become properties, so that flat tables can be loaded. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { limitedGroups } from "./event-draft.ts";
import { isPlaceholder } from "./identity.ts";
import { getId, getProperties, toJsonString, toObject } from "./lenient-json.ts";
import type { MappedEvent } from "./mapped.ts";
import { isEmpty } from "./members.ts";

const eventMembers = new Set([
  "uuid",
  "event",
  "distinct_id",
  "timestamp",
  "properties",
  "$set",
  "$set_once",
]);
/** Prefix of single properties in tables. */
const propertyColumn = "properties.";

export const isEventMember = (name: string) => eventMembers.has(name);

export interface EventColumns {
  event: JsonObject;
  omitted: string[];
}

/**
 * The event of a record.
 *
 * @param format    prefixes the names of columns that the property bag has with another value (contract, import L1).
 * @param isOmitted whether a member belongs to the source's store and not to the event.
 * @param more      properties that the source keeps in separate members; those of the property bag take precedence.
 */
export function eventFromColumns(
  format: string,
  record: JsonObject,
  isOmitted: (name: string) => boolean,
  more: readonly (readonly [string, Json])[] = [],
): EventColumns {
  const properties = getProperties(record.properties);
  const event: JsonObject = {};
  const others: [string, Json][] = [];
  const omitted: string[] = [];
  for (const [name, value] of Object.entries(record)) {
    if (eventMembers.has(name)) event[name] = value;
    else if (value === null) continue;
    else if (isOmitted(name)) {
      if (!isEmpty(value)) omitted.push(name);
    } else others.push([name.startsWith(propertyColumn) ? name.slice(propertyColumn.length) : name, value]);
  }
  event.properties = isJsonObject(properties)
    ? filledFrom([...more, ...withoutClashes(others, properties, format, omitted)], properties)
    : properties;
  // Flagkeep's own events may have any number of groups.
  if (format !== "flagkeep") limitGroups(event, omitted);
  for (const name of ["$set", "$set_once"])
    if (event[name] !== undefined) event[name] = toJsonString(event[name]);
  return { event, omitted };
}

function limitGroups(event: JsonObject, omitted: string[]): void {
  const { properties } = event;
  const limited = isJsonObject(properties) ? limitedGroups(properties.$groups) : undefined;
  if (limited === undefined) return;
  const others = limited.others.map(([type, key]): [string, Json] => [`$group_${type}`, key]);
  event.properties = { ...objectFrom(others), ...(properties as JsonObject), $groups: limited.groups };
  omitted.push(...limited.others.map(([type]) => `$groups.${type}`));
}

/** The property bag; the columns fill its gaps. */
function filledFrom(columns: readonly (readonly [string, Json])[], properties: JsonObject): JsonObject {
  if (columns.length === 0) return properties;
  const filled = new Map(columns);
  for (const [name, value] of Object.entries(properties))
    if (!isEmpty(value) || !filled.has(name)) filled.set(name, value);
  return objectFrom(filled);
}

/** Columns under names that do not have another value yet. */
function withoutClashes(
  columns: readonly [string, Json][],
  properties: JsonObject,
  format: string,
  omitted: string[],
): [string, Json][] {
  const isFree = (name: string, value: Json) =>
    !Object.hasOwn(properties, name) ||
    isEmpty(properties[name]) ||
    JSON.stringify(properties[name]) === JSON.stringify(value);
  return columns.flatMap(([name, value]): [string, Json][] => {
    if (isEmpty(value) || isFree(name, value)) return [[name, value]];
    const prefixed = `${format}_${name}`;
    if (isFree(prefixed, value)) return [[prefixed, value]];
    omitted.push(name);
    return [];
  });
}

/** The event with its identity: its UUID, else an insert ID, else its content (contract, import E1 and E2). */
export function identifiedEvent(
  record: JsonObject,
  event: JsonObject,
  uuid: string | undefined,
): MappedEvent {
  const { timestamp: _, ...others } = record;
  // Tables write properties as a string.
  const content = { ...others, properties: getProperties(record.properties) };
  const distinctId = getId(event.distinct_id);
  return {
    event,
    ...(distinctId !== undefined && isPlaceholder(distinctId) ? { hasPlaceholder: true } : {}),
    sourceId: uuid ?? getId(record.$insert_id ?? toObject(event.properties).$insert_id),
    ...(uuid === undefined ? {} : { isUuid: true }),
    source: { name: record.event, ids: [getId(record.distinct_id)], content },
  };
}
