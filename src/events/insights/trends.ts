/** Trends: number of events or users per interval, with series, math, breakdown by a property, and date range. */

import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { type EventSql, type Interval, looseStringAt, type SqlDialect, stringAt } from "../sql-dialect.ts";
import { getActiveDays, isActiveUsers } from "./active-days.ts";
import { activePerBucket, type Change, changesSql } from "./active-users.ts";
import { type Breakdown, getBreakdown } from "./breakdown.ts";
import { otherValues } from "./breakdown-values.ts";
import {
  eventName,
  eventSource,
  getConditions,
  intervalIn,
  objectsIn,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./event-source.ts";
import { type Formula, formulasIn, withFormulas } from "./formula.ts";
import { activeUnit, comparedRange, extendBack, getBuckets, lastDays, type Range } from "./trend-range.ts";
import { breakdownLimit } from "./validate-query.ts";

const seriesMax = 26;

/**
 * Computes a trends query.
 * @returns one object per series (or formula), or per series and breakdown value, largest first; with `compareFilter`
 * followed by those of the previous or `compare_to` period. Displays of a single value use `aggregated_value`; cumulative ones
 * count everything up to the end of a bucket
 * @throws {UnknownQueryError} names the unsupported part
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
    throw new UnknownQueryError("A trend requires 1 to 26 series.");
  const formulas = formulasIn(query, series.length);
  const breakdown = getBreakdown(store, query);
  const compute = async (within: Range): Promise<JsonObject[]> => {
    const results: JsonObject[] = [];
    const ranking = getRanking(store, {
      request,
      query,
      series,
      breakdown,
      formulas,
      interval,
      range: within,
    });
    for (const [order, one] of series.entries()) {
      const parts = { request, query, one, order, interval, breakdown, ranking, range: within };
      results.push(...(await computeSeries(store, parts)));
    }
    return formulas.length === 0 ? results : withFormulas(formulas, results, breakdown !== undefined);
  };
  return await comparedWith(query, range, compute);
}

/**
 * The results of a range; with `compareFilter` followed by those of the previous or `compare_to` period.
 * @throws {UnknownQueryError}
 */
export async function comparedWith(
  query: JsonObject,
  range: Range,
  compute: (within: Range) => Promise<JsonObject[]>,
): Promise<JsonObject[]> {
  const current = await compute(range);
  if (!isJsonObject(query.compareFilter) || query.compareFilter.compare !== true) return current;
  const { compare_to: offset } = query.compareFilter;
  const earlier = comparedRange(range, offset);
  if (earlier === undefined)
    throw new UnknownQueryError(
      `Invalid compare_to ${JSON.stringify(offset)}: expected a negative offset, for example -1w.`,
    );
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
  breakdown: Breakdown | undefined;
  /** SQL for the breakdown values of all series, if they share one order. */
  ranking: string | undefined;
}

/**
 * SQL for one row per event of any series, with its breakdown `value`: series in a formula show the same values
 * separately, because amounts inside the combined rest cannot be divided by each other.
 */
function getRanking(
  store: EventSql,
  {
    request,
    query,
    series,
    breakdown,
    formulas,
    interval,
    range,
  }: Omit<Series, "one" | "order" | "ranking"> & { series: JsonObject[]; formulas: Formula[] },
): string | undefined {
  if (formulas.length === 0 || breakdown === undefined) return undefined;
  const days = Math.max(0, ...series.map(({ math }) => getActiveDays(String(math), interval) ?? 0));
  const any = series.map((node) => `(${getConditions(store, node, query).join(" AND ")})`);
  return eventSource(store.dialect, request, days === 0 ? range : extendBack(range, interval, days), {
    columns: [`${breakdown.sql} AS value`],
    conditions: [`(${any.join(" OR ")})`],
    reads: { who: false, person: readsPersons(query, series) },
  });
}

/** Amount per bucket, and per breakdown value if there is a breakdown. */
type Amount = [value: string | null, bucket: string, amount: number | bigint];

const cumulative = "ActionsLineGraphCumulative";
/** Displays of a single value for the whole range; PostHog's names. */
const displaysOfTotals = ["BoldNumber", "ActionsTable", "ActionsPie", "ActionsBarValue", "WorldMap"];

async function computeSeries(store: EventSql, series: Series): Promise<JsonObject[]> {
  const { request, query, one, interval, range, breakdown, ranking } = series;
  const { dialect } = store;
  const limit = breakdown === undefined ? undefined : breakdownLimit(query);
  const { input, output, distinct, isSum = false } = getAggregate(store, one);
  const days = getActiveDays(String(one.math), interval);
  const display = isJsonObject(query.trendsFilter) ? String(query.trendsFilter.display) : "";
  const isCumulative = display === cumulative;
  if (isCumulative && !isSum && (distinct === undefined || days !== undefined)) {
    throw new UnknownQueryError(`The display ${cumulative} is not supported for the math ${one.math}.`);
  }
  const getFound = (bucket: string, within: Range) =>
    eventSource(dialect, request, within, {
      columns: [
        `${bucket} AS bucket`,
        ...(breakdown === undefined ? [] : [`${breakdown.sql} AS value`]),
        ...(input === undefined ? [] : [`${input} AS measured`]),
      ],
      conditions: getConditions(store, one, query),
      reads: { who: distinct === "who", person: readsPersons(query, [one]) },
    });
  const amountsBy = async (bucket: string, within: Range, counted = output) => {
    const found = getFound(bucket, within);
    const once = isCumulative ? distinct : undefined;
    return (await store.rows(
      amountsSql(dialect, { found, output: counted, limit, once, ranking }),
    )) as Amount[];
  };
  const getStart = (unit: Interval) => dialect.startOf(unit, "local_time", range.weekStartDay);
  const dataByValue = async () => {
    if (days === undefined) return perBucket(series, await amountsBy(getStart(interval), range));
    const found = getFound(getStart(activeUnit(interval)), extendBack(range, interval, days));
    const changes = (await store.rows(
      changesSql(dialect, { ...withRanks(dialect, found, limit, ranking), days }),
    )) as Change[];
    return activePerBucket(changes, range, interval);
  };
  const hasBreakdown = limit !== undefined;
  const byValue = await dataByValue();
  // Without a breakdown there is one value, also if no event was found.
  if (!hasBreakdown) {
    const [data = getBuckets(range, interval).map(() => 0)] = byValue.values();
    byValue.clear();
    byValue.set(null, data);
  }
  // Not derived from buckets: unique users and averages of days cannot be added up.
  const showsTotals = displaysOfTotals.includes(display);
  const getTotals = async (): Promise<Amount[]> => {
    const bucket = dialect.wallMoment(range.from);
    if (days === undefined) return await amountsBy(bucket, range);
    // Of the same events, so that the same values of a breakdown are shown.
    const from = dialect.wallMoment(lastDays(range, days).from);
    const counted = `count(DISTINCT CASE WHEN local_time >= ${from} THEN who END)`;
    return await amountsBy(bucket, extendBack(range, interval, days), counted);
  };
  const whole = showsTotals && !isSum ? await getTotals() : [];
  const totalByValue = new Map(whole.map(([value, , amount]) => [value, Number(amount)]));
  const valued = [...byValue].map(([value, amounts]) => {
    const data = isCumulative ? addedUp(amounts) : amounts;
    const count = isCumulative ? data.at(-1)! : amounts.reduce((sum, amount) => sum + amount, 0);
    return { value, data, count, figure: showsTotals && !isSum ? (totalByValue.get(value) ?? 0) : count };
  });
  return valued
    .sort((a, b) => b.figure - a.figure)
    .map(({ value, data, count, figure }) => ({
      ...described(series, value),
      count,
      data,
      ...(showsTotals ? { aggregated_value: figure } : {}),
    }));
}

/**
 * Common table expressions with the events that `found` selects, and how to read them.
 * @param limit of breakdown values: those with most events are separate, the rest is combined
 * @param ranking counts the events of other series too
 */
function withRanks(
  dialect: SqlDialect,
  found: string,
  limit: number | undefined,
  ranking: string | undefined,
): { source: string; from: string; shown: string } {
  if (limit === undefined) return { source: `found AS (${found})`, from: "found f", shown: "1" };
  return {
    source: `found ${dialect.asMaterialized} (${found}), ${ranked(ranking === undefined ? "found" : `(${ranking}) AS all_found`, "count(*)")}`,
    from: `found f ${withLocation}`,
    shown: shownValue(dialect, limit),
  };
}

/** Breakdown values in the order in which they are shown separately. */
const ranked = (counted: string, count: string) =>
  `ranked AS (SELECT value, row_number() OVER (ORDER BY ${count} DESC, value) AS rank FROM ${counted} GROUP BY value)`;
const withLocation = "JOIN ranked r ON f.value IS NOT DISTINCT FROM r.value";
const shownValue = (dialect: SqlDialect, limit: number) =>
  `CASE WHEN rank <= ${limit} THEN f.value ELSE ${dialect.text(otherValues)} END`;

/**
 * SQL for {@link Amount}s of the events that `found` selects.
 * @param limit of breakdown values: those with most events are separate, the rest is combined
 * @param once column of what is counted only in its first bucket
 */
function amountsSql(
  dialect: SqlDialect,
  {
    found,
    output,
    limit,
    once,
    ranking,
  }: {
    found: string;
    output: string;
    limit: number | undefined;
    once: string | undefined;
    ranking: string | undefined;
  },
): string {
  const at = `${dialect.wallText("bucket")} AS at`;
  if (limit === undefined) {
    const first = `SELECT min(bucket) AS came_at FROM (${found}) AS f WHERE ${once} IS NOT NULL GROUP BY ${once}`;
    return once === undefined
      ? `SELECT NULL AS shown, ${at}, ${output} AS amount FROM (${found}) AS f GROUP BY bucket ORDER BY bucket`
      : `SELECT NULL AS shown, ${at}, count(*) AS amount FROM (SELECT came_at AS bucket FROM (${first}) AS c) AS f
         GROUP BY bucket ORDER BY bucket`;
  }
  const shown = `${shownValue(dialect, limit)} AS shown`;
  // Event counts are additive, so the events are read only once.
  if (output === countOfEvents && ranking === undefined) {
    return `WITH counted ${dialect.asMaterialized} (
       SELECT value, bucket, count(*) AS times FROM (${found}) AS found GROUP BY value, bucket
     ), ${ranked("counted", "sum(times)")}
     SELECT ${shown}, ${at}, sum(f.times)::DOUBLE AS amount
     FROM counted f ${withLocation} GROUP BY ALL ORDER BY ALL`;
  }
  const { source, from } = withRanks(dialect, found, limit, ranking);
  const events = `WITH ${source}`;
  if (once === undefined)
    return `${events} SELECT ${shown}, ${at}, ${output} AS amount FROM ${from} GROUP BY ALL ORDER BY ALL`;
  return `${events} SELECT shown, ${at}, count(*) AS amount FROM (
       SELECT shown, came_at AS bucket FROM (
         SELECT ${shown}, f.${once} AS once, min(f.bucket) AS came_at FROM ${from}
         WHERE f.${once} IS NOT NULL GROUP BY ALL
       ) AS c
     ) AS f GROUP BY ALL ORDER BY ALL`;
}

/** The amounts of all buckets by breakdown value. */
function perBucket({ range, interval }: Series, amounts: readonly Amount[]): Map<string | null, number[]> {
  const byValue = new Map<string | null, Map<string, number>>();
  for (const [value, bucket, amount] of amounts) {
    const ofValue = byValue.get(value) ?? new Map<string, number>();
    byValue.set(value, ofValue.set(bucket, Number(amount)));
  }
  const buckets = getBuckets(range, interval);
  return new Map(
    [...byValue].map(([value, ofValue]) => [value, buckets.map(({ bucket }) => ofValue.get(bucket) ?? 0)]),
  );
}

/** Running totals. */
function addedUp(data: readonly number[]): number[] {
  let sum = 0;
  return data.map((amount) => (sum += amount));
}

/** Metadata of a result. */
function described({ one, order, interval, range, breakdown }: Series, value: string | null): JsonObject {
  const name = eventName(one);
  const buckets = getBuckets(range, interval);
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
    label: breakdown === undefined ? label : breakdown.label(value),
    labels: buckets.map((bucket) => bucket.label),
    days: buckets.map((bucket) => bucket.day),
    ...(breakdown === undefined ? {} : { breakdown_value: breakdown.parse(value) }),
  };
}

