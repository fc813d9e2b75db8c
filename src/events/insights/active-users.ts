/**
 * The measures `weekly_active` and `monthly_active` of trends: persons active in the 7 or 30 days up to the end of each
 * bucket. Source: PostHog's `BaseMathType`.
 */

import type { Interval, SqlDialect } from "../sql-dialect.ts";
import { lastUnits, type Range } from "./trend-range.ts";

/** Rows: breakdown value, start of a day or hour, and how many more persons (or less) are active from then on. */
export type Change = [shown: string | null, at: string, change: number];

/**
 * SQL for {@link Change}s, in order.
 * @param source common table expressions
 * @param from reads them: `who`, `bucket` (the day or hour of an event), and what `shown` reads
 * @param shown the breakdown value; a constant if there is no breakdown
 */
export function changesSql(
  dialect: SqlDialect,
  { source, from, shown, days }: { source: string; from: string; shown: string; days: number },
): string {
  // A person stays active until the days have passed, or is counted again from the next activity on.
  return `WITH ${source},
     active AS (SELECT DISTINCT ${shown} AS shown, who, bucket FROM ${from}),
     spans AS (
       SELECT shown, bucket, bucket + INTERVAL ${days} DAY AS until,
         lead(${dialect.orNull("bucket")}) OVER (PARTITION BY shown, who ORDER BY bucket) AS next
       FROM active
     ),
     changes AS (
       SELECT shown, bucket AS moment, 1 AS change FROM spans
       UNION ALL
       SELECT shown, CASE WHEN next < until THEN next ELSE until END AS moment, -1 AS change FROM spans
     )
     SELECT shown, ${dialect.wallText("moment")} AS at, sum(change)::DOUBLE AS amount
     FROM changes GROUP BY ALL ORDER BY ALL`;
}

/** Persons active at the end of each bucket, by breakdown value. */
export function activePerBucket(
  changes: readonly Change[],
  range: Range,
  interval: Interval,
): Map<string | null, number[]> {
  const byValue = new Map<string | null, Change[]>();
  for (const change of changes) {
    const ofValue = byValue.get(change[0]);
    if (ofValue === undefined) byValue.set(change[0], [change]);
    else ofValue.push(change);
  }
  const ends = lastUnits(range, interval);
  return new Map(
    [...byValue].map(([value, ofValue]) => {
      let active = 0;
      let next = 0;
      const data = ends.map((end) => {
        for (; next < ofValue.length && ofValue[next]![1] <= end; next++) active += Number(ofValue[next]![2]);
        return active;
      });
      return [value, data];
    }),
  );
}
