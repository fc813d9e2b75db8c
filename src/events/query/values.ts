/** Serializes DuckDB's values as JSON: timestamps as ISO 8601 in UTC, JSON columns as their contents. */

import type { DuckDBType, DuckDBValue } from "@duckdb/node-api";
import { isoFromMicros } from "../../lib/time.ts";

type Api = typeof import("@duckdb/node-api");

/** The JSON of one value. Integers beyond 2^53 become strings to keep all digits; NaN and infinities become null. */
export function toJsonString(api: Api, value: DuckDBValue, type?: DuckDBType): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return type?.alias === "JSON" ? jsonColumn(value) : JSON.stringify(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? JSON.stringify(value) : "null";
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`;
  if (value instanceof api.DuckDBTimestampValue || value instanceof api.DuckDBTimestampTZValue) {
    return isFiniteMicros(value.micros) ? `"${isoFromMicros(Number(value.micros))}"` : "null";
  }
  if (value instanceof api.DuckDBDecimalValue) return JSON.stringify(value.toDouble());
  return nested(api, value, type) ?? JSON.stringify(String(value));
}

function nested(api: Api, value: DuckDBValue, type?: DuckDBType): string | undefined {
  const inner = (type as { valueType?: DuckDBType } | undefined)?.valueType;
  if (value instanceof api.DuckDBListValue || value instanceof api.DuckDBArrayValue) {
    return `[${value.items.map((item) => toJsonString(api, item, inner)).join(",")}]`;
  }
  if (value instanceof api.DuckDBStructValue) {
    const types = type as { entryNames?: readonly string[]; entryTypes?: readonly DuckDBType[] } | undefined;
    return members(
      Object.entries(value.entries).map(([name, item]) => [
        name,
        toJsonString(api, item, types?.entryTypes?.[types.entryNames?.indexOf(name) ?? -1]),
      ]),
    );
  }
  if (value instanceof api.DuckDBMapValue) {
    return members(
      value.entries.map(({ key, value: item }) => [String(key), toJsonString(api, item, inner)]),
    );
  }
  return undefined;
}

function members(entries: readonly (readonly [name: string, text: string])[]): string {
  return `{${entries.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

/** Years outside 0 to 9999 and infinities have no ISO form. */
function isFiniteMicros(micros: bigint): boolean {
  return micros > -62_167_219_200_000_001n && micros < 253_402_300_800_000_000n;
}

/** The contents as written: numbers keep all digits. */
function jsonColumn(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    // Too deeply nested for common parsers, or (only by a bug) invalid JSON.
    return JSON.stringify(text);
  }
}