interface Aggregate {
  /** SQL for one event; `output` refers to it as `measured`. */
  input?: string;
  /** SQL for the events of a bucket. */
  output: string;
  /** The column whose distinct values are counted. */
  distinct?: "who" | "measured";
  /** Whether amounts of buckets can be added up. */
  isSum?: boolean;
}

const countOfEvents = "count(*)";

/** The aggregate of a series: SQL for one event, and for a bucket of events. */
function getAggregate(store: EventSql, node: JsonObject): Aggregate {
  const { dialect, eventProperties } = store;
  const math = String(node.math ?? "total");
  if (math === "total") return { output: countOfEvents, isSum: true };
  if (math === "dau" || isActiveUsers(math)) return { output: "count(DISTINCT who)", distinct: "who" };
  if (math === "unique_session") {
    const input = stringAt(dialect, eventProperties, "$session_id");
    return { input, output: "count(DISTINCT measured)", distinct: "measured" };
  }
  const property = node.math_property;
  const summary = getSummary(dialect, math);
  if (summary === undefined || typeof property !== "string") {
    throw new UnknownQueryError(`The math ${JSON.stringify(math)} is not supported.`);
  }
  return {
    input: dialect.number(looseStringAt(dialect, eventProperties, property)),
    output: `coalesce(${summary}, 0)`,
    isSum: math === "sum",
  };
}

const summaries = ["sum", "avg", "min", "max"];
const quantiles = new Map(Object.entries({ median: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 }));

function getSummary(dialect: SqlDialect, math: string): string | undefined {
  if (summaries.includes(math)) return `${math}(measured)`;
  const level = quantiles.get(math);
  return level === undefined ? undefined : dialect.quantile(level, "measured");
}
