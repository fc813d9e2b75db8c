/** Parses the time of a record strictly: a past event never gets a guessed or the current time. Pure. */

import { formatNumber } from "../../lib/json/exact.ts";
import type { Json } from "../../lib/json/value.ts";
import { microsPerDay } from "../../lib/time.ts";
import { isDateOfDigits, parseInstant, parseNumericTime } from "../../lib/timestamp.ts";
import type { Zone } from "./zone.ts";

/** Why a record has no time. */
export type TimeProblem =
  | "historical_event_without_timestamp"
  | "ignored_invalid_timestamp"
  | "timestamp_out_of_range";

/** 1990-01-01: small numbers that are not times would be earlier. */
const earliestMicros = 631_152_000_000_000;
/** Of dates, on either side of 1970. */
const dateMicrosMax = 8.64e18;
/** How far ahead of this computer's clock a number may be; beyond this it is not a time. */
const aheadMicrosMax = microsPerDay;

/** Ingestion warns about events that are further ahead. */
const clockSkewMicrosMax = 3_600_000_000;

/** The range of times that need no further check, epoch microseconds. */
export function plausibleTimes(nowMicros: number): readonly [earliest: number, latest: number] {
  return [earliestMicros, nowMicros + clockSkewMicrosMax];
}

const digitsForm = /^([+-]?)(\d{1,25})(?:\.(\d+))?$/;
/** Numbers below are seconds, milliseconds, microseconds; others nanoseconds. Each begins in 1973 at the latest. */
const secondsBelow = 10n ** 11n;
const millisecondsBelow = 10n ** 14n;
const microsecondsBelow = 10n ** 17n;
/** `20230102030405`: as a number of milliseconds it would be in the year 2611. */
const compactForm = /^((?:19|20)\d{6})(\d{6})$/;
/** Eight digits that may be a day. */
const dayForm = /^(\d{4})(\d\d)(\d\d)$/;
/** Databases write the zone as a word. */
const zoneWord = /\s(?:UTC|GMT)$/;
/** How DuckDB, and so the Parquet reader, writes the year 0. */
const yearZero = /^0001(-\d\d-\d\d) \(BC\) /;

/**
 * The time of a record, in epoch microseconds: a string (ISO 8601, mail or JavaScript date; UTC by default), or a
 * number whose size selects the unit, from seconds to nanoseconds. A date is accepted however long ago or far ahead, a
 * number only if the result is plausible. Source: contract, decisions 1 and 26.
 *
 * @param zone of strings without a zone; absent: UTC.
 * @param nowMicros undefined when any number is valid, because a store has accepted it already.
 */
export function toTime(
  value: Json | undefined,
  nowMicros: number | undefined,
  zone?: TimeZone,
): number | TimeProblem {
  const written = formatNumber(value) ?? value;
  if (written === undefined || written === null || written === "")
    return "historical_event_without_timestamp";
  const micros = toMicros(written);
  if (micros === undefined) return "ignored_invalid_timestamp";
  if (Math.abs(micros) > dateMicrosMax) return "timestamp_out_of_range";
  if (zone !== undefined && isLocal(written, micros, zone)) return zone.toInstant(micros);
  if (nowMicros === undefined || isDate(written)) return micros;
  const isInRange = micros >= earliestMicros && micros <= nowMicros + aheadMicrosMax;
  return isInRange ? micros : "timestamp_out_of_range";
}

/** A zone of local times. Source: contract, import 1.5 Z1. */
export interface TimeZone {
  toInstant: Zone;
  /** Whether plain numbers are local seconds too, as in older Mixpanel projects. */
  hasLocalNumbers: boolean;
}

function isLocal(written: Json, micros: number, zone: TimeZone): boolean {
  if (!isDate(written)) return zone.hasLocalNumbers;
  const text = String(written).trim();
  // Without a time of day, or with a compact one, there is no zone.
  if (!text.includes(":"))
    return !/[a-z]/i.test(text.replace(/[tw]/gi, "")) || parseInstant(`${text} UTC`) === micros;
  if (/:\d.*[+-]\d\d/.test(text)) return false;
  // After a zone another one is invalid.
  return parseInstant(`${text}Z`) === micros || parseInstant(`${text} UTC`) === micros;
}

/** Whether a valid time is written as a date, not as a plain number. */
function isDate(written: Json): boolean {
  if (typeof written !== "string" && typeof written !== "number") return false;
  const text = String(written).trim();
  if (typeof written === "string" && isDateOfDigits(text) && parseInstant(text) !== undefined) return true;
  if (Number.isNaN(Number(text)) || compactForm.test(text)) return true;
  const day = dayForm.exec(text);
  return day !== null && parseInstant(`${day[1]}-${day[2]}-${day[3]}`) !== undefined;
}

function toMicros(written: Json): number | undefined {
  if (typeof written === "number") {
    return Number.isInteger(written)
      ? toMicros(`${BigInt(written)}${written >= 1e7 && written < 1e8 ? "" : ".0"}`)
      : parseNumericTime(written);
  }
  if (typeof written !== "string") return undefined;
  const text = written.trim();
  const compact = compactForm.exec(text);
  if (compact !== null) return parseInstant(`${compact[1]}T${compact[2]}`);
  // A year, an ordinal date or a date.
  const dated = isDateOfDigits(text) ? parseInstant(text) : undefined;
  if (dated !== undefined) return dated;
  const digits = digitsForm.exec(text);
  // Eight digits may be a date.
  if (digits === null || text.length === 8) {
    const date = text.replace(yearZero, "0000$1 ");
    return parseInstant(date) ?? parseInstant(date.replace(zoneWord, "Z"));
  }
  const [, sign, whole, fraction = ""] = digits;
  const size = BigInt(whole!);
  const micros =
    size < secondsBelow
      ? size * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, "0"))
      : size < millisecondsBelow
        ? size * 1_000n + BigInt(fraction.slice(0, 3).padEnd(3, "0"))
        : size < microsecondsBelow
          ? size
          : size / 1_000n;
  return Number(sign === "-" ? -micros : micros);
}
