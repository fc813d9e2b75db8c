/** Filters on the properties of events, or of the persons they belong to, as SQL over an event `e` and its person `p`. */

import { AppError } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json.ts";
import { closely, type PropertyPlace } from "./property-sql.ts";

/** The query asks for something that is not known; the message says what. */
export class UnknownQuery extends AppError {
  readonly code = "invalid_query";
}

/** To be put behind `events e`: the person that the distinct id belongs to now, if any. */
export const personOfEvent = `
  LEFT JOIN person_distinct_id o ON o.project_id = e.project_id AND o.distinct_id = e.distinct_id
  LEFT JOIN person p ON p.project_id = o.project_id AND p.uuid = o.person_uuid`;

/** Whether a filter needs `personOfEvent`. */
export const isAboutPerson = (filter: JsonObject): boolean => filter.type === "person";

/** The condition of one filter `{key, value, operator, type}`. @throws {UnknownQuery} */
export function eventFilterSql(filter: JsonObject, events?: PropertyPlace): string {
  const column = propertyColumn(filter.type ?? "event", events);
  const sql = closely(column, filter);
  if (sql === undefined) {
    const operator = JSON.stringify(filter.operator ?? "exact");
    throw new UnknownQuery(`The operator ${operator} cannot be used here, or not with this value.`);
  }
  return `(${sql})`;
}

/** Where properties of a type are; those of events may have columns. @throws {UnknownQuery} */
export function propertyColumn(type: Json, events: PropertyPlace = "e.properties"): PropertyPlace {
  if (type === "event") return events;
  if (type === "person") return "p.properties";
  throw new UnknownQuery(`Properties of type ${JSON.stringify(type)} cannot be used here.`);
}
