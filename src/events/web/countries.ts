/** Countries of time zones, for visits without a country: an estimate. */

import type { SqlDialect } from "../sql-dialect.ts";
import zones from "./time-zone-countries.txt" with { type: "text" };

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
export const zonesOf = (country: string): readonly string[] => byCountry.get(country.toUpperCase()) ?? [];

/** A table of all zones (`name`) and their countries (`value`). */
export function zoneTable(dialect: SqlDialect): string {
  const pairs = [...byCountry].flatMap(([country, names]) =>
    names.map((name): [string, string] => [name, country]),
  );
  return dialect.pairs(pairs);
}
