/** The range of a trend and its buckets, on the wall clock of the project. */

import type { JsonObject } from "../../lib/json.ts";
import { wallTimeAt } from "../../lib/time-zone.ts";

export const intervals = ["hour", "day", "week", "month"] as const;
export type Interval = (typeof intervals)[number];

export interface Range {
  /** Wall time, `2026-11-21 00:00:00`; from here on. */
  from: string;
  /** Wall time; up to here, without it. */
  to: string;
  /** The same as milliseconds; a day more or less than the instants, depending on the zone. */
  fromMs: number;
  toMs: number;
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
const dayMs = 24 * hourMs;
const bucketsMax = 20_000;
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/**
 * Works out `{date_from, date_to}`: relative (`-30d`, `-24h`, `mStart`) or written dates, `-7d` when absent.
 *
 * @param clock.earliest wall time at which `all` begins.
 * @returns undefined when it cannot be read, is empty or has too many buckets.
 */
export function rangeOf(
  { date_from: from, date_to: to }: JsonObject,
  interval: Interval,
  clock: { now: number; timezone: string; earliest?: number },
): Range | undefined {
  const nowMs = wallTimeAt(clock.now, clock.timezone);
  const fromMs = from === "all" ? clock.earliest : momentOf(from ?? "-7d", nowMs, "start");
  const toMs =
    to === undefined || to === null
      ? after(nowMs, interval === "hour" ? "hour" : "day")
      : momentOf(to, nowMs, "end");
  if (fromMs === undefined || toMs === undefined || fromMs >= toMs) return undefined;
  if ((toMs - fromMs) / (interval === "hour" ? hourMs : dayMs) > bucketsMax) return undefined;
  return { from: wallText(fromMs), to: wallText(toMs), fromMs, toMs };
}

/** The range of the same length that ends where this one begins. */
export function rangeBefore({ from, fromMs, toMs }: Range): Range {
  const beforeMs = fromMs - (toMs - fromMs);
  return { from: wallText(beforeMs), to: from, fromMs: beforeMs, toMs: fromMs };
}

/** Every bucket of a range, empty ones too. */
export function bucketsOf(range: Range, interval: Interval): Bucket[] {
  const buckets: Bucket[] = [];
  for (let at = startOf(range.fromMs, interval); at < range.toMs; at = after(at, interval)) {
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

/** `2026-11-21 05:06:07` */
function wallText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

function momentOf(written: unknown, nowMs: number, side: "start" | "end"): number | undefined {
  if (typeof written !== "string") return undefined;
  const relative = /^-?(\d{1,5})([hdwmqy])$/.exec(written);
  if (relative !== null) {
    const unit = relative[2] as Unit;
    const moment = before(nowMs, Number(relative[1]), unit);
    if (unit === "h") return side === "start" ? startOf(moment, "hour") : after(moment, "hour");
    return side === "start" ? startOf(moment, "day") : after(moment, "day");
  }
  const start = /^([dwmy])Start$/.exec(written);
  if (start !== null) {
    if (start[1] === "y") return Date.UTC(new Date(nowMs).getUTCFullYear(), 0);
    return startOf(nowMs, { d: "day", w: "week", m: "month" }[start[1] as "d"] as Interval);
  }
  if (/^\d{4}-\d{2}-\d{2}$/.test(written)) {
    const day = Date.parse(`${written}T00:00:00Z`);
    return Number.isNaN(day) ? undefined : side === "start" ? day : day + dayMs;
  }
  const moment = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z?$/.test(written)
    ? Date.parse(`${written.replace(" ", "T").replace(/Z$/, "")}Z`)
    : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment;
}

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

/** Start of the bucket that holds a wall time; weeks begin on Monday. */
function startOf(ms: number, interval: Interval): number {
  if (interval === "hour") return ms - (ms % hourMs);
  const day = ms - (((ms % dayMs) + dayMs) % dayMs);
  if (interval === "day") return day;
  const date = new Date(day);
  if (interval === "week") return day - ((date.getUTCDay() + 6) % 7) * dayMs;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** Start of the next bucket. */
function after(ms: number, interval: Interval): number {
  const start = startOf(ms, interval);
  if (interval === "hour") return start + hourMs;
  if (interval === "day") return start + dayMs;
  if (interval === "week") return start + 7 * dayMs;
  const date = new Date(start);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}
