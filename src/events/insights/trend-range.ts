/** The range of a trend and its buckets, on the wall clock of the project. */

import type { Json, JsonObject } from "../../lib/json.ts";
import { dayMs } from "../../lib/time.ts";
import { wallTimeAt } from "../../lib/time-zone.ts";
import { parseInstant } from "../../lib/timestamp.ts";

export const intervals = ["hour", "day", "week", "month"] as const;
export type Interval = (typeof intervals)[number];

/** The days on which weeks can start, by PostHog's numbers: Sunday and Monday. */
export const weekStartDays = [0, 1] as const;
export type WeekStartDay = (typeof weekStartDays)[number];
/** Where neither the project nor the query names one (contract, management-api 6.3). */
export const weekStartDefault: WeekStartDay = 1;

/** What a range is computed with. */
interface RangeClock {
  /** Milliseconds since 1970. */
  now: number;
  /** IANA name. */
  timezone: string;
  /** `weekStartDefault` when absent or null. */
  weekStartDay?: WeekStartDay | null;
}

export interface Range {
  /** Wall time, `2026-11-21 00:00:00`; from here on. */
  from: string;
  /** Wall time; up to here, without it. */
  to: string;
  /** The same as milliseconds; a day more or less than the instants, depending on the zone. */
  fromMs: number;
  toMs: number;
  /** Where its weeks start. */
  weekStartDay: WeekStartDay;
}

export interface Bucket {
  /** As SQL writes it: `2026-11-21 00:00:00`. */
  bucket: string;
  /** `2026-11-21`, for hours `2026-11-21 05:00:00`. */
  day: string;
  /** `21-Nov-2026`, for hours `21-Nov-2026 05:00`. */
  label: string;
}

const hourMs = 3_600_000;
const bucketsMax = 20_000;
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/**
 * Works out `{date_from, date_to}`: relative (`-30d`, `-24h`, `mStart`, `-1mEnd`) or written dates, `-7d` when absent;
 * a written time is the project's unless it names a zone.
 *
 * @param interval       null: without buckets.
 * @param clock.earliest wall time at which `all` begins; of more buckets than there may be, it is the newest.
 * @returns undefined when it cannot be read, is empty or, unless it is `all`, has too many buckets.
 */
export function rangeOf(
  { date_from: from, date_to: to }: JsonObject,
  interval: Interval | null,
  clock: RangeClock & { earliest?: number },
): Range | undefined {
  const { timezone } = clock;
  const weekStartDay = clock.weekStartDay ?? weekStartDefault;
  const nowMs = wallTimeAt(clock.now, timezone);
  const toMs = endOf(to, interval, clock);
  if (toMs === undefined) return undefined;
  // Events may all be later than the range; then it is its last bucket, without any.
  const earliest = Math.min(clock.earliest ?? toMs, startOf(toMs - 1, interval ?? "day", weekStartDay));
  const fromMs =
    from === "all" ? earliest : momentOf(from ?? "-7d", "start", { nowMs, timezone, weekStartDay });
  if (fromMs === undefined || fromMs >= toMs) return undefined;
  const range = { from: wallText(fromMs), to: wallText(toMs), fromMs, toMs, weekStartDay };
  if (interval === null) return range;
  const firstMs = bucketBefore(toMs, interval, bucketsMax, weekStartDay);
  if (fromMs >= firstMs) return range;
  // One event with the clock of 1970 must not hide all others.
  return from === "all" ? { ...range, from: wallText(firstMs), fromMs: firstMs } : undefined;
}

/**
 * The range of the last `count` buckets up to `date_to`, today when absent: where the number of periods is asked for, they
 * are counted back from its end.
 *
 * @returns undefined when the end cannot be read.
 */
export function lastBuckets(
  count: number,
  interval: Interval,
  { date_to: to }: JsonObject,
  clock: RangeClock,
): Range | undefined {
  const weekStartDay = clock.weekStartDay ?? weekStartDefault;
  const toMs = endOf(to, interval, clock);
  if (toMs === undefined) return undefined;
  const fromMs = bucketBefore(toMs, interval, count, weekStartDay);
  return { from: wallText(fromMs), to: wallText(toMs), fromMs, toMs, weekStartDay };
}

/** Where a range ends. */
function endOf(
  to: Json | undefined,
  interval: Interval | null,
  { now, timezone, weekStartDay: own }: RangeClock,
): number | undefined {
  const weekStartDay = own ?? weekStartDefault;
  const nowMs = wallTimeAt(now, timezone);
  if (to === undefined || to === null) return after(nowMs, interval === "hour" ? "hour" : "day");
  return momentOf(to, "end", { nowMs, timezone, weekStartDay });
}

/** Start of the bucket that is the `count`th from the end of a range. */
function bucketBefore(toMs: number, interval: Interval, count: number, weekStartDay: WeekStartDay): number {
  const last = startOf(toMs - 1, interval, weekStartDay);
  if (interval === "month") return monthStart(last, 1 - count);
  return last - (count - 1) * { hour: hourMs, day: dayMs, week: 7 * dayMs }[interval];
}

/**
 * The range of the same length that ends where this one begins, or that begins earlier by an offset.
 *
 * @param offset such as `-1y`; without one: null, undefined or empty.
 * @returns undefined when it is no offset, or none into the past.
 */
export function comparedRange({ fromMs, toMs, weekStartDay }: Range, offset?: Json): Range | undefined {
  const lengthMs = toMs - fromMs;
  const hasOffset = offset !== undefined && offset !== null && offset !== "";
  const earlierMs = hasOffset ? earlierBy(fromMs, String(offset)) : fromMs - lengthMs;
  if (earlierMs === undefined) return undefined;
  const untilMs = earlierMs + lengthMs;
  return { from: wallText(earlierMs), to: wallText(untilMs), fromMs: earlierMs, toMs: untilMs, weekStartDay };
}

