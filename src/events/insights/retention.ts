/**
 * Retention (of users active in a period, how many were active in later periods) and lifecycle (new, returning,
 * resurrecting and dormant users). Source of queries and results: PostHog's `RetentionQuery` and `LifecycleQuery`.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { type EventSql, intervals } from "../sql-dialect.ts";
import {
  eventName,
  eventSource,
  getConditions,
  getEntity,
  intervalIn,
  objectsIn,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./event-source.ts";
import { getBuckets, lastBuckets } from "./trend-range.ts";

const periodsDefault = 11;
const periodsMax = 60;

/** Computes retention: one object per period. @throws {UnknownQueryError} */
export async function computeRetention(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const { period, count, isFirstTime, entities } = retentionIn(query);
  const range = lastBuckets(count, period, isJsonObject(query.dateRange) ? query.dateRange : {}, request);
  if (range === undefined) throw new UnknownQueryError("Invalid date range.");
  const buckets = getBuckets(range, period);
  const { dialect } = store;
  const first = dialect.wallMoment(range.from);
  const [target, returning] = entities.map((entity) => getConditions(store, entity, query)) as [
    string[],
    string[],
  ];
  const periodIndex = `date_diff('${period}', ${first}, ${dialect.startOf(period, "local_time", range.weekStartDay)})`;
  const rows = await store.rows(
    `WITH found ${dialect.asMaterialized} (
       ${eventSource(dialect, request, isFirstTime ? undefined : range, {
         columns: [
           `coalesce((${target.join(" AND ")}), false) AS is_target`,
           `coalesce((${returning.join(" AND ")}), false) AS is_returning`,
         ],
         conditions: [`((${target.join(" AND ")}) OR (${returning.join(" AND ")}))`],
         reads: { person: readsPersons(query, entities) },
       })}
     ),
     begun AS (
       ${
         isFirstTime
           ? `SELECT who, min(${periodIndex}) AS bucket FROM found WHERE is_target GROUP BY who`
           : `SELECT DISTINCT who, ${periodIndex} AS bucket FROM found WHERE is_target`
       }
     ),
     returned AS (SELECT DISTINCT who, ${periodIndex} AS bucket FROM found WHERE is_returning)
     SELECT b.bucket AS bucket, 0 AS later, count(*)::DOUBLE AS count FROM begun b WHERE b.bucket BETWEEN 0 AND ${buckets.length - 1} GROUP BY ALL
     UNION ALL
     SELECT b.bucket AS bucket, r.bucket - b.bucket AS later, count(*)::DOUBLE AS count FROM begun b JOIN returned r ON r.who = b.who AND r.bucket > b.bucket
     WHERE b.bucket BETWEEN 0 AND ${buckets.length - 1} AND r.bucket <= ${buckets.length - 1} GROUP BY ALL`,
  );
  const counts = new Map(
    (rows as [number | bigint, number | bigint, number][]).map(([at, later, found]) => [
      `${at} ${later}`,
      found,
    ]),
  );
  const word = period[0]!.toUpperCase() + period.slice(1);
  return buckets.map(({ day }, at): JsonObject => {
    const values = buckets.slice(at).map(
      (_, later): Json => ({
        count: counts.get(`${at} ${later}`) ?? 0,
        label: `${word} ${later}`,
      }),
    );
    return { date: day, label: `${word} ${at}`, values };
  });
}

/** The periods of a retention, and the events that start and continue it. @throws {UnknownQueryError} */
export function retentionIn(query: JsonObject) {
  const filter = isJsonObject(query.retentionFilter) ? query.retentionFilter : {};
  const period = intervals.find((name) => name === String(filter.period ?? "Day").toLowerCase());
  if (period === undefined) throw new UnknownQueryError(`Unknown period ${JSON.stringify(filter.period)}.`);
  const count = Number(filter.totalIntervals ?? periodsDefault);
  if (!Number.isInteger(count) || count < 1 || count > periodsMax) {
    throw new UnknownQueryError(`A retention query requires 1 to ${periodsMax} periods.`);
  }
  const isFirstTime = filter.retentionType === "retention_first_time";
  const entities = [filter.targetEntity, filter.returningEntity ?? filter.targetEntity].map(getEntity);
  return { period, count, isFirstTime, entities };
}

/** Computes new, returning, resurrecting and dormant users per bucket. @throws {UnknownQueryError} */
export async function computeLifecycle(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const series = objectsIn(query.series);
  if (series.length !== 1) throw new UnknownQueryError("A lifecycle query requires exactly one series.");
  const interval = intervalIn(query);
  const { dialect } = store;
  const range = await rangeIn(store, request, query, interval);
  const buckets = getBuckets(range, interval);
  const rows = await store.rows(
    `WITH found AS (
       ${eventSource(dialect, request, undefined, {
         columns: [],
         conditions: getConditions(store, series[0]!, query),
         reads: { person: readsPersons(query, series) },
       })}
     ),
     active AS (SELECT DISTINCT who, ${dialect.startOf(interval, "local_time", range.weekStartDay)} AS bucket FROM found),
     around AS (
       SELECT bucket, lag(${dialect.orNull("bucket")}) OVER person AS previous, lead(${dialect.orNull("bucket")}) OVER person AS next,
         bucket + INTERVAL 1 ${interval} AS after
       FROM active WINDOW person AS (PARTITION BY who ORDER BY bucket)
     )
     SELECT ${dialect.wallText("bucket")} AS at,
       CASE WHEN previous IS NULL THEN 'new'
         WHEN previous + INTERVAL 1 ${interval} = bucket THEN 'returning' ELSE 'resurrecting' END AS status,
       count(*)::DOUBLE AS count FROM around GROUP BY ALL
     UNION ALL
     SELECT ${dialect.wallText("after")} AS at, 'dormant' AS status, -count(*)::DOUBLE AS count
     FROM around WHERE next IS DISTINCT FROM after GROUP BY ALL`,
  );
  const amounts = new Map(
    (rows as [string, string, number][]).map(([at, status, n]) => [`${at} ${status}`, n]),
  );
  const name = eventName(series[0]!);
  return ["new", "returning", "resurrecting", "dormant"].map((status): JsonObject => {
    const data = buckets.map(({ bucket }) => amounts.get(`${bucket} ${status}`) ?? 0);
    return {
      status,
      label: `${name} - ${status}`,
      count: data.reduce((sum, amount) => sum + amount, 0),
      data,
      labels: buckets.map(({ label }) => label),
      days: buckets.map(({ day }) => day),
    };
  });
}
