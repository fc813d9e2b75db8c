/** Formats numbers, times and sizes for the page's language; times in the project's time zone. */

import { project } from "./session.ts";

const language = "en";
// Avoid "-0", for negative zero and for values rounded to it.
const digits = (maximumFractionDigits: number, more: Intl.NumberFormatOptions = {}) =>
  new Intl.NumberFormat(language, { maximumFractionDigits, signDisplay: "negative", ...more });
const whole = digits(0);
const short = digits(1, { notation: "compact" });
const fine = digits(2);
const languages = new Intl.DisplayNames(language, { type: "language" });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });

export const number = (value: number) => whole.format(value);
/** "1 person", "2 persons". */
export const counted = (count: number, one: string, many: string) =>
  `${number(count)} ${count === 1 ? one : many}`;
export const compact = (value: number) =>
  Math.abs(value) < 10_000 ? fine.format(value) : short.format(value);
export const decimal = (value: number) => fine.format(value);
export const percent = (share: number) => `${fine.format(Math.round(share * 1000) / 10)}%`;

const zones = new Map<string, Intl.DateTimeFormat>();
function inZone(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = zone + JSON.stringify(options);
  let found = zones.get(key);
  if (found === undefined) {
    found = new Intl.DateTimeFormat(language, { ...options, timeZone: zone });
    zones.set(key, found);
  }
  return found;
}

const zone = () => project.value?.timezone ?? "UTC";
const dayStyle = { day: "numeric", month: "short" } as const;
const timeStyle = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;

/** "14 Nov", with the year "14 Nov 2026": the only date format. */
function dayIn(timezone: string, at: string | number | Date, withYear: boolean): string {
  const parts = inZone(timezone, { ...dayStyle, year: "numeric" }).formatToParts(new Date(at));
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((part) => part.type === type)!.value;
  return `${part("day")} ${part("month")}${withYear ? ` ${part("year")}` : ""}`;
}
const timeIn = (timezone: string, at: string | number | Date) =>
  inZone(timezone, timeStyle).format(new Date(at));
const dateTimeIn = (timezone: string, at: string | number | Date) =>
  `${dayIn(timezone, at, true)}, ${timeIn(timezone, at)}`;

/** "14 Nov 2026, 16:02:05". */
export const dateTime = (at: string | number | Date) => dateTimeIn(zone(), at);
/** "14 Nov 2026". */
export const date = (at: string | number | Date) => dayIn(zone(), at, true);
/** "14 Nov 16:02:05", for lists of events. */
export const dayAndTime = (at: string | number | Date) => `${dayIn(zone(), at, false)} ${timeIn(zone(), at)}`;
/** "16:02", of a minute. */
export const timeOfDay = (at: string | number | Date) => timeIn(zone(), at).slice(0, 5);
/** "Today 16:02", "14 Nov 2026, 16:02". */
export function dayAndMinute(at: string | number | Date, now = Date.now()): string {
  const day = date(at);
  return day === date(now) ? `Today ${timeOfDay(at)}` : `${day}, ${timeOfDay(at)}`;
}
/** Labels of periods such as `2026-11-21` or `2026-11-21 05:00:00`, which are already in the project's time zone. */
export function periodNames(days: readonly string[]): string[] {
  const hasYears = days.some((day) => day.slice(0, 4) !== days[0]?.slice(0, 4));
  return days.map((day) => {
    const isHour = day.length > 10;
    const timestamp = `${day.replace(" ", "T")}${isHour ? "Z" : ""}`;
    return `${dayIn("UTC", timestamp, hasYears)}${isHour ? ` ${timeIn("UTC", timestamp).slice(0, 5)}` : ""}`;
  });
}

/** The same time in the reader's time zone, for a tooltip. */
export const elsewhere = (at: string | number | Date) =>
  `${dateTime(at)} ${zone()} · ${dateTimeIn(Intl.DateTimeFormat().resolvedOptions().timeZone, at)}`;

const agoSteps: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** "2 minutes ago". */
export function ago(at: string | number | Date, now = Date.now()): string {
  const seconds = (new Date(at).getTime() - now) / 1000;
  for (const [unit, length] of agoSteps) {
    if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
  }
  return Math.abs(seconds) < 5 ? "just now" : relative.format(Math.round(seconds), "second");
}

/** Seconds as "3 d 4 h", "2 min", "0.4 s". */
export function duration(seconds: number): string {
  if (seconds < 10) return `${fine.format(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 60) return `${whole.format(seconds)} s`;
  if (seconds < 3_600) return `${whole.format(Math.floor(seconds / 60))} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

const sizeUnits = ["B", "kB", "MB", "GB", "TB"];

/** A size in powers of 1000. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < sizeUnits.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 && unit > 0 ? fine.format(Math.round(value * 10) / 10) : whole.format(value)} ${sizeUnits[unit]}`;
}

const countryNames = new Intl.DisplayNames(language, { type: "region", fallback: "code" });
/** The name of an ISO 3166 code; other text as it is. */
export function countryName(code: string): string {
  try {
    return countryNames.of(code) ?? code;
  } catch {
    return code;
  }
}

/** One or two letters for an avatar: "AB" for "Ann Bell". */
export function initials(name: string): string {
  const [first = "", last = ""] = name.trim().split(/\s+/);
  const letters = last === "" ? [...first].slice(0, 2) : [[...first][0], [...last][0]];
  return letters.join("").toUpperCase();
}

/** A time of a SQL result, which is UTC without a suffix, in ISO format. */
export const toUtc = (time: string) =>
  /(Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time.replace(" ", "T")}Z`;

/** A value as one line of text. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "null";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Name and tag of a language: `German (de)`. */
export function languageName(tag: string): string {
  try {
    return `${languages.of(tag.replaceAll("_", "-"))} (${tag})`;
  } catch {
    return tag;
  }
}
