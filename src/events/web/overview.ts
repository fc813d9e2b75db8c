/** Headline figures of web analytics, and their course. */

import type { JsonObject } from "../../lib/json.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { intervalIn, rangeSql, withOwnWeeks } from "../insights/event-source.ts";
import { getBuckets } from "../insights/trend-range.ts";
import type { EventSql, SqlDialect } from "../sql-dialect.ts";
import { periods, visitSource, withOwners } from "./visits.ts";
import { readWebQuery, type WebQuery, type WebRequest } from "./web-query.ts";

/** SQL for figures of visits `e`, by period. */
export const figures = {
  visitors: (isIn: string) => `count(DISTINCT CASE WHEN ${isIn} THEN e.who END)`,
  views: (isIn: string) => `coalesce(sum(CASE WHEN ${isIn} THEN e.views ELSE 0 END), 0)`,
  visits: (isIn: string) => `count(CASE WHEN ${isIn} THEN 1 END)`,
  seconds: (isIn: string) =>
    `sum(CASE WHEN ${isIn} THEN e.micros ELSE 0 END) / 1000000.0 / nullif(count(CASE WHEN ${isIn} THEN 1 END), 0)`,
  bounceRate: (isIn: string) =>
    `sum(CASE WHEN ${isIn} THEN e.bounced ELSE 0 END) * 1.0 / nullif(count(CASE WHEN ${isIn} THEN 1 END), 0)`,
};

export const inPeriod = (period: number) => `e.period = ${period}`;

/** A number of a result row; null if absent. */
export function numberOrNull(value: unknown): number | null {
  const number = value === null || value === undefined ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : null;
}

const unit = "unit";
/** In the order of PostHog's results. */
const headline = [
  { key: "visitors", kind: unit, figure: "visitors", isIncreaseBad: null },
  { key: "views", kind: unit, figure: "views", isIncreaseBad: null },
  { key: "sessions", kind: unit, figure: "visits", isIncreaseBad: null },
  { key: "session duration", kind: "duration_s", figure: "seconds", isIncreaseBad: null },
  { key: "bounce rate", kind: "percentage", figure: "bounceRate", isIncreaseBad: true },
] as const;

/** The headline figures of the range, and of the previous one if compared. */
export async function computeWebOverview(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const web = await readWebQuery(store, request, query);
  const visits = await visitSource(store, web, []);
  const ofPeriod = (period: number) => headline.map(({ figure }) => figures[figure](inPeriod(period)));
  const columns = [...ofPeriod(periods.current), ...(web.previous ? ofPeriod(periods.previous) : [])];
  const [row = []] = await store.rows(`SELECT ${columns.join(", ")} FROM (${visits}) AS e`);
  const results = headline.map(({ key, kind, isIncreaseBad }, index) => {
    const scaled = (value: unknown) => {
      const number = numberOrNull(value);
      return number === null || kind !== "percentage" ? number : number * 100;
    };
    const value = scaled(row[index]);
    const previous = web.previous === undefined ? null : scaled(row[headline.length + index]);
    return { key, kind, isIncreaseBad, value, previous, changeFromPreviousPct: change(value, previous) };
  });
  return { results, ...rangeMembers(web), samplingRate: null, usedPreAggregatedTables: false };
}

function change(value: number | null, previous: number | null): number | null {
  return value === null || previous === null || previous === 0
    ? null
    : Math.round((100 * (value - previous)) / previous);
}

/** First and last second of the range, as in PostHog's responses. */
export function rangeMembers({ current: { from, toMs } }: WebQuery): JsonObject {
  const last = new Date(toMs - 1_000).toISOString().slice(0, 19).replace("T", " ");
  return { dateFrom: from, dateTo: last };
}

/** Metrics of the course; PostHog's names. */
const metrics = {
  UniqueUsers: figures.visitors,
  PageViews: figures.views,
  Sessions: figures.visits,
  Bounces: (isIn: string) => `sum(CASE WHEN ${isIn} THEN e.bounced ELSE 0 END)`,
  SessionDuration: figures.seconds,
} as const;
type Metric = keyof typeof metrics;
const metricNames = Object.keys(metrics) as Metric[];

/** The figures per bucket, by the start of visits. */
export async function computeWebTrends(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const interval = intervalIn(query);
  const web = await readWebQuery(store, withOwnWeeks(request, query), query, interval);
  const wanted = metricsIn(query);
  const visits = await visitSource(store, web, []);
  const compute = async (period: number, range: WebQuery["current"]) => {
    const { local } = rangeSql(store.dialect, range, request);
    const bucket = store.dialect.startOf(interval, local, range.weekStartDay);
    const amounts = wanted.map((name, index) => `${metrics[name]("true")} AS m${index}`);
    const rows = await store.rows(bucketsSql(store.dialect, { bucket, amounts, visits, period }));
    const found = new Map(rows.map(([at, ...values]) => [String(at), values]));
    return getBuckets(range, interval).map(({ bucket: at, day }) => ({
      bucket: day,
      metrics: Object.fromEntries(
        wanted.map((name, index) => [name, numberOrNull(found.get(at)?.[index] ?? 0) ?? 0]),
      ),
    }));
  };
  const current = await compute(periods.current, web.current);
  const previous = web.previous && (await compute(periods.previous, web.previous));
  return { results: current, ...(previous === undefined ? {} : { previous }), ...rangeMembers(web) };
}

function bucketsSql(
  dialect: SqlDialect,
  { bucket, amounts, visits, period }: { bucket: string; amounts: string[]; visits: string; period: number },
): string {
  return `SELECT ${dialect.wallText("b.bucket")} AS shown, ${amounts.map((_, index) => `b.m${index}`).join(", ")} FROM (
      SELECT ${bucket} AS bucket, ${amounts.join(", ")} FROM (${visits}) AS e WHERE ${inPeriod(period)} GROUP BY bucket
    ) AS b ORDER BY shown`;
}

/** @throws {UnknownQueryError} */
function metricsIn({ metrics: written }: JsonObject): Metric[] {
  if (written === undefined || written === null) return metricNames;
  const list = Array.isArray(written) ? written : [written];
  const found = list.flatMap((name) => metricNames.find((known) => known === name) ?? []);
  if (found.length === list.length && found.length > 0) return [...new Set(found)];
  throw new UnknownQueryError(`Unknown metrics ${JSON.stringify(written)}. Use ${metricNames.join(", ")}.`);
}

const onlineMs = 5 * 60_000;

/** The number of visitors with an event in the last five minutes. */
export async function computeWebOnline(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const { dialect } = store;
  const { projectId, now } = request;
  const web = await readWebQuery(store, request, query);
  const [from, to] = [now - onlineMs, now].map((ms) => dialect.timestamp(ms * 1_000));
  const events = `SELECT DISTINCT ${projectId} AS project_id, e.distinct_id AS distinct_id FROM events e
    WHERE e.project_id = ${projectId} AND ${dialect.time("e")} >= ${from} AND ${dialect.time("e")} <= ${to}`;
  const [row] = await store.rows(
    `SELECT count(DISTINCT e.who) FROM (${withOwners(store, web, events)}) AS e`,
  );
  return { results: [{ key: "online", kind: "unit", value: Number(row![0]) }] };
}
