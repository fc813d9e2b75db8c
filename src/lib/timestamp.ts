/**
 * Parses the time formats of clients to epoch microseconds (UTC).
 *
 * Pure. The common ISO 8601 form is parsed by hand, because every event has one; its other forms (basic, week and
 * ordinal dates, fractional hours), RFC 2822, the string of a JavaScript `Date` and Unix numbers are exceptions. Times
 * without a zone are UTC. Source: contract, ingestion 7.4; decision 22.
 */

const microsPerSecond = 1_000_000;
const secondsPerDay = 86_400;
/** Numbers below this are seconds (until the year 5138), others milliseconds. */
const unixSecondsBelow = 1e11;

/** 1990-01-01. Digits for an earlier time are a counter, a duration or a zero (contract, ingestion 7.4). */
const digitsEarliestMicros = 631_152_000_000_000;

/** 0000-01-01, and the first instant of the year 10000. */
const earliestMicros = -62_167_219_200_000_000;
const beyondLatestMicros = 253_402_300_800_000_000;

const zero = 48;
const plus = 43;
const comma = 44;
const minus = 45;
const dot = 46;
const slash = 47;
const colonByte = 58;

/** As in RFC 2822 and the string of a JavaScript `Date`, in lower case. */
export const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const monthLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Hours east of Greenwich of the zone names in RFC 2822. */
const zoneHours = new Map(
  Object.entries({
    ut: 0,
    utc: 0,
    gmt: 0,
    z: 0,
    est: -5,
    edt: -4,
    cst: -6,
    cdt: -5,
    mst: -7,
    mdt: -6,
    pst: -8,
    pdt: -7,
  }),
);

/**
 * Parses a time string.
 *
 * @returns epoch microseconds, with a fraction truncated to six digits; undefined when it is not a time.
 */
export function parseInstant(text: string): number | undefined {
  return parseIso(text) ?? parseSlow(text);
}

/**
 * Parses a number: eight digits that form a date are that date, others Unix seconds, or milliseconds from 1e11 on.
 *
 * @returns epoch microseconds; undefined for a time before 1990.
 */
export function parseNumericTime(value: number): number | undefined {
  if (!Number.isFinite(value)) return undefined;
  const day = isEightDigits(value) ? getDay(String(value)) : undefined;
  if (day !== undefined) return ofDigits(day * secondsPerDay * microsPerSecond);
  return ofDigits(Math.round(value * (Math.abs(value) < unixSecondsBelow ? microsPerSecond : 1_000)));
}

/** Whether a claim consists of only digits that are read as a date: a year, an ordinal date or a calendar date. */
export function isDateOfDigits(claim: unknown): boolean {
  return typeof claim === "string" ? dateOfDigits.test(claim.trim()) : isEightDigits(claim);
}

const dateOfDigits = /^(?:\d{4}|\d{7,8})$/;

function isEightDigits(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1e7 && (value as number) < 1e8;
}

function ofDigits(micros: number): number | undefined {
  return micros < digitsEarliestMicros ? undefined : micros;
}

/** Whether a time is in the years 0 to 9999, like all stored ones. */
export function isRepresentable(micros: number): boolean {
  return micros >= earliestMicros && micros < beyondLatestMicros;
}

/**
 * `2026-11-21`, optionally with `T` or a space and a time, a fraction, and `Z`, `+03`, `+0300`, `+03:00`, `UTC` or
 * `+0000 UTC`: Ruby, Go and data warehouses write the zone name.
 */
function parseIso(text: string): number | undefined {
  const year = digits2(text, 0) * 100 + digits2(text, 2);
  const month = digits2(text, 5);
  const day = digits2(text, 8);
  const separator = text.charCodeAt(4);
  if ((separator !== minus && separator !== slash) || text.charCodeAt(7) !== separator) return undefined;
  // NaN from a missing digit fails every comparison here.
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)))
    return undefined;
  const dayStart = daysSinceEpoch(year, month, day) * secondsPerDay;
  if (text.length === 10) return dayStart * microsPerSecond;

  const gap = text.charCodeAt(10) | 32;
  if (gap !== 116 && gap !== 32) return undefined;
  const hour = digits2(text, 11);
  const minute = digits2(text, 14);
  if (text.charCodeAt(13) !== colonByte) return undefined;
  let at = 16;
  let second = 0;
  let micros = 0;
  if (text.charCodeAt(at) === colonByte) {
    second = digits2(text, 17);
    at = 19;
    const mark = text.charCodeAt(at);
    if (mark === dot || mark === comma) {
      const firstDigit = ++at;
      let scale = microsPerSecond;
      for (; isDigit(text.charCodeAt(at)); at++) {
        if (scale > 1) {
          scale /= 10;
          micros += (text.charCodeAt(at) - zero) * scale;
        }
      }
      if (at === firstDigit) return undefined;
    }
  }
  if (!isTimeOfDay(hour, minute, second, micros)) return undefined;
  const zone = zoneMinutes(text, at);
  if (zone === undefined) return undefined;
  return (dayStart + hour * 3600 + (minute - zone) * 60 + second) * microsPerSecond + micros;
}

