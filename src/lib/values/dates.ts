/**
 * Dates in flag conditions and properties, as instants in milliseconds since 1970 (with fractions).
 *
 * Source: contract, flag-evaluation 12.2.
 */

import { toNumber } from "../json/exact.ts";
import type { Json } from "../json/value.ts";
import { instantOfWallTime, wallTimeAt } from "../time-zone.ts";
import { months } from "../timestamp.ts";

/** A parsed date: an instant, or a wall time in a zone that is applied later. Milliseconds since 1970. */
export type WrittenDate = { instant: number } | { wallTime: number };

/** Milliseconds of a calendar day and time; undefined for a day or time that does not exist. */
function getWallTime(
  year: number,
  month: number,
  day: number,
  hour = 0,
  minute = 0,
  second = 0,
  fraction = "",
): number | undefined {
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59) return undefined;
  const start = new Date(0).setUTCFullYear(year, month - 1, day);
  if (new Date(start).getUTCDate() !== day) return undefined;
  return (
    start +
    ((hour * 60 + minute) * 60 + second) * 1000 +
    (fraction === "" ? 0 : Number(`0.${fraction}`) * 1000)
  );
}

const formatOffset = /^([+-])(\d{2}):?(\d{2})?$/;

/** Milliseconds east of Greenwich of `Z`, `UTC`, `GMT`, `+01:00`, `-0700`; undefined for other text. */
function getOffsetMs(text: string): number | undefined {
  if (/^(?:z|utc|gmt)$/i.test(text)) return 0;
  const found = formatOffset.exec(text);
  if (found === null) return undefined;
  const minutes = Number(found[2]) * 60 + Number(found[3] ?? 0);
  if (Number(found[2]) > 23 || Number(found[3] ?? 0) > 59) return undefined;
  return (found[1] === "-" ? -minutes : minutes) * 60_000;
}

/* Relative dates such as `-7d`: a time span before now, on the wall clock of the team's time zone. */

export interface RelativeDate {
  amount: number;
  unit: "h" | "d" | "w" | "m" | "y";
}

const pattern = /^-?(\d+)([hdwmy])$/;
const amountEnd = 10_000;
const hourMs = 3_600_000;
const stepMs = { h: hourMs, d: 24 * hourMs, w: 7 * 24 * hourMs };

/** Parses `3d` or `-3d`, which are equivalent. Amounts of 10,000 and more are rejected, like upstream. */
export function parseRelativeDate(text: string): RelativeDate | undefined {
  const found = pattern.exec(text);
  if (found === null) return undefined;
  const amount = Number(found[1]);
  return amount < amountEnd ? { amount, unit: found[2] as RelativeDate["unit"] } : undefined;
}

/** The instant of a relative date, in milliseconds; undefined when the clock skipped that hour. */
export function instantBefore(now: number, date: RelativeDate, timezone: string): number | undefined {
  const wall = wallTimeAt(now, timezone);
  const earlier =
    date.unit === "m" || date.unit === "y"
      ? stepMonths(wall, date.amount, date.unit === "y" ? 12 : 1)
      : wall - date.amount * stepMs[date.unit];
  return instantOfWallTime(earlier, timezone);
}

/**
 * Steps back month by month and clamps the day to the length of each month: two months before 31 March is 29 January in
 * a leap year, because the intermediate date is 29 February.
 */
function stepMonths(wall: number, steps: number, monthsPerStep: number): number {
  const date = new Date(wall);
  let day = date.getUTCDate();
  let month = date.getUTCFullYear() * 12 + date.getUTCMonth();
  for (let i = 0; i < steps; i++) {
    month -= monthsPerStep;
    day = Math.min(day, daysIn(month));
  }
  const timeOfDay = wall - Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
  return dayStart(month, day) + timeOfDay;
}

/** @param month months since year 0, so that January 2024 is 2024 * 12. */
function daysIn(month: number): number {
  return new Date(dayStart(month + 1, 0)).getUTCDate();
}

function dayStart(month: number, day: number): number {
  // Date.UTC reads the years 0 to 99 as 1900 to 1999; setUTCFullYear does not.
  return new Date(0).setUTCFullYear(Math.floor(month / 12), ((month % 12) + 12) % 12, day);
}

