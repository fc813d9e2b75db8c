/** Number of flag evaluations by value and day, from events that SDKs send when a flag is evaluated. */

import { type EventSql, stringAt } from "../sql-dialect.ts";
import { eventSource } from "./event-source.ts";
import { getBuckets, getRange } from "./trend-range.ts";

export interface FlagCallsRequest {
  projectId: number;
  /** Keys of flags. */
  keys: string[];
  /** Number of days, including today. */
  days: number;
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
}

export interface FlagCalls {
  /** `2026-11-21`, oldest first. */
  days: string[];
  flags: { key: string; value: string; counts: number[] }[];
}

/** Maximum values per flag; the rest is combined. */
const valuesMax = 25;
const otherValues = "$other";

/** Counts flag calls; flags without calls are omitted. */
export async function countFlagCalls(
  store: EventSql,
  { projectId, keys, days, timezone, now }: FlagCallsRequest,
): Promise<FlagCalls> {
  const range = getRange({ date_from: `-${days - 1}d` }, "day", { now, timezone })!;
  const buckets = getBuckets(range, "day");
  const { dialect } = store;
  const calls = eventSource(dialect, { projectId, timezone, now }, range, {
    columns: [
      `${stringAt(dialect, store.eventProperties, "$feature_flag")} AS flag`,
      `coalesce(${stringAt(dialect, store.eventProperties, "$feature_flag_response")}, 'false') AS value`,
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
       SELECT flag, value, row_number() OVER (PARTITION BY flag ORDER BY sum(amount) DESC, value) AS rank
       FROM counted GROUP BY flag, value
     )
     SELECT c.flag AS flag, CASE WHEN r.rank <= ${valuesMax} THEN c.value ELSE '${otherValues}' END AS shown, c.day AS day,
       sum(c.amount)::DOUBLE AS calls
     FROM counted c JOIN ranked r ON r.flag = c.flag AND r.value = c.value
     GROUP BY ALL ORDER BY ALL`,
  );
  const positions = new Map(buckets.map(({ day }, index) => [day, index]));
  const found = new Map<string, FlagCalls["flags"][number]>();
  for (const [key, value, day, count] of rows as [string, string, string, number][]) {
    const name = JSON.stringify([key, value]);
    const series = found.get(name) ?? { key, value, counts: buckets.map(() => 0) };
    found.set(name, series);
    const index = positions.get(day);
    if (index !== undefined) series.counts[index] = count;
  }
  return { days: buckets.map(({ day }) => day), flags: [...found.values()] };
}
