/** Filters of web analytics queries. */

import type { JsonObject } from "../../lib/json/value.ts";
import { eventFilterSql, UnknownQueryError } from "../event-filters.ts";
import { closely } from "../property-sql.ts";
import { type EventSql, type PropertyLocation, type SqlDialect, stringAt } from "../sql-dialect.ts";
import zones from "./time-zone-countries.txt" with { type: "text" };
import {
  filteredProperty,
  pathSql,
  previousPathName,
  previousPathSql,
  sessionKeyNames,
  type VisitProperty,
} from "./visit-fields.ts";

/**
 * A condition on the event `e` and its person `p`. Paths and countries are compared as tables show them.
 * @throws {UnknownQueryError}
 */
export function webFilterSql(store: EventSql, filter: JsonObject): string {
  const { eventProperties } = store;
  if ((filter.type ?? "event") !== "event") return eventFilterSql(store, filter);
  const shown: Record<string, () => string> = {
    $pathname: () => pathSql(store),
    [previousPathName]: () => previousPathSql(store),
    $geoip_country_code: () => countryAmong(store, filter),
  };
  const { key } = filter;
  const own = typeof key === "string" && Object.hasOwn(shown, key) ? shown[key] : undefined;
  if (own === undefined || isPresenceTest(filter)) return eventFilterSql(store, filter);
  const location: PropertyLocation = {
    json: typeof eventProperties === "string" ? eventProperties : eventProperties.json,
    findColumn: own,
  };
  return eventFilterSql({ ...store, eventProperties: location }, filter);
}

/** The country of an event; estimated from its time zone for the countries in the filter. */
function countryAmong({ dialect, eventProperties }: EventSql, { value }: JsonObject): string {
  const wanted = (Array.isArray(value) ? value : [value]).filter((item) => typeof item === "string");
  const zone = stringAt(dialect, eventProperties, "$timezone");
  const cases = wanted.flatMap((country) => {
    const zones = getZones(country).map(dialect.text);
    return zones.length === 0 ? [] : [`WHEN ${zone} IN (${zones.join(", ")}) THEN ${dialect.text(country)}`];
  });
  const sent = stringAt(dialect, eventProperties, "$geoip_country_code");
  return cases.length === 0 ? sent : `coalesce(nullif(${sent}, ''), CASE ${cases.join(" ")} END)`;
}

const isPresenceTest = ({ operator }: JsonObject) => operator === "is_set" || operator === "is_not_set";

/** The visit property that a filter tests. @throws {UnknownQueryError} */
export function propertyOfFilter(filter: JsonObject): VisitProperty {
  const found = filteredProperty(filter);
  if (found !== undefined) return found;
  throw new UnknownQueryError(
    `The session property ${JSON.stringify(filter.key ?? null)} is not supported. Use ${sessionKeyNames.join(", ")}.`,
  );
}

/** A condition on a visit `e`. @throws {UnknownQueryError} */
export function visitFilterSql({ dialect }: EventSql, filter: JsonObject): string {
  const value = propertyOfFilter(filter).sql(dialect);
  if (isPresenceTest(filter)) return `${value} IS ${filter.operator === "is_set" ? "NOT NULL" : "NULL"}`;
  const sql = closely(dialect, { json: dialect.text("{}"), findColumn: () => `(${value})` }, filter);
  if (sql !== undefined) return `(${sql})`;
  const operator = JSON.stringify(filter.operator ?? "exact");
  throw new UnknownQueryError(`The operator ${operator} is not supported here, or not with this value.`);
}

/** One line per country: its code and its zones, with former names. */
const byCountry = new Map(
  zones
    .trim()
    .split("\n")
    .map((line) => {
      const [country, ...names] = line.split(" ");
      return [country!, names] as const;
    }),
);

/** The zones of a country, by its two-letter code; empty if unknown. */
const getZones = (country: string): readonly string[] => byCountry.get(country.toUpperCase()) ?? [];

/** A table of all zones (`name`) and their countries (`value`). */
export function zoneTable(dialect: SqlDialect): string {
  const pairs = [...byCountry].flatMap(([country, names]) =>
    names.map((name): [string, string] => [name, country]),
  );
  return dialect.pairs(pairs);
}
