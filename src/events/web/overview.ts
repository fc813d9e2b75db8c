/** Headline figures of web analytics, and their course. */

import type { JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { intervalIn, rangeSql, withOwnWeeks } from "../insights/event-source.ts";
import { getBuckets } from "../insights/trend-range.ts";
import type { EventSql, SqlDialect } from "../sql-dialect.ts";
import { conversionGoalIn, conversionsByVisitor } from "./conversions.ts";
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

type FigureName = keyof typeof figures;
interface HeadlineFigure {
  key: string;
  kind: "unit" | "duration_s" | "percentage" | "currency";
  isIncreaseBad: boolean | null;
}

/** In the order of PostHog's results. */
const headline: readonly (HeadlineFigure & { figure: FigureName })[] = [
  { key: "visitors", kind: "unit", isIncreaseBad: null, figure: "visitors" },
  { key: "views", kind: "unit", isIncreaseBad: null, figure: "views" },
  { key: "sessions", kind: "unit", isIncreaseBad: null, figure: "visits" },
  { key: "session duration", kind: "duration_s", isIncreaseBad: null, figure: "seconds" },
  { key: "bounce rate", kind: "percentage", isIncreaseBad: true, figure: "bounceRate" },
];
const ofGoal: readonly HeadlineFigure[] = [
  { key: "total conversions", kind: "unit", isIncreaseBad: null },
  { key: "unique conversions", kind: "unit", isIncreaseBad: null },
  { key: "conversion rate", kind: "percentage", isIncreaseBad: null },
];
const revenue = (key: string): HeadlineFigure => ({ key, kind: "currency", isIncreaseBad: null });

/** The headline figures of the range, and of the previous one if compared; with a goal those of its conversions. */
export async function computeWebOverview(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const web = await readWebQuery(store, request, query);
  const goal = conversionGoalIn(query, request);
  const hasRevenue = query.includeRevenue === true;
  const visits = await visitSource(store, web, []);
  const general = goal === undefined ? headline : headline.slice(0, 1);
  const ofPeriod = (period: number) => general.map(({ figure }) => figures[figure](inPeriod(period)));
  const columns = [...ofPeriod(periods.current), ...(web.previous ? ofPeriod(periods.previous) : [])];
  const [row = []] = await store.rows(`SELECT ${columns.join(", ")} FROM (${visits}) AS e`);
  const values: [HeadlineFigure, current: unknown, previous: unknown][] = general.map((figure, index) => {
    return [figure, row[index], row[general.length + index]];
  });
  if (goal !== undefined || hasRevenue) {
    const conversionsSql = conversionsByVisitor(store, web, goal, hasRevenue);
    const converted = (period: number) =>
      countConversions(store, { visits, conversionsSql, period, hasRevenue });
    const current = await converted(periods.current);
    const previous = web.previous && (await converted(periods.previous));
    if (goal !== undefined) {
      const rate = ([, unique]: readonly number[], visitors: unknown) =>
        Number(visitors) === 0 ? 0 : unique! / Number(visitors);
      ofGoal.forEach((figure, index) => {
        const getFigure = (counts: readonly number[] | undefined, visitors: unknown) =>
          counts && (figure.kind === "percentage" ? rate(counts, visitors) : counts[index]);
        values.push([figure, getFigure(current, row[0]), getFigure(previous, row[1])]);
      });
    }
    if (hasRevenue) {
      const key = goal === undefined ? "revenue" : "conversion revenue";
      values.push([revenue(key), current[2], previous?.[2]]);
    }
  }
  const results = values.map(([{ key, kind, isIncreaseBad }, now, before]) => {
    const scaled = (sent: unknown) => {
      const number = numberOrNull(sent);
      return number === null || kind !== "percentage" ? number : number * 100;
    };
    const value = scaled(now);
    const previous = web.previous === undefined ? null : scaled(before);
    return { key, kind, isIncreaseBad, value, previous, changeFromPreviousPct: change(value, previous) };
  });
  return { results, ...rangeMembers(web), samplingRate: null, usedPreAggregatedTables: false };
}

/** Conversions of the visitors of a period, how many visitors converted, and the revenue. */
async function countConversions(
  store: EventSql,
  {
    visits,
    conversionsSql,
    period,
    hasRevenue,
  }: { visits: string; conversionsSql: string; period: number; hasRevenue: boolean },
): Promise<number[]> {
  const amounts = [
    `sum(c.goals_${period})`,
    `count(CASE WHEN c.goals_${period} > 0 THEN 1 END)`,
    ...(hasRevenue ? [`sum(c.revenue_${period})`] : []),
  ];
  const [row = []] = await store.rows(
    `SELECT ${amounts.join(", ")} FROM (SELECT DISTINCT e.who AS who FROM (${visits}) AS e WHERE ${inPeriod(period)}) AS v
     JOIN (${conversionsSql}) AS c ON c.who = v.who`,
  );
  return row.map((amount) => numberOrNull(amount) ?? 0);
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
