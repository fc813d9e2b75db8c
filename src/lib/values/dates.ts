/**
 * Dates in flag conditions and properties, as instants in milliseconds since 1970 (fractions kept).
 *
 * Source: contract, flag-evaluation 12.2.
 */

import type { Json } from "../json.ts";
import { instantOfWallTime } from "../time-zone.ts";
import { offsetMsOf, type WrittenDate, wallTimeOf } from "./calendar.ts";
import { parseLenientDate } from "./lenient-dates.ts";
import { numberOf } from "./numbers.ts";
import { instantBefore, parseRelativeDate } from "./relative-dates.ts";

/** What the caller knows about time; evaluation itself has no clock. */
export interface Clock {
  /** Milliseconds since 1970. */
  now: number;
  /** IANA name of the project's time zone. */
  timezone: string;
}

/** A date in a condition, read once when the flag is compiled. */
export type DateInFilter = (clock: Clock) => number | undefined;

const iso = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(.*))?$/;

/** No written date is longer; longer texts are not worth the patterns' time. */
const lengthMax = 100;

/** Reads an absolute date; undefined when no known form fits. */
export function parseDate(text: string): WrittenDate | undefined {
  if (text.length > lengthMax) return undefined;
  const trimmed = text.trim();
  const found = iso.exec(trimmed);
  return (found && isoDate(found)) ?? parseLenientDate(trimmed);
}

/** Reads the value of a date condition: relative, else absolute. Returns undefined for anything else than a date's text. */
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

/** The instant of a property: Unix seconds when it is a number or numeric text, else a date's text. */
export function instantOfProperty(value: Json, clock: Clock): number | undefined {
  const seconds = numberOf(value);
  if (seconds !== undefined) return Number.isFinite(seconds) ? seconds * 1000 : undefined;
  if (typeof value !== "string") return undefined;
  const date = parseDate(value);
  if (date === undefined) return undefined;
  return "instant" in date ? date.instant : instantOfWallTime(date.wallTime, clock.timezone);
}

function isoDate(found: RegExpExecArray): WrittenDate | undefined {
  const [, year, month, day, hour, minute, second, fraction, zone] = found;
  const wallTime = wallTimeOf(
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
  const offset = offsetMsOf(zone);
  return offset === undefined ? undefined : { instant: wallTime - offset };
}

/** Keeps the last answer: within one request, and mostly from request to request, the question stays the same. */
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
