/** Serializes DuckDB's values as JSON: timestamps as ISO 8601, JSON columns as their contents. */

import type { DuckDBType, DuckDBValue } from "@duckdb/node-api";
import { isoFromMicros } from "../../lib/time.ts";
import { instantOfWallTime, wallTimeAt } from "../../lib/time-zone.ts";

type Api = typeof import("@duckdb/node-api");

/** Formats epoch microseconds: an instant, or a time without a zone. */
export type TimeFormat = (micros: number, isInstant: boolean) => string;

/** In UTC, which is also the zone of times without one. */
export const utcTimes: TimeFormat = (micros) => isoFromMicros(micros);

/**
 * Times of a zone's clock are in that zone. @param hasOffset the zone's own time with its offset, as PostHog returns it;
 * otherwise UTC
 */
export function zonedTimes(timezone: string, { hasOffset }: { hasOffset: boolean }): TimeFormat {
  if (timezone === "UTC") return utcTimes;
  return (micros, isInstant) => {
    const ms = Math.floor(micros / 1000);
    // A clock's time that was skipped is as far after the change as it seems.
    const instant = isInstant ? ms : (instantOfWallTime(ms, timezone) ?? 2 * ms - wallTimeAt(ms, timezone));
    const offsetMs = wallTimeAt(instant, timezone) - instant;
    const utcMicros = micros - (ms - instant) * 1000;
    if (!hasOffset) return isoFromMicros(utcMicros);
    return isoFromMicros(utcMicros + offsetMs * 1000).replace("Z", offsetName(offsetMs));
  };
}

/** `+05:30`. */
function offsetName(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const parts = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0"));
  return `${offsetMs < 0 ? "-" : "+"}${parts.join(":")}`;
}

/** Context that the form of values depends on. */
export interface ValueFormat {
  api: Api;
  times: TimeFormat;
}

/** The JSON of one value. Integers beyond 2^53 become strings to keep all digits; NaN and infinities become null. */
export function toJsonString(format: ValueFormat, value: DuckDBValue, type?: DuckDBType): string {
  const { api, times } = format;
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return type?.alias === "JSON" ? jsonColumn(value) : JSON.stringify(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? JSON.stringify(value) : "null";
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`;
  const isInstant = value instanceof api.DuckDBTimestampTZValue;
  if (isInstant || value instanceof api.DuckDBTimestampValue)
    return isFiniteMicros(value.micros) ? `"${times(Number(value.micros), isInstant)}"` : "null";
  if (value instanceof api.DuckDBDecimalValue) return JSON.stringify(value.toDouble());
  return nested(format, value, type) ?? JSON.stringify(String(value));
}

function nested(format: ValueFormat, value: DuckDBValue, type?: DuckDBType): string | undefined {
  const { api } = format;
  const inner = (type as { valueType?: DuckDBType } | undefined)?.valueType;
  if (value instanceof api.DuckDBListValue || value instanceof api.DuckDBArrayValue) {
    return `[${value.items.map((item) => toJsonString(format, item, inner)).join(",")}]`;
  }
  if (value instanceof api.DuckDBStructValue) {
    const types = type as { entryNames?: readonly string[]; entryTypes?: readonly DuckDBType[] } | undefined;
    return members(
      Object.entries(value.entries).map(([name, item]) => [
        name,
        toJsonString(format, item, types?.entryTypes?.[types.entryNames?.indexOf(name) ?? -1]),
      ]),
    );
  }
  if (value instanceof api.DuckDBMapValue) {
    return members(
      value.entries.map(({ key, value: item }) => [String(key), toJsonString(format, item, inner)]),
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
