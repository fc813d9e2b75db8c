/** How often flags were asked for, by value and day: from the events that SDKs send when code asks for a flag. */

import { type EventSql, textAt } from "../dialect.ts";
import { foundEvents } from "./found-events.ts";
import { bucketsOf, rangeOf } from "./trend-range.ts";

export interface FlagCallsRequest {
  projectId: number;
  /** Keys of flags. */
  keys: string[];
  /** Today and the days before it. */
  days: number;
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
}

export interface FlagCalls {
  /** `2026-11-21`, the oldest first. */
  days: string[];
  flags: { key: string; value: string; counts: number[] }[];
}

/** Values of one flag that are told apart; the others are one. */
const valuesMax = 25;
const otherValues = "$other";

/** Counts the calls of flags; those that nobody asked for are left out. */
export async function countFlagCalls(
  store: EventSql,
  { projectId, keys, days, timezone, now }: FlagCallsRequest,
): Promise<FlagCalls> {
  const range = rangeOf({ date_from: `-${days - 1}d` }, "day", { now, timezone })!;
  const buckets = bucketsOf(range, "day");
  const { dialect } = store;
  const calls = foundEvents(dialect, { projectId, timezone, now }, range, {
    columns: [
      `${textAt(dialect, store.eventProperties, "$feature_flag")} AS flag`,
      `coalesce(${textAt(dialect, store.eventProperties, "$feature_flag_response")}, 'false') AS value`,
    ],
    conditions: ["e.event = '$feature_flag_called'"],
    reads: { who: false, person: false },
  });
  const rows = await store.rows(
    `WITH calls AS (
       ${calls}
     ), counted AS (
       SELECT flag, value, ${dialect.dayText("local_time")} AS day, count(*) AS amount FROM calls
       WHERE flag IN (${keys.map(dialect.text).join(", ") || "NULL"})
       GROUP BY ALL
     ), ranked AS (
       SELECT flag, value, row_number() OVER (PARTITION BY flag ORDER BY sum(amount) DESC, value) AS place
       FROM counted GROUP BY flag, value
     )
     SELECT c.flag AS flag, CASE WHEN r.place <= ${valuesMax} THEN c.value ELSE '${otherValues}' END AS shown, c.day AS day,
       sum(c.amount)::DOUBLE AS calls
     FROM counted c JOIN ranked r ON r.flag = c.flag AND r.value = c.value
     GROUP BY ALL ORDER BY ALL`,
  );
  const places = new Map(buckets.map(({ day }, place) => [day, place]));
  const found = new Map<string, FlagCalls["flags"][number]>();
  for (const [key, value, day, count] of rows as [string, string, string, number][]) {
    const name = JSON.stringify([key, value]);
    const series = found.get(name) ?? { key, value, counts: buckets.map(() => 0) };
    found.set(name, series);
    const place = places.get(day);
    if (place !== undefined) series.counts[place] = count;
  }
  return { days: buckets.map(({ day }) => day), flags: [...found.values()] };
}