/*
 * Dates as people and mail headers write them, in UTC without a zone: `Thu, 21 Mar 2024 10:00:00 GMT`, `21 March 2024`,
 * `Mar 21, 2024 5:30 pm`, `2024/3/21`, `2024.03.21`, `3/21/2024` (month first), `20240321T100000Z`, `2024-3-21`.
 * The contract leaves the grammar open (flag-evaluation 12.2 and 19).
 */

const monthName =
  "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\.?";
const weekday = "(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\\.?,?\\s+)?";
const rest = "(?:[,\\s]+(.*))?";

const forms: { pattern: RegExp; parts: (found: string[]) => [string, string, string] }[] = [
  {
    pattern: new RegExp(
      `^${weekday}(\\d{1,2})(?:st|nd|rd|th)?[\\s-]+${monthName},?[\\s-]+(\\d{4})${rest}$`,
      "i",
    ),
    parts: (f) => [f[3]!, monthNumber(f[2]!), f[1]!],
  },
  {
    pattern: new RegExp(`^${weekday}${monthName}\\s+(\\d{1,2})(?:st|nd|rd|th)?,?\\s+(\\d{4})${rest}$`, "i"),
    parts: (f) => [f[3]!, monthNumber(f[1]!), f[2]!],
  },
  {
    pattern: /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:[T\s]+(.*))?$/,
    parts: (f) => [f[1]!, f[3]!, f[4]!],
  },
  {
    pattern: /^(\d{1,2})\/(\d{1,2})\/(\d{4})(?:[,\s]+(.*))?$/,
    parts: (f) => [f[3]!, f[1]!, f[2]!],
  },
  {
    pattern: /^(\d{4})(\d{2})(\d{2})T(.*)$/,
    parts: (f) => [f[1]!, f[2]!, f[3]!],
  },
];

const time =
  /^(\d{1,2})(?::(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?(?:\s*([ap])\.?m\.?)?(?:\s*([a-z]{1,5}|[+-]\d{2}:?(?:\d{2})?))?$/i;
const compactTime = /^(\d{2})(\d{2})(\d{2})?()()(Z|[+-]\d{2}:?\d{2})?$/i;

// Zone names of mail headers; other names are rejected rather than guessed.
const mailZones: Record<string, string> = {
  est: "-05:00",
  edt: "-04:00",
  cst: "-06:00",
  cdt: "-05:00",
  mst: "-07:00",
  mdt: "-06:00",
  pst: "-08:00",
  pdt: "-07:00",
};

/** Parses a date in one of the forms above; undefined when none fits. */
function parseLenientDate(text: string): WrittenDate | undefined {
  for (const form of forms) {
    const found = form.pattern.exec(text);
    if (found === null) continue;
    const [year, month, day] = form.parts(found);
    return withTime(Number(year), Number(month), Number(day), found.at(-1) ?? "");
  }
  return undefined;
}

function withTime(year: number, month: number, day: number, timeText: string): WrittenDate | undefined {
  if (timeText === "") return inUtc(getWallTime(year, month, day), 0);
  const found = compactTime.exec(timeText) ?? time.exec(timeText);
  if (found === null) return undefined;
  const [, hourText, minute, second, fraction, half, zone] = found;
  const hour = hourOfDay(Number(hourText), half);
  // A bare number after a date is a time only with `am` or `pm`.
  if (hour === undefined || (minute === undefined && !half)) return undefined;
  const offset = zone ? getOffsetMs(mailZones[zone.toLowerCase()] ?? zone) : 0;
  const wall = getWallTime(year, month, day, hour, Number(minute ?? 0), Number(second ?? 0), fraction);
  return inUtc(wall, offset);
}

function inUtc(wallTime: number | undefined, offset: number | undefined): WrittenDate | undefined {
  return wallTime === undefined || offset === undefined ? undefined : { instant: wallTime - offset };
}

function hourOfDay(hour: number, half: string | undefined): number | undefined {
  if (!half) return hour;
  if (hour < 1 || hour > 12) return undefined;
  return (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);
}

function monthNumber(name: string): string {
  return String(months.indexOf(name.slice(0, 3).toLowerCase()) + 1);
}

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
