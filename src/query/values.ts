/** Turns DuckDB's values into plain JSON: instants as ISO 8601 in UTC, JSON columns as what they hold. */

import type { DuckDBType, DuckDBValue } from "@duckdb/node-api";
import type { Json } from "../flags/json.ts";
import { isoFromMicros } from "../time.ts";

type Api = typeof import("@duckdb/node-api");

/**
 * The JSON of one value.
 *
 * Whole numbers beyond 2^53 become text, so that no digit is lost; NaN and infinities become null.
 */
export function jsonOf(api: Api, value: DuckDBValue, type?: DuckDBType): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return type?.alias === "JSON" ? parsed(value) : value;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (value instanceof api.DuckDBTimestampValue || value instanceof api.DuckDBTimestampTZValue) {
    return isFiniteMicros(value.micros) ? isoFromMicros(Number(value.micros)) : null;
  }
  if (value instanceof api.DuckDBDecimalValue) return value.toDouble();
  return nested(api, value, type) ?? String(value);
}

function nested(api: Api, value: DuckDBValue, type?: DuckDBType): Json | undefined {
  const inner = (type as { valueType?: DuckDBType } | undefined)?.valueType;
  if (value instanceof api.DuckDBListValue || value instanceof api.DuckDBArrayValue) {
    return value.items.map((item) => jsonOf(api, item, inner));
  }
  if (value instanceof api.DuckDBStructValue) {
    const types = type as { entryNames?: readonly string[]; entryTypes?: readonly DuckDBType[] } | undefined;
    return Object.fromEntries(
      Object.entries(value.entries).map(([name, item]) => [
        name,
        jsonOf(api, item, types?.entryTypes?.[types.entryNames?.indexOf(name) ?? -1]),
      ]),
    );
  }
  if (value instanceof api.DuckDBMapValue) {
    return Object.fromEntries(
      value.entries.map(({ key, value: item }) => [String(key), jsonOf(api, item, inner)]),
    );
  }
  return undefined;
}

/** Years beyond 0 to 9999 and infinities have no ISO form. */
function isFiniteMicros(micros: bigint): boolean {
  return micros > -62_167_219_200_000_001n && micros < 253_402_300_800_000_000n;
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
