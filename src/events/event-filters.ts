/** Filters on the properties of events, or of the persons they belong to, as SQL over an event `e` and its person `p`. */

import { AppError } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json.ts";
import type { EventSql, PropertyPlace } from "./dialect.ts";
import { closely } from "./property-sql.ts";

/** The query asks for something that is not known; the message says what. */
export class UnknownQuery extends AppError {
  readonly code = "invalid_query";
}

/** Whether a filter needs `Dialect.personOfEvent`. */
export const isAboutPerson = (filter: JsonObject): boolean => filter.type === "person";

/** The condition of one filter `{key, value, operator, type}`. @throws {UnknownQuery} */
export function eventFilterSql(store: EventSql, filter: JsonObject): string {
  const column = propertyColumn(store, filter.type ?? "event");
  const sql = closely(store.dialect, column, filter);
  if (sql === undefined) {
    const operator = JSON.stringify(filter.operator ?? "exact");
    throw new UnknownQuery(`The operator ${operator} cannot be used here, or not with this value.`);
  }
  return `(${sql})`;
}

/** Where properties of a type are. @throws {UnknownQuery} */
export function propertyColumn(store: EventSql, type: Json): PropertyPlace {
  if (type === "event") return store.eventProperties;
  if (type === "person") return "p.properties";
  throw new UnknownQuery(`Properties of type ${JSON.stringify(type)} cannot be used here.`);
}
