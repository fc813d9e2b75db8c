/**
 * Dates in flag conditions and properties, as instants in milliseconds since 1970 (with fractions).
 *
 * Source: contract, flag-evaluation 12.2.
 */

import type { Json } from "../json.ts";
import { instantOfWallTime } from "../time-zone.ts";
import { getOffsetMs, getWallTime, type WrittenDate } from "./calendar.ts";
import { parseLenientDate } from "./lenient-dates.ts";
import { toNumber } from "./numbers.ts";
import { instantBefore, parseRelativeDate } from "./relative-dates.ts";

/** The caller's current time and zone; evaluation itself has no clock. */
export interface Clock {
  /** Milliseconds since 1970. */
  now: number;
  /** IANA name of the project's time zone. */
  timezone: string;
}

/** A date in a condition, parsed once when the flag is compiled. */
export type DateInFilter = (clock: Clock) => number | undefined;

const iso = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(.*))?$/;

/** No date is longer; skips the patterns for longer texts. */
const lengthMax = 100;

/** Parses an absolute date; undefined when no known form fits. */
export function parseDate(text: string): WrittenDate | undefined {
  if (text.length > lengthMax) return undefined;
  const trimmed = text.trim();
  const found = iso.exec(trimmed);
  return (found && isoDate(found)) ?? parseLenientDate(trimmed);
}

/** Parses the value of a date condition: relative, else absolute. Undefined for anything that is not a date string. */
export function compileDate(value: Json | undefined): DateInFilter | undefined {
  if (typeof value !== "string") return undefined;
  const relative = parseRelativeDate(value);
  if (relative !== undefined) {
    return remembered((clock) => instantBefore(clock.now, relative, clock.timezone), true);
  }
  const date = parseDate(value);
  if (date === undefined) return undefined;
  if ("instant" in date) return () => date.instant;
  return remembered((clock) => instantOfWallTime(date.wallTime, clock.timezone), false);
}

/** The instant of a property: Unix seconds for a number or numeric string, else a date string. */
export function instantOfProperty(value: Json, clock: Clock): number | undefined {
  const seconds = toNumber(value);
  if (seconds !== undefined) return Number.isFinite(seconds) ? seconds * 1000 : undefined;
  if (typeof value !== "string") return undefined;
  const date = parseDate(value);
  if (date === undefined) return undefined;
  return "instant" in date ? date.instant : instantOfWallTime(date.wallTime, clock.timezone);
}

function isoDate(found: RegExpExecArray): WrittenDate | undefined {
  const [, year, month, day, hour, minute, second, fraction, zone] = found;
  const wallTime = getWallTime(
    Number(year),
    Number(month),
    Number(day),
    Number(hour ?? 0),
    Number(minute ?? 0),
    Number(second ?? 0),
    fraction,
  );
  if (wallTime === undefined) return undefined;
  if (zone === undefined || zone === "") return { wallTime };
  const offset = getOffsetMs(zone);
  return offset === undefined ? undefined : { instant: wallTime - offset };
}

/** Caches the last result: the clock is the same within a request, and mostly across requests. */
function remembered(compute: DateInFilter, dependsOnNow: boolean): DateInFilter {
  let known: { clock: Clock; answer: number | undefined } | undefined;
  return (clock) => {
    const isKnown =
      known !== undefined &&
      known.clock.timezone === clock.timezone &&
      (!dependsOnNow || known.clock.now === clock.now);
    if (!isKnown) known = { clock: { now: clock.now, timezone: clock.timezone }, answer: compute(clock) };
    return known?.answer;
  };
}
