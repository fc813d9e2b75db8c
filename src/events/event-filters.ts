/** Filters on properties of events or their persons, as SQL over an event `e` and its person `p`. */

import { AppError } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { closely } from "./property-sql.ts";
import type { PropertyLocation, PropertySql } from "./sql-dialect.ts";

/** The query has an unsupported part; the message names it. */
export class UnknownQueryError extends AppError {
  readonly code = "invalid_query";
}

/** The query cannot be answered; the message says why. */
export class QueryRejectedError extends AppError {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Whether a filter requires `SqlDialect.personOfEvent`. */
export const isAboutPerson = (filter: JsonObject): boolean => filter.type === "person";

/** The condition of a filter `{key, value, operator, type}`. @throws {UnknownQueryError} */
export function eventFilterSql(store: PropertySql, filter: JsonObject): string {
  const column = propertyColumn(store, filter.type ?? "event");
  const sql = closely(store.dialect, column, filter);
  if (sql === undefined) {
    const operator = JSON.stringify(filter.operator ?? "exact");
    throw new UnknownQueryError(`The operator ${operator} is not supported here, or not with this value.`);
  }
  return `(${sql})`;
}

/** The location of properties by type. @throws {UnknownQueryError} */
export function propertyColumn(store: PropertySql, type: Json): PropertyLocation {
  if (type === "event") return store.eventProperties;
  if (type === "person") return "p.properties";
  throw new UnknownQueryError(`Properties of type ${JSON.stringify(type)} are not supported here.`);
}
