/** Retention and lifecycle as SQL over the views, and the persons behind their numbers. */

import type { JsonObject } from "../../lib/json/value.ts";
import { viewSql } from "../duckdb/sql-dialect.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { quoted } from "../sql-text.ts";
import { readsPersons, type TrendsRequest } from "./event-source.ts";
import { retentionIn } from "./retention.ts";
import { lastBuckets } from "./trend-range.ts";
import {
  entityCondition,
  type Figure,
  fixedRange,
  localTime,
  moment,
  nowIn,
  part,
  personJoin,
  relativeStart,
  startOf,
  type ViewQuery,
  who,
} from "./view-sql-query.ts";

const { dialect } = viewSql;

interface ViewRetention {
  /** SQL for the start of the first period. */
  first: string;
  period: string;
  /** Tables `found`, `began` and `returned`: persons by period, numbered from the first. */
  tables: string;
}

function readRetention(request: TrendsRequest, query: JsonObject): ViewRetention {
  const { period, count, isFirstTime, entities } = retentionIn(query);
  const dates = part(query, "dateRange");
  const range = lastBuckets(count, period, dates, request);
  if (range === undefined) throw new UnknownQueryError("Invalid date range.");
  const first =
    (dates.date_to ?? null) === null
      ? `${startOf(period, nowIn(request), request)} - INTERVAL ${count - 1} ${period}`
      : dialect.wallMoment(range.from);
  const [target, returning] = entities.map((entity) => entityCondition(entity, query));
  const persons = readsPersons(query, entities) ? personJoin.replace("\n", "\n  ") : "";
  const started = isFirstTime
    ? "SELECT who, min(bucket) AS bucket FROM found WHERE is_target GROUP BY who HAVING min(bucket) >= 0"
    : "SELECT DISTINCT who, bucket FROM found WHERE is_target";
  const tables = `found AS (
  SELECT ${who} AS who, e.timestamp AS moment, e.seq,
    date_diff('${period}', ${first}, ${startOf(period, localTime(request), request)}) AS bucket,
    coalesce(${target}, false) AS is_target,
    coalesce(${returning}, false) AS is_returning
  FROM events e${persons}
  WHERE bucket ${isFirstTime ? "<=" : "BETWEEN 0 AND"} ${count - 1}
),
began AS (${started}),
returned AS (SELECT DISTINCT who, bucket FROM found WHERE is_returning)`;
  return { first, period, tables };
}

export function retentionSql(request: TrendsRequest, query: JsonObject): string {
  const { first, period, tables } = readRetention(request, query);
  return `WITH ${tables}
SELECT ${first} + b.bucket * INTERVAL 1 ${period} AS began, 0 AS later, count(*) AS persons
FROM began b GROUP BY ALL
UNION ALL
SELECT ${first} + b.bucket * INTERVAL 1 ${period}, r.bucket - b.bucket, count(*)
FROM began b JOIN returned r ON r.who = b.who AND r.bucket > b.bucket GROUP BY ALL
ORDER BY ALL`;
}

/** The number of distinct persons who started in any period. */
export function retentionCountSql(request: TrendsRequest, query: JsonObject): string {
  return `WITH ${readRetention(request, query).tables}\nSELECT count(DISTINCT who)::INTEGER AS people FROM began`;
}

/** @param columns of each person */
export function retentionPersonsSql(
  request: TrendsRequest,
  query: JsonObject,
  { day, later = 0 }: Figure,
  columns: string,
): string {
  const { first, period, tables } = readRetention(request, query);
  return `WITH ${tables}
SELECT f.who AS who, ${columns}
FROM found f JOIN began b ON b.who = f.who AND b.bucket = date_diff('${period}', ${first}, ${moment(day)})
JOIN events e ON ${who} = f.who AND e.timestamp = f.moment AND e.seq = f.seq${personJoin}
WHERE f.bucket = b.bucket + ${later} AND ${later === 0 ? "f.is_target" : "f.is_returning"}
GROUP BY f.who ORDER BY times DESC, who`;
}

export function lifecycleSql(view: ViewQuery): string {
  return `WITH ${lifecycleTables(view)}
SELECT period, status, sum(if(status = 'dormant', -1, 1)) AS persons
FROM lived WHERE ${lifecycleRange(view)}
GROUP BY ALL ORDER BY ALL`;
}

/** @param columns of each person */
export function lifecyclePersonsSql(view: ViewQuery, { day, status = "" }: Figure, columns: string): string {
  const { request, interval } = view;
  const period = moment(day);
  // Dormant persons were last seen in the previous period.
  const seen = status === "dormant" ? `${period} - INTERVAL 1 ${interval}` : period;
  const conditions = [`l.period = ${period}`, `l.status = ${quoted(status)}`, ...getOnly(view).conditions];
  return `WITH ${lifecycleTables(view)}
SELECT l.who AS who, ${columns}
FROM lived l JOIN events e ON ${who} = l.who AND ${startOf(interval, localTime(request), request)} = ${seen}${personJoin}
WHERE ${conditions.join(" AND ")}
GROUP BY l.who ORDER BY times DESC, who`;
}

function getOnly({ series: [one, ...others] }: ViewQuery) {
  if (one === undefined || others.length > 0)
    throw new UnknownQueryError("A lifecycle query requires exactly one series.");
  return one;
}

/** Table `lived`: who was new, resurrecting, returning or dormant in which period. */
function lifecycleTables(view: ViewQuery): string {
  const { request, interval } = view;
  const { conditions } = getOnly(view);
  return `active AS (
  SELECT DISTINCT ${who} AS who, ${startOf(interval, localTime(request), request)} AS period
  FROM events e${view.personJoin.replace("\n", " ")}${conditions.length > 0 ? `\n  WHERE ${conditions.join("\n    AND ")}` : ""}
),
around AS (
  SELECT *, lag(period) OVER one AS previous, lead(period) OVER one AS next
  FROM active WINDOW one AS (PARTITION BY who ORDER BY period)
),
lived AS (
  SELECT who, period, CASE WHEN previous IS NULL THEN 'new'
    WHEN previous + INTERVAL 1 ${interval} = period THEN 'returning' ELSE 'resurrecting' END AS status
  FROM around
  UNION ALL
  SELECT who, period + INTERVAL 1 ${interval}, 'dormant' FROM around
  WHERE next IS DISTINCT FROM period + INTERVAL 1 ${interval}
)`;
}

/** Whole periods; the range may cut the first and last. */
function lifecycleRange({ request, query, interval }: ViewQuery): string {
  const dates = part(query, "dateRange");
  const now = nowIn(request);
  const until = `period <= ${startOf(interval, now, request)}`;
  if (dates.date_from === "all" && (dates.date_to ?? null) === null) return until;
  const relative = relativeStart(dates);
  if (relative !== undefined) {
    const { count, unit } = relative;
    const from = `date_trunc('${unit}', ${now}) - INTERVAL ${count} ${unit}`;
    return `period >= ${startOf(interval, from, request)} AND ${until}`;
  }
  const { from, to } = fixedRange(request, dates);
  return `period >= ${startOf(interval, moment(from), request)} AND period < ${moment(to)}`;
}