function earlierBy(fromMs: number, offset: string): number | undefined {
  const [, count, unit] = /^-?(\d{1,5})([hdwmqy])$/.exec(offset) ?? [];
  const isEarlier = count !== undefined && Number(count) > 0;
  return isEarlier ? before(fromMs, Number(count), unit as Unit) : undefined;
}

/** Every bucket of a range, empty ones too. */
export function bucketsOf(range: Range, interval: Interval): Bucket[] {
  const buckets: Bucket[] = [];
  const { fromMs, toMs, weekStartDay } = range;
  const first = startOf(fromMs, interval, weekStartDay);
  for (let at = first; at < toMs; at = after(at, interval, weekStartDay)) {
    const bucket = wallText(at);
    const date = new Date(at);
    const label = `${date.getUTCDate()}-${months[date.getUTCMonth()]}-${date.getUTCFullYear()}`;
    const isHour = interval === "hour";
    buckets.push({
      bucket,
      day: isHour ? bucket : bucket.slice(0, 10),
      label: isHour ? `${label} ${bucket.slice(11, 16)}` : label,
    });
  }
  return buckets;
}

const [wallMin, wallMax] = [Date.parse("0000-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59Z")];

/** `2026-11-21 05:06:07`; no event is of a year before 0 or after 9999. */
function wallText(ms: number): string {
  return new Date(Math.min(Math.max(ms, wallMin), wallMax)).toISOString().slice(0, 19).replace("T", " ");
}

function momentOf(
  written: unknown,
  side: "start" | "end",
  { nowMs, timezone, weekStartDay }: { nowMs: number; timezone: string; weekStartDay: WeekStartDay },
): number | undefined {
  if (typeof written !== "string") return undefined;
  const relative = /^(?:-?(\d{1,5}))?([hdwmqy])(Start|End)?$/.exec(written);
  if (relative !== null) {
    const [, count, unit, place] = relative as unknown as [string, string?, Unit?, string?];
    if (count === undefined && place === undefined) return undefined;
    const moment = before(nowMs, Number(count ?? 0), unit!);
    const part = unit === "h" ? "hour" : "day";
    if (place === "Start") return periodOf(moment, unit!, weekStartDay).start;
    if (place === "End") {
      const { end } = periodOf(moment, unit!, weekStartDay);
      return side === "start" ? startOf(end - 1, part) : end;
    }
    return side === "start" ? startOf(moment, part) : after(moment, part);
  }
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(written);
  if (!isDay && !/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/.test(written)) return undefined;
  const micros = parseInstant(written);
  if (micros === undefined) return undefined;
  const moment = Math.floor(micros / 1_000);
  if (isDay) return side === "start" ? moment : moment + dayMs;
  // What names no zone is what the project's clock shows.
  return hasZone.test(written.slice(minutesEnd)) ? wallTimeAt(moment, timezone) : moment;
}

const hasZone = /(?:z|[+-]\d{2}(?::?\d{2})?)$/i;
const minutesEnd = "2026-11-21T05:06".length;

type Unit = "h" | "d" | "w" | "m" | "q" | "y";

function before(nowMs: number, count: number, unit: Unit): number {
  if (unit === "h") return nowMs - count * hourMs;
  if (unit === "d" || unit === "w") return nowMs - count * (unit === "d" ? 1 : 7) * dayMs;
  const date = new Date(nowMs);
  const monthCount = count * { m: 1, q: 3, y: 12 }[unit];
  const lastDay = new Date(
    Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - monthCount + 1, 0),
  ).getUTCDate();
  date.setUTCMonth(date.getUTCMonth() - monthCount, Math.min(date.getUTCDate(), lastDay));
  return date.getTime();
}

/** Start of the bucket that contains a wall time. @param weekStartDay matters for weeks only. */
function startOf(ms: number, interval: Interval, weekStartDay = weekStartDefault): number {
  if (interval === "hour") return Math.floor(ms / hourMs) * hourMs;
  const day = Math.floor(ms / dayMs) * dayMs;
  if (interval === "day") return day;
  const date = new Date(day);
  if (interval === "week") return day - ((date.getUTCDay() + 7 - weekStartDay) % 7) * dayMs;
  return monthStart(day, 0);
}

/** Start of the month that is so many behind that of a moment; `Date.UTC` takes years below 100 for others. */
function monthStart(ms: number, months: number): number {
  const date = new Date(Math.floor(ms / dayMs) * dayMs);
  return date.setUTCMonth(date.getUTCMonth() + months, 1);
}

const monthsOf: Partial<Record<Unit, number>> = { q: 3, y: 12 };

/** The hour, day, week, month, quarter or year that holds a wall time. */
function periodOf(ms: number, unit: Unit, weekStartDay: WeekStartDay): { start: number; end: number } {
  const months = monthsOf[unit];
  if (months === undefined) {
    const interval = ({ h: "hour", d: "day", w: "week", m: "month" } as const)[unit as "h"];
    return { start: startOf(ms, interval, weekStartDay), end: after(ms, interval, weekStartDay) };
  }
  const start = monthStart(ms, -(new Date(ms).getUTCMonth() % months));
  return { start, end: monthStart(start, months) };
}

/** Start of the next bucket. */
function after(ms: number, interval: Interval, weekStartDay = weekStartDefault): number {
  const start = startOf(ms, interval, weekStartDay);
  if (interval === "hour") return start + hourMs;
  if (interval === "day") return start + dayMs;
  if (interval === "week") return start + 7 * dayMs;
  return monthStart(start, 1);
}
