/**
 * Retention: of those who did something in one period, how many did something in the periods after it. And lifecycle:
 * of those who did something in a period, who is new, who came back, and who stayed away.
 *
 * Source of the queries and answers: PostHog's `RetentionQuery` and `LifecycleQuery`.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { EventSql } from "../dialect.ts";
import { UnknownQuery } from "../event-filters.ts";
import {
  conditionsOf,
  eventName,
  foundEvents,
  intervalIn,
  objectsIn,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./found-events.ts";
import { bucketsOf, intervals, lastBuckets } from "./trend-range.ts";

const periodsDefault = 11;
const periodsMax = 60;

/** Computes retention: one object per period. @throws {UnknownQuery} */
export async function computeRetention(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const filter = isJsonObject(query.retentionFilter) ? query.retentionFilter : {};
  const period = intervals.find((name) => name === String(filter.period ?? "Day").toLowerCase());
  if (period === undefined)
    throw new UnknownQuery(`The period ${JSON.stringify(filter.period)} is not known.`);
  const count = Number(filter.totalIntervals ?? periodsDefault);
  if (!Number.isInteger(count) || count < 1 || count > periodsMax) {
    throw new UnknownQuery(`A retention has 1 to ${periodsMax} periods.`);
  }
  const isFirstTime = filter.retentionType === "retention_first_time";
  const range = lastBuckets(count, period, isJsonObject(query.dateRange) ? query.dateRange : {}, request);
  if (range === undefined) throw new UnknownQuery("The date range cannot be read.");
  const buckets = bucketsOf(range, period);
  const { dialect } = store;
  const first = dialect.wallMoment(range.from);
  const entities = [filter.targetEntity, filter.returningEntity ?? filter.targetEntity].map(entityOf);
  const [target, returning] = entities.map((entity) => conditionsOf(store, entity, query)) as [
    string[],
    string[],
  ];
  const place = `date_diff('${period}', ${first}, ${dialect.startOf(period, "local_time", range.weekStartDay)})`;
  const rows = await store.rows(
    `WITH found ${dialect.madeOnce} (
       ${foundEvents(dialect, request, isFirstTime ? undefined : range, {
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
           ? `SELECT who, min(${place}) AS place FROM found WHERE is_target GROUP BY who`
           : `SELECT DISTINCT who, ${place} AS place FROM found WHERE is_target`
       }
     ),
     returned AS (SELECT DISTINCT who, ${place} AS place FROM found WHERE is_returning)
     SELECT b.place AS place, 0 AS later, count(*)::DOUBLE AS count FROM begun b WHERE b.place BETWEEN 0 AND ${buckets.length - 1} GROUP BY ALL
     UNION ALL
     SELECT b.place AS place, r.place - b.place AS later, count(*)::DOUBLE AS count FROM begun b JOIN returned r ON r.who = b.who AND r.place > b.place
     WHERE b.place BETWEEN 0 AND ${buckets.length - 1} AND r.place <= ${buckets.length - 1} GROUP BY ALL`,
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

/** Computes who is new, comes back, was away and stays away, per bucket. @throws {UnknownQuery} */
export async function computeLifecycle(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const series = objectsIn(query.series);
  if (series.length !== 1) throw new UnknownQuery("A lifecycle has one series.");
  const interval = intervalIn(query);
  const { dialect } = store;
  const range = await rangeIn(store, request, query, interval);
  const buckets = bucketsOf(range, interval);
  const rows = await store.rows(
    `WITH found AS (
       ${foundEvents(dialect, request, undefined, {
         columns: [],
         conditions: conditionsOf(store, series[0]!, query),
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
      ...{ status, label: `${name} - ${status}`, count: data.reduce((sum, amount) => sum + amount, 0), data },
      labels: buckets.map(({ label }) => label),
      days: buckets.map(({ day }) => day),
    };
  });
}

/** An entity as retention names it, as a series names events. */
function entityOf(entity: Json | undefined): JsonObject {
  if (entity === undefined || entity === null) return {};
  if (!isJsonObject(entity) || (entity.type ?? "events") !== "events") {
    throw new UnknownQuery("A retention is of events.");
  }
  return { ...entity, event: entity.event ?? entity.id ?? null };
}