/** Minutes east of Greenwich of the offset from `at` to the end of the text; 0 without one. */
function zoneMinutes(text: string, at: number): number | undefined {
  const length = text.length;
  if (at === length) return 0;
  let code = text.charCodeAt(at);
  if ((code | 32) === 122) return at + 1 === length ? 0 : undefined;
  if (code === 32) code = text.charCodeAt(++at);
  if (code !== plus && code !== minus) {
    const hours = zoneHours.get(text.slice(at).toLowerCase());
    return hours === undefined ? undefined : hours * 60;
  }
  const hours = digits2(text, at + 1);
  const minutesAt = text.charCodeAt(at + 3) === colonByte ? at + 4 : at + 3;
  const minutes = minutesAt === length ? 0 : digits2(text, minutesAt);
  const end = minutesAt === length ? length : minutesAt + 2;
  if ((end !== length && !trailingZoneName.test(text.slice(end))) || !(hours <= 23 && minutes <= 59))
    return undefined;
  return (code === minus ? -1 : 1) * (hours * 60 + minutes);
}

/** Repeats the offset before it. */
const trailingZoneName = /^ [a-z]{1,5}$/i;
// `Sat, 21 Nov 2026 02:31:07 +0100`, the day name and the seconds optional.
const rfc2822 =
  /^(?:[a-z]{3},?\s+)?(\d{1,2})\s+([a-z]{3})[a-z]*\s+(\d{4})\s+(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([a-z]{1,3}|[+-]\d{2}:?\d{2}))?(?:\s*\(.*\))?$/i;
// `Sat Nov 21 2026 02:31:07 GMT+0100 (Central European Standard Time)`
const javascriptDate =
  /^[a-z]{3},?\s+([a-z]{3})\s+(\d{1,2})\s+(\d{4})\s+(\d{2}):(\d{2}):(\d{2})(?:\s*(?:GMT|UTC)?([+-]\d{2}:?\d{2})?)?(?:\s*\(.*\))?$/i;
// `Sat Nov 21 02:31:07 UTC 2026`: the format of C, Java and the `date` command.
const clockDate =
  /^[a-z]{3}\s+([a-z]{3})\s+(\d{1,2})\s+(\d{2}):(\d{2}):(\d{2})(?:\s+([a-z]{1,5}|[+-]\d{2}:?\d{2}))?\s+(\d{4})$/i;
// `2026-11-21T03:31:07+01:00[Europe/Berlin]`, as Java and JavaScript's Temporal write it (RFC 9557).
const annotated = /^(.*(?:z|[+-]\d{2}(?::?\d{2})?))(?:\[[^[\]]+\])+$/i;
const unix = /^[+-]?\d+(?:\.\d+)?$/;

function parseSlow(text: string): number | undefined {
  const trimmed = text.trim();
  // Bounds the work of the patterns.
  if (trimmed.length === 0 || trimmed.length > 100) return undefined;
  if (trimmed.length !== text.length) return parseInstant(trimmed);
  if (unix.test(text)) return parseDigits(text);
  const iso = parseOtherIso(text);
  if (iso !== undefined) return iso;
  const mail = rfc2822.exec(text);
  if (mail) {
    const [, day, month, year, hour, minute, second = "00", zone = ""] = mail;
    return fromParts(year!, month!, day!, hour!, minute!, second, zone);
  }
  const clock = clockDate.exec(text);
  if (clock) {
    const [, month, day, hour, minute, second, zone = "", year] = clock;
    return fromParts(year!, month!, day!, hour!, minute!, second!, zone);
  }
  const bare = annotated.exec(text);
  if (bare) return parseIso(bare[1]!);
  const date = javascriptDate.exec(text);
  if (date) {
    const [, month, day, year, hour, minute, second, zone = ""] = date;
    return fromParts(year!, month!, day!, hour!, minute!, second!, zone);
  }
  return undefined;
}

/** Four digits are a year and seven an ordinal date, never seconds of January 1970. */
function parseDigits(text: string): number | undefined {
  if (!yearOrOrdinal.test(text)) return parseNumericTime(Number(text));
  const day = getDay(text.length === 4 ? `${text}-01-01` : text);
  return day === undefined ? undefined : ofDigits(day * secondsPerDay * microsPerSecond);
}

const yearOrOrdinal = /^(?:\d{4}|\d{7})$/;
const gregorian = /^([+-]\d{6}|\d{4})(-?)(\d{2})\2(\d{2})$/;
const monthForm = /^(\d{4})-(\d{2})$/;
const ordinalForm = /^(\d{4})-?(\d{3})$/;
const weekForm = /^(\d{4})-?w(\d{2})(?:-?([1-7]))?$/i;
const timeForm =
  /^(\d{2})(?::?(\d{2})(?::?(\d{2}))?)?(?:[.,](\d{1,30}))?\s?(z|[+\u2212-]\d{2}(?::?\d{2})?)?$/i;

