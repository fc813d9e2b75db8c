/** Date range and buckets of a trend, in the project's wall time. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { dayMs } from "../../lib/time.ts";
import { wallTimeAt } from "../../lib/time-zone.ts";
import { parseInstant } from "../../lib/timestamp.ts";
import type { Interval, WeekStartDay } from "../sql-dialect.ts";

/** Used if neither the project nor the query sets one (contract, management-api 6.3). */
export const weekStartDefault: WeekStartDay = 1;

/** Parameters of the computation. */
export interface RangeClock {
  /** Milliseconds since 1970. */
  now: number;
  /** IANA name. */
  timezone: string;
  /** `weekStartDefault` if absent or null. */
  weekStartDay?: WeekStartDay | null;
}

export interface Range {
  /** Wall time, `2026-11-21 00:00:00`; inclusive. */
  from: string;
  /** Wall time; exclusive. */
  to: string;
  /** Wall times as milliseconds: differ from instants by up to a day, depending on the zone. */
  fromMs: number;
  toMs: number;
  /** First day of its weeks. */
  weekStartDay: WeekStartDay;
}

export interface Bucket {
  /** As in SQL: `2026-11-21 00:00:00`. */
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
 * Parses `{date_from, date_to}`: relative (`-30d`, `-24h`, `mStart`, `-1mEnd`) or absolute dates, default `-7d`; times
 * without a zone are in the project's. @param interval null: without buckets
 * @param clock.earliest wall time at which `all` starts; with too many buckets, only the newest are used
 * @returns undefined if invalid, empty or, unless it is `all`, too many buckets
 */
export function getRange(
  { date_from: from, date_to: to }: JsonObject,
  interval: Interval | null,
  clock: RangeClock & { earliest?: number },
): Range | undefined {
  const { timezone } = clock;
  const weekStartDay = clock.weekStartDay ?? weekStartDefault;
  const nowMs = wallTimeAt(clock.now, timezone);
  const toMs = getEnd(to, interval, clock);
  if (toMs === undefined) return undefined;
  // If all events are later than the range, use its last bucket, which is empty.
  const earliest = Math.min(clock.earliest ?? toMs, getStart(toMs - 1, interval ?? "day", weekStartDay));
  const fromMs =
    from === "all" ? earliest : toTimestamp(from ?? "-7d", "start", { nowMs, timezone, weekStartDay });
  if (fromMs === undefined || fromMs >= toMs) return undefined;
  const range = { from: formatWallTime(fromMs), to: formatWallTime(toMs), fromMs, toMs, weekStartDay };
  if (interval === null) return range;
  const firstMs = bucketBefore(toMs, interval, bucketsMax, weekStartDay);
  if (fromMs >= firstMs) return range;
  // A single event of 1970 must not hide all others.
  return from === "all" ? { ...range, from: formatWallTime(firstMs), fromMs: firstMs } : undefined;
}

/**
 * The range of the last `count` buckets up to `date_to` (default: today), counted back from its end.
 * @returns undefined if the end is invalid
 */
export function lastBuckets(
  count: number,
  interval: Interval,
  { date_to: to }: JsonObject,
  clock: RangeClock,
): Range | undefined {
  const weekStartDay = clock.weekStartDay ?? weekStartDefault;
  const toMs = getEnd(to, interval, clock);
  if (toMs === undefined) return undefined;
  const fromMs = bucketBefore(toMs, interval, count, weekStartDay);
  return { from: formatWallTime(fromMs), to: formatWallTime(toMs), fromMs, toMs, weekStartDay };
}

/** The end of a range. */
function getEnd(
  to: Json | undefined,
  interval: Interval | null,
  { now, timezone, weekStartDay: own }: RangeClock,
): number | undefined {
  const weekStartDay = own ?? weekStartDefault;
  const nowMs = wallTimeAt(now, timezone);
  if (to === undefined || to === null) return after(nowMs, interval === "hour" ? "hour" : "day");
  return toTimestamp(to, "end", { nowMs, timezone, weekStartDay });
}

/** Start of the `count`th bucket from the end of a range. */
function bucketBefore(toMs: number, interval: Interval, count: number, weekStartDay: WeekStartDay): number {
  const last = getStart(toMs - 1, interval, weekStartDay);
  if (interval === "month") return monthStart(last, 1 - count);
  return last - (count - 1) * { hour: hourMs, day: dayMs, week: 7 * dayMs }[interval];
}

/**
 * The range of the same length before this one, or shifted back by an offset.
 * @param offset such as `-1y`; null, undefined or empty for the previous range
 * @returns undefined if the offset is invalid or not in the past
 */
export function comparedRange({ fromMs, toMs, weekStartDay }: Range, offset?: Json): Range | undefined {
  const lengthMs = toMs - fromMs;
  const hasOffset = offset !== undefined && offset !== null && offset !== "";
  const earlierMs = hasOffset ? earlierBy(fromMs, String(offset)) : fromMs - lengthMs;
  if (earlierMs === undefined) return undefined;
  const untilMs = earlierMs + lengthMs;
  return {
    from: formatWallTime(earlierMs),
    to: formatWallTime(untilMs),
    fromMs: earlierMs,
    toMs: untilMs,
    weekStartDay,
  };
}

/** The range up to another end. */
export function withEnd(range: Range, toMs: number): Range {
  return { ...range, to: formatWallTime(toMs), toMs };
}

function earlierBy(fromMs: number, offset: string): number | undefined {
  const [, count, unit] = /^-?(\d{1,5})([hdwmqy])$/.exec(offset) ?? [];
  const isEarlier = count !== undefined && Number(count) > 0;
  return isEarlier ? before(fromMs, Number(count), unit as Unit) : undefined;
}

/** All buckets of a range, including empty ones. */
export function getBuckets(range: Range, interval: Interval): Bucket[] {
  const buckets: Bucket[] = [];
  const { fromMs, toMs, weekStartDay } = range;
  const first = getStart(fromMs, interval, weekStartDay);
  for (let at = first; at < toMs; at = after(at, interval, weekStartDay)) {
    const bucket = formatWallTime(at);
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

/** The unit in which active users are counted. */
export const activeUnit = (interval: Interval): "hour" | "day" => (interval === "hour" ? "hour" : "day");

/** The last day, or hour if buckets are hours, of each bucket within the range; as in SQL. */
export function lastUnits(range: Range, interval: Interval): string[] {
  const units: string[] = [];
  const { fromMs, toMs, weekStartDay } = range;
  for (let at = getStart(fromMs, interval, weekStartDay); at < toMs; ) {
    at = after(at, interval, weekStartDay);
    units.push(formatWallTime(getStart(Math.min(at, toMs) - 1, activeUnit(interval))));
  }
  return units;
}

/** The last days of a range. */
export function lastDays(range: Range, days: number): Range {
  return startingAt(range, range.toMs - days * dayMs);
}

/** A range that starts so early that it has all `days` up to the end of its first bucket, and of itself. */
export function extendBack(range: Range, interval: Interval, days: number): Range {
  const { fromMs, toMs, weekStartDay } = range;
  const firstEnd = after(getStart(fromMs, interval, weekStartDay), interval, weekStartDay);
  const firstMs = getStart(Math.min(firstEnd, toMs) - days * dayMs, activeUnit(interval));
  return startingAt(range, Math.min(firstMs, toMs - days * dayMs));
}

const startingAt = (range: Range, fromMs: number): Range => ({
  ...range,
  from: formatWallTime(fromMs),
  fromMs,
});

const wallMin = Date.parse("0000-01-01T00:00:00Z");
const wallMax = Date.parse("9999-12-31T23:59:59Z");

/** `2026-11-21 05:06:07`; events have years 0 to 9999. */
function formatWallTime(ms: number): string {
  return new Date(Math.min(Math.max(ms, wallMin), wallMax)).toISOString().slice(0, 19).replace("T", " ");
}

function toTimestamp(
  written: unknown,
  side: "start" | "end",
  { nowMs, timezone, weekStartDay }: { nowMs: number; timezone: string; weekStartDay: WeekStartDay },
): number | undefined {
  if (typeof written !== "string") return undefined;
  const relative = /^(?:-?(\d{1,5}))?([hdwmqy])(Start|End)?$/.exec(written);
  if (relative !== null) {
    const [, count, unit, boundary] = relative as unknown as [string, string?, Unit?, string?];
    if (count === undefined && boundary === undefined) return undefined;
    const moment = before(nowMs, Number(count ?? 0), unit!);
    const part = unit === "h" ? "hour" : "day";
    if (boundary === "Start") return getPeriod(moment, unit!, weekStartDay).start;
    if (boundary === "End") {
      const { end } = getPeriod(moment, unit!, weekStartDay);
      return side === "start" ? getStart(end - 1, part) : end;
    }
    return side === "start" ? getStart(moment, part) : after(moment, part);
  }
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(written);
  if (!isDay && !/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/.test(written)) return undefined;
  const micros = parseInstant(written);
  if (micros === undefined) return undefined;
  const moment = Math.floor(micros / 1_000);
  if (isDay) return side === "start" ? moment : moment + dayMs;
  // Times without a zone are in the project's wall time.
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

/** Start of the bucket that contains a wall time. @param weekStartDay only used for weeks */
function getStart(ms: number, interval: Interval, weekStartDay = weekStartDefault): number {
  if (interval === "hour") return Math.floor(ms / hourMs) * hourMs;
  const day = Math.floor(ms / dayMs) * dayMs;
  if (interval === "day") return day;
  const date = new Date(day);
  if (interval === "week") return day - ((date.getUTCDay() + 7 - weekStartDay) % 7) * dayMs;
  return monthStart(day, 0);
}

/** Start of the month `months` after that of a timestamp. `Date.UTC` maps years below 100 to others. */
function monthStart(ms: number, months: number): number {
  const date = new Date(Math.floor(ms / dayMs) * dayMs);
  return date.setUTCMonth(date.getUTCMonth() + months, 1);
}

const getMonths: Partial<Record<Unit, number>> = { q: 3, y: 12 };

/** The hour, day, week, month, quarter or year that contains a wall time. */
function getPeriod(ms: number, unit: Unit, weekStartDay: WeekStartDay): { start: number; end: number } {
  const months = getMonths[unit];
  if (months === undefined) {
    const interval = ({ h: "hour", d: "day", w: "week", m: "month" } as const)[unit as "h"];
    return { start: getStart(ms, interval, weekStartDay), end: after(ms, interval, weekStartDay) };
  }
  const start = monthStart(ms, -(new Date(ms).getUTCMonth() % months));
  return { start, end: monthStart(start, months) };
}

/** Start of the next bucket. */
function after(ms: number, interval: Interval, weekStartDay = weekStartDefault): number {
  const start = getStart(ms, interval, weekStartDay);
  if (interval === "hour") return start + hourMs;
  if (interval === "day") return start + dayMs;
  if (interval === "week") return start + 7 * dayMs;
  return monthStart(start, 1);
}
