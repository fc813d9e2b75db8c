/** Trends: how many events, or how many users, per day or hour: series, math, breakdown by a property, interval, date range. */

import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { type Dialect, type EventSql, roughTextAt, textAt } from "../dialect.ts";
import { UnknownQuery } from "../event-filters.ts";
import { noValue, otherValues } from "./breakdown-values.ts";
import {
  breakdownOf,
  conditionsOf,
  eventName,
  foundEvents,
  intervalIn,
  objectsIn,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./found-events.ts";
import { breakdownLimit } from "./known-parts.ts";
import { bucketsOf, comparedRange, type Interval, type Range } from "./trend-range.ts";

const seriesMax = 26;

/**
 * Computes a trends query.
 *
 * @returns one object per series, or per series and breakdown value, the largest first; with `compareFilter` those of the
 *          period before, or of one that is earlier by its `compare_to`, behind them. Displays of one figure find it in
 *          `aggregated_value`; the figures of a cumulative one are of all that came up to the end of a bucket.
 * @throws {UnknownQuery} with a sentence about what is not known.
 */
export async function computeTrends(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const interval = intervalIn(query);
  const range = await rangeIn(store, request, query, interval);
  const series = objectsIn(query.series);
  if (series.length === 0 || series.length > seriesMax)
    throw new UnknownQuery("A trend needs 1 to 26 series.");
  const compute = async (within: Range): Promise<JsonObject[]> => {
    const results: JsonObject[] = [];
    for (const [order, one] of series.entries()) {
      results.push(...(await computeSeries(store, { request, query, one, order, interval, range: within })));
    }
    return results;
  };
  const current = await compute(range);
  if (!isJsonObject(query.compareFilter) || query.compareFilter.compare !== true) return current;
  const { compare_to: offset } = query.compareFilter;
  const earlier = comparedRange(range, offset);
  if (earlier === undefined)
    throw new UnknownQuery(`The compare_to ${JSON.stringify(offset)} is no time before.`);
  const previous = await compute(earlier);
  return [
    ...current.map((result) => ({ ...result, compare: true, compare_label: "current" })),
    ...previous.map((result) => ({ ...result, compare: true, compare_label: "previous" })),
  ];
}

interface Series {
  request: TrendsRequest;
  query: JsonObject;
  one: JsonObject;
  order: number;
  interval: Interval;
  range: Range;
}

/** What there was in a bucket, of a breakdown's value if there is one. */
type Amount = [value: string | null, bucket: string, amount: number | bigint];

const cumulative = "ActionsLineGraphCumulative";
/** Displays of one figure for the whole range; PostHog's names. */
const displaysOfWhole = ["BoldNumber", "ActionsTable", "ActionsPie", "ActionsBarValue", "WorldMap"];

async function computeSeries(store: EventSql, series: Series): Promise<JsonObject[]> {
  const { request, query, one, interval, range } = series;
  const { dialect } = store;
  const breakdown = breakdownOf(store, query);
  const limit = breakdown === undefined ? undefined : breakdownLimit(query);
  const { input, output, distinct, isSum = false } = aggregateOf(store, one);
  const display = isJsonObject(query.trendsFilter) ? String(query.trendsFilter.display) : "";
  const isCumulative = display === cumulative;
  if (isCumulative && !isSum && distinct === undefined) {
    throw new UnknownQuery(`The display ${cumulative} cannot be computed for the math ${one.math}.`);
  }
  const amountsBy = async (bucket: string) => {
    const found = foundEvents(dialect, request, range, {
      columns: [
        `${bucket} AS bucket`,
        ...(breakdown === undefined ? [] : [`${breakdown} AS value`]),
        ...(input === undefined ? [] : [`${input} AS measured`]),
      ],
      conditions: conditionsOf(store, one, query),
      reads: { who: distinct === "who", person: readsPersons(query, [one]) },
    });
    const once = isCumulative ? distinct : undefined;
    return (await store.rows(amountsSql(dialect, { found, output, limit, once }))) as Amount[];
  };
  const amounts = await amountsBy(dialect.startOf(interval, "local_time", range.weekStartDay));
  // Who came on two days is one user of both, and averages of days are no average of them all.
  const isOfWhole = displaysOfWhole.includes(display);
  const whole = isOfWhole && !isSum ? await amountsBy(dialect.wallMoment(range.from)) : [];
  const wholeOf = new Map(whole.map(([value, , amount]) => [value, Number(amount)]));
  const valued = dataByValue(series, amounts, limit !== undefined).map(({ value, data: byBucket }) => {
    const data = isCumulative ? addedUp(byBucket) : byBucket;
    const count = isCumulative ? data.at(-1)! : byBucket.reduce((sum, amount) => sum + amount, 0);
    return { value, data, count, figure: isOfWhole && !isSum ? (wholeOf.get(value) ?? 0) : count };
  });
  return valued
    .sort((a, b) => b.figure - a.figure)
    .map(({ value, data, count, figure }) => ({
      ...described(series, value, limit !== undefined),
      ...{ count, data },
      ...(isOfWhole ? { aggregated_value: figure } : {}),
    }));
}

/**
 * SQL for {@link Amount}s of the events that `found` selects.
 *
 * @param limit of a breakdown: so many values, those with most events, are told apart; the others are one.
 * @param once  column of what counts where it came first, and not again.
 */
function amountsSql(
  dialect: Dialect,
  {
    found,
    output,
    limit,
    once,
  }: { found: string; output: string; limit: number | undefined; once: string | undefined },
): string {
  const at = `${dialect.wallText("bucket")} AS at`;
  if (limit === undefined) {
    const first = `SELECT min(bucket) AS came_at FROM (${found}) AS f WHERE ${once} IS NOT NULL GROUP BY ${once}`;
    return once === undefined
      ? `SELECT NULL AS shown, ${at}, ${output} AS amount FROM (${found}) AS f GROUP BY bucket ORDER BY bucket`
      : `SELECT NULL AS shown, ${at}, count(*) AS amount FROM (SELECT came_at AS bucket FROM (${first}) AS c) AS f
         GROUP BY bucket ORDER BY bucket`;
  }
  const shown = `CASE WHEN place <= ${limit} THEN f.value ELSE ${dialect.text(otherValues)} END AS shown`;
  const ranked = (counted: string, count: string) =>
    `ranked AS (SELECT value, row_number() OVER (ORDER BY ${count} DESC, value) AS place FROM ${counted} GROUP BY value)`;
  const withPlace = "JOIN ranked r ON f.value IS NOT DISTINCT FROM r.value";
  // Counts of events can be added up, so the events need not be looked at twice.
  if (output === countOfEvents) {
    return `WITH counted ${dialect.madeOnce} (
       SELECT value, bucket, count(*) AS times FROM (${found}) AS found GROUP BY value, bucket
     ), ${ranked("counted", "sum(times)")}
     SELECT ${shown}, ${at}, sum(f.times)::DOUBLE AS amount
     FROM counted f ${withPlace} GROUP BY ALL ORDER BY ALL`;
  }
  const events = `WITH found ${dialect.madeOnce} (${found}), ${ranked("found", "count(*)")}`;
  if (once === undefined) {
    return `${events} SELECT ${shown}, ${at}, ${output} AS amount FROM found f ${withPlace} GROUP BY ALL ORDER BY ALL`;
  }
  return `${events} SELECT shown, ${at}, count(*) AS amount FROM (
       SELECT shown, came_at AS bucket FROM (
         SELECT ${shown}, f.${once} AS once, min(f.bucket) AS came_at FROM found f ${withPlace}
         WHERE f.${once} IS NOT NULL GROUP BY ALL
       ) AS c
     ) AS f GROUP BY ALL ORDER BY ALL`;
}

/** The amounts of every bucket, of each value of a breakdown; without one there is always one list. */
function dataByValue(
  { range, interval }: Series,
  amounts: readonly Amount[],
  hasBreakdown: boolean,
): { value: string | null; data: number[] }[] {
  const byValue = new Map<string | null, Map<string, number>>();
  if (!hasBreakdown) byValue.set(null, new Map());
  for (const [value, bucket, amount] of amounts) {
    const ofValue = byValue.get(value) ?? new Map<string, number>();
    byValue.set(value, ofValue.set(bucket, Number(amount)));
  }
  const buckets = bucketsOf(range, interval);
  return [...byValue].map(([value, ofValue]) => ({
    value,
    data: buckets.map(({ bucket }) => ofValue.get(bucket) ?? 0),
  }));
}

/** Each amount with all before it. */
function addedUp(data: readonly number[]): number[] {
  let sum = 0;
  return data.map((amount) => (sum += amount));
}

/** What a result says beside its figures. */
function described(
  { one, order, interval, range }: Series,
  value: string | null,
  hasBreakdown: boolean,
): JsonObject {
  const name = eventName(one);
  const buckets = bucketsOf(range, interval);
  const label = typeof one.custom_name === "string" ? one.custom_name : name;
  return {
    action: {
      id: one.event ?? null,
      type: "events",
      order,
      name,
      custom_name: one.custom_name ?? null,
      math: one.math ?? "total",
    },
    label: hasBreakdown ? (value ?? "None") : label,
    labels: buckets.map((bucket) => bucket.label),
    days: buckets.map((bucket) => bucket.day),
    ...(hasBreakdown ? { breakdown_value: value ?? noValue } : {}),
  };
}

interface Aggregate {
  /** Of one event, called `measured`. */
  input?: string;
  /** Of the events of a bucket. */
  output: string;
  /** The column whose different values are counted. */
  distinct?: "who" | "measured";
  /** The amounts of two buckets make that of both. */
  isSum?: boolean;
}

const countOfEvents = "count(*)";

/** What is added up: SQL for one event, and for a bucket of them. */
function aggregateOf(store: EventSql, one: JsonObject): Aggregate {
  const { dialect, eventProperties } = store;
  const math = String(one.math ?? "total");
  if (math === "total") return { output: countOfEvents, isSum: true };
  if (math === "dau") return { output: "count(DISTINCT who)", distinct: "who" };
  if (math === "unique_session") {
    const input = textAt(dialect, eventProperties, "$session_id");
    return { input, output: "count(DISTINCT measured)", distinct: "measured" };
  }
  const property = one.math_property;
  const summary = summaryOf(dialect, math);
  if (summary === undefined || typeof property !== "string") {
    throw new UnknownQuery(`The math ${JSON.stringify(math)} cannot be computed.`);
  }
  return {
    input: dialect.number(roughTextAt(dialect, eventProperties, property)),
    output: `coalesce(${summary}, 0)`,
    isSum: math === "sum",
  };
}

const summaries = ["sum", "avg", "min", "max"];
const quantiles: Record<string, number> = { median: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 };

function summaryOf(dialect: Dialect, math: string): string | undefined {
  if (summaries.includes(math)) return `${math}(measured)`;
  const level = quantiles[math];
  return level === undefined ? undefined : dialect.quantile(level, "measured");
}