/**
 * Rare forms of ISO 8601: `20261121T0231`, `2026-W47-6`, `2026-325T02Z`, `2026-11`, `2026-11-21T02.5`, `+002026-11-21`.
 */
function parseOtherIso(text: string): number | undefined {
  const gap = text.search(/[t ]/i);
  const day = getDay(gap === -1 ? text : text.slice(0, gap));
  if (day === undefined) return undefined;
  const dayStart = day * secondsPerDay * microsPerSecond;
  if (gap === -1) return dayStart;
  const time = timeForm.exec(text.slice(gap + 1));
  if (time === null) return undefined;
  const [, hour, minute = "0", second = "0", fraction = "", zone = ""] = time;
  // The fraction applies to the smallest unit present.
  const unitSeconds = time[3] !== undefined ? 1 : time[2] !== undefined ? 60 : 3600;
  const unit = BigInt(unitSeconds * microsPerSecond);
  const micros = Number((BigInt(fraction || "0") * unit) / 10n ** BigInt(fraction.length));
  if (!isTimeOfDay(Number(hour), Number(minute), Number(second), micros)) return undefined;
  const east = zoneMinutes(zone.replace("\u2212", "-"), 0);
  if (east === undefined) return undefined;
  const seconds = Number(hour) * 3600 + (Number(minute) - east) * 60 + Number(second);
  return dayStart + seconds * microsPerSecond + micros;
}

/** Days from 1970-01-01 to a date in any form of ISO 8601. */
function getDay(text: string): number | undefined {
  const date = gregorian.exec(text);
  if (date) {
    const year = Number(date[1]);
    const month = Number(date[3]);
    const day = Number(date[4]);
    const isDate = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month);
    return isDate ? daysSinceEpoch(year, month, day) : undefined;
  }
  const month = monthForm.exec(text);
  if (month) return getDay(`${text}-01`);
  const ordinal = ordinalForm.exec(text);
  if (ordinal) {
    const year = Number(ordinal[1]);
    const day = Number(ordinal[2]);
    const first = daysSinceEpoch(year, 1, 1);
    return day >= 1 && first + day <= daysSinceEpoch(year + 1, 1, 1) ? first + day - 1 : undefined;
  }
  const week = weekForm.exec(text);
  if (!week) return undefined;
  const year = Number(week[1]);
  const number = Number(week[2]);
  const weekday = Number(week[3] ?? "1");
  const first = firstMonday(year);
  const monday = first + (number - 1) * 7;
  return number >= 1 && monday < firstMonday(year + 1) ? monday + weekday - 1 : undefined;
}

/** The Monday of week 1, the week that contains January 4, as days from 1970-01-01 (a Thursday). */
function firstMonday(year: number): number {
  const fourth = daysSinceEpoch(year, 1, 4);
  return fourth - ((((fourth + 3) % 7) + 7) % 7);
}

function fromParts(
  year: string,
  month: string,
  day: string,
  hour: string,
  minute: string,
  second: string,
  zone: string,
) {
  const monthNumber = months.indexOf(month.toLowerCase()) + 1;
  const two = (part: string | number) => String(part).padStart(2, "0");
  const local = parseIso(`${year}-${two(monthNumber)}-${two(day)}T${two(hour)}:${minute}:${second}`);
  if (local === undefined) return undefined;
  const minutes = zoneMinutes(zone, 0);
  return minutes === undefined ? undefined : local - minutes * 60 * microsPerSecond;
}

function isDigit(code: number): boolean {
  return code >= zero && code <= zero + 9;
}

/** The two digits at `at` as a number, NaN if they are not digits. */
function digits2(text: string, at: number): number {
  const tens = text.charCodeAt(at) - zero;
  const ones = text.charCodeAt(at + 1) - zero;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** A leap second counts as the first second of the next minute; `24:00:00` is the end of the day. */
function isTimeOfDay(hour: number, minute: number, second: number, micros: number): boolean {
  if (hour === 24) return minute === 0 && second === 0 && micros === 0;
  return hour <= 23 && minute <= 59 && second <= 60;
}

function daysInMonth(year: number, month: number): number {
  const isLeapFebruary = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return isLeapFebruary ? 29 : monthLengths[month - 1]!;
}

/** Days from 1970-01-01 in the Gregorian calendar, in years that begin in March so that leap days come last. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const monthFromMarch = month > 2 ? month - 3 : month + 9;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  const daysBeforeMonth = Math.floor((153 * monthFromMarch + 2) / 5);
  return marchYear * 365 + leapDays + daysBeforeMonth + day - 1 - 719_468;
}
