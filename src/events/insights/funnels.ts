/**
 * Funnels: how many users completed a sequence of steps within a time window; in total, by start period, or by time to
 * convert. Source of queries and results: PostHog's `FunnelsQuery`.
 */

import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { getAverage, getMedian, withOthers } from "../duckdb/ordered-funnel.ts";
import { UnknownQueryError } from "../event-filters.ts";
import type { EventSql, Interval, PropertySql } from "../sql-dialect.ts";
import { getBreakdown } from "./breakdown.ts";
import { otherValues } from "./breakdown-values.ts";
import {
  eventName,
  getConditions,
  type InsightResults,
  intervalIn,
  objectsIn,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./event-source.ts";
import {
  type Funnel,
  foundSteps,
  orders,
  reuseCount,
  shownValues,
  startsReached,
  stepsReached,
} from "./funnel-sql.ts";
import { getBuckets, type Range } from "./trend-range.ts";
import { breakdownLimit } from "./validate-query.ts";

const stepsMax = 20;
const windowMax = 3_650;
/** Maximum bins of times to convert; by default derived from the number of users. */
const binsMax = 90;
const defaultBinsMax = 60;
const unitSeconds = new Map(
  Object.entries({
    second: 1,
    minute: 60,
    hour: 3_600,
    day: 86_400,
    week: 7 * 86_400,
    month: 30 * 86_400,
  }),
);

/**
 * Computes a funnel.
 * @returns steps: one object per step; with a breakdown one list of steps per value, largest first. Trends: one object,
 * or one per value, with the conversion rate in percent by start period. Times: one object with `bins` (lower bound in
 * seconds, number of users) and the average in seconds
 * @throws {UnknownQueryError}
 */
export async function computeFunnel(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<InsightResults> {
  const filter = isJsonObject(query.funnelsFilter) ? query.funnelsFilter : {};
  const funnel = funnelIn(store, query, filter);
  const shown = filter.funnelVizType ?? "steps";
  if (shown !== "steps" && shown !== "trends" && shown !== "time_to_convert") {
    throw new UnknownQueryError("Unsupported funnelVizType: use steps, trends or time_to_convert.");
  }
  const interval = shown === "trends" ? intervalIn(query) : "day";
  const range = await rangeIn(store, request, query, shown === "trends" ? interval : null);
  const found = foundSteps(request, funnel, { interval, range });
  if (shown === "trends") return await computeTrends(store, funnel, { found, interval, range });
  if (shown === "time_to_convert") return await computeTimes(store, funnel, { found, bins: binsIn(filter) });
  return await computeSteps(store, funnel, found);
}

/** The steps, order and window of a funnel. @throws {UnknownQueryError} */
export function funnelIn(store: PropertySql, query: JsonObject, filter: JsonObject): Funnel {
  const steps = objectsIn(query.series);
  if (steps.length < 1 || steps.length > stepsMax) {
    throw new UnknownQueryError(`A funnel requires 1 to ${stepsMax} steps.`);
  }
  const order = orders.find((name) => name === (filter.funnelOrderType ?? "ordered"));
  if (order === undefined) {
    throw new UnknownQueryError(`Unknown funnelOrderType ${JSON.stringify(filter.funnelOrderType)}.`);
  }
  const from = stepIn(filter.funnelFromStep ?? 0, steps);
  const to = stepIn(filter.funnelToStep ?? steps.length - 1, steps);
  if (from > to) throw new UnknownQueryError("funnelFromStep must be before funnelToStep.");
  return {
    dialect: store.dialect,
    steps,
    order,
    from,
    to,
    windowMicros: getWindow(filter) * 1e6,
    breakdown: getBreakdown(store, query)?.sql,
    breakdownMax: breakdownLimit(query),
    needsPersons: readsPersons(query, steps),
    conditions: steps.map((step) => `(${getConditions(store, step, query).join(" AND ")})`),
  };
}

function stepIn(written: unknown, steps: readonly JsonObject[]): number {
  if (typeof written === "number" && Number.isInteger(written) && written >= 0 && written < steps.length)
    return written;
  throw new UnknownQueryError(`Invalid funnel step ${JSON.stringify(written)}: steps start at 0.`);
}

async function computeSteps(
  store: EventSql,
  funnel: Funnel,
  found: string,
): Promise<JsonObject[] | JsonObject[][]> {
  const { steps, order, breakdown } = funnel;
  const byValue = new Map<string | null, Map<number, [number, number, number]>>();
  if (breakdown === undefined) byValue.set(null, new Map());
  for (const [value, step, ...facts] of await stepRows(store, funnel, found)) {
    const own = byValue.get(value) ?? new Map<number, [number, number, number]>();
    byValue.set(value, own.set(Number(step), facts));
  }
  const series = [...byValue].map(([value, own]) =>
    steps.map((step, index): JsonObject => {
      const [count = 0, average = null, median = null] = own.get(index) ?? [];
      return {
        ...(order === "unordered"
          ? {
              action_id: null,
              name: `Completed ${index + 1} step${index === 0 ? "" : "s"}`,
              custom_name: null,
            }
          : { action_id: step.event ?? null, name: eventName(step), custom_name: step.custom_name ?? null }),
        order: index,
        type: "events",
        count,
        average_conversion_time: index === 0 ? null : average,
        median_conversion_time: index === 0 ? null : median,
        ...(breakdown === undefined ? {} : { breakdown: [value ?? ""], breakdown_value: [value ?? ""] }),
      };
    }),
  );
  if (breakdown === undefined) return series[0]!;
  return series.sort((a, b) => Number(b[0]!.count) - Number(a[0]!.count));
}

/** Number of users who reached a step, with average and median seconds since the previous step. */
type StepRow = [value: string | null, step: number, people: number, average: number, median: number];

async function stepRows(store: EventSql, funnel: Funnel, found: string): Promise<StepRow[]> {
  const { dialect, steps, order, windowMicros, breakdown } = funnel;
  if (order === "ordered" && store.walkOrdered !== undefined) {
    const hasValues = breakdown !== undefined;
    const times = await store.walkOrdered(found, { count: steps.length, windowMicros, hasValues });
    return [...withOthers(times, funnel.breakdownMax, otherValues)].flatMap(([value, own]) =>
      own.flatMap((stepTimes, step): StepRow[] =>
        stepTimes.length === 0
          ? []
          : [[value, step, stepTimes.length, getAverage(stepTimes) / 1e6, getMedian(stepTimes) / 1e6]],
      ),
    );
  }
  const rows = await store.rows(
    `WITH found ${dialect.asMaterialized} (${found}), ${stepsReached[order](funnel)}, ${shownValues(funnel)}
     SELECT s.value AS value, r.step AS step, count(*)::DOUBLE AS persons, avg(r.took) / 1e6 AS average,
       ${dialect.quantile(0.5, "r.took")} / 1e6 AS median
     FROM reached r JOIN shown s ON s.who = r.who GROUP BY ALL ORDER BY ALL`,
  );
  return rows as StepRow[];
}

async function computeTrends(
  store: EventSql,
  funnel: Funnel,
  { found, interval, range }: { found: string; interval: Interval; range: Range },
): Promise<JsonObject[]> {
  const { dialect, order, from, to, breakdown } = funnel;
  const rows = await store.rows(
    `WITH found ${dialect.asMaterialized} (${found}), ${startsReached[order](funnel)}, ${shownValues(funnel)},
     best AS (SELECT who, bucket, max(step) AS step FROM starts GROUP BY ALL)
     SELECT s.value AS value, ${dialect.wallText("b.bucket")} AS at,
       (count(*) FILTER (WHERE b.step >= ${from}))::DOUBLE AS began,
       (count(*) FILTER (WHERE b.step >= ${to}))::DOUBLE AS got
     FROM best b JOIN shown s ON s.who = b.who GROUP BY ALL ORDER BY ALL`,
  );
  const byValue = new Map<string | null, Map<string, [number, number]>>();
  if (breakdown === undefined) byValue.set(null, new Map());
  for (const [value, bucket, ...counts] of rows as [string | null, string, number, number][]) {
    const own = byValue.get(value) ?? new Map<string, [number, number]>();
    byValue.set(value, own.set(bucket, counts));
  }
  const buckets = getBuckets(range, interval);
  const series = [...byValue].map(([value, own]) => {
    const counts = buckets.map(({ bucket }): [number, number] => own.get(bucket) ?? [0, 0]);
    const started = counts.map(([count]) => count);
    const result: JsonObject = {
      count: buckets.length,
      data: counts.map(([first, last]) => (first === 0 ? 0 : Math.round((last / first) * 10_000) / 100)),
      days: buckets.map(({ day }) => day),
      labels: buckets.map(({ label }) => label),
      reached_from_step_count: started,
      reached_to_step_count: counts.map(([, count]) => count),
    };
    if (breakdown !== undefined) result.breakdown_value = [value ?? ""];
    return { result, size: started.reduce((sum, count) => sum + count, 0) };
  });
  return series.sort((a, b) => b.size - a.size).map(({ result }) => result);
}

/** Times to convert from one step to a later one, on each user's first completed path. */
async function computeTimes(
  store: EventSql,
  funnel: Funnel,
  { found, bins }: { found: string; bins: number | undefined },
): Promise<JsonObject> {
  const { dialect, order, from, to, breakdown } = funnel;
  if (from === to) throw new UnknownQueryError("funnelFromStep must be before funnelToStep.");
  if (breakdown !== undefined) throw new UnknownQueryError("time_to_convert does not support a breakdown.");
  // Rounded first: the ceiling of an integer cube root must not depend on the last bit.
  const count = bins ?? `least(${defaultBinsMax}, ceil(round(cbrt(people), 6)))`;
  const rows = (await store.rows(
    `WITH found ${dialect.asMaterialized} (${found}), ${reuseCount[order](funnel)},
     facts AS (
       SELECT count(*) AS people, floor(min(took) / 1e6) AS shortest, ceil(max(took) / 1e6) AS longest, avg(took) / 1e6 AS average
       FROM taken
     ),
     binned AS (SELECT shortest, average, ${count} AS bins, ceil((longest - shortest) / bins) AS exact FROM facts),
     wide AS (SELECT shortest, average, bins, CASE WHEN exact > 0 THEN exact ELSE 60 END AS width FROM binned)
     SELECT floor((t.took / 1e6 - w.shortest) / w.width)::DOUBLE AS bin, count(*)::DOUBLE AS people,
       w.shortest::DOUBLE AS shortest, w.width::DOUBLE AS width, w.bins::DOUBLE AS bins, w.average::DOUBLE AS average
     FROM taken t CROSS JOIN wide w GROUP BY ALL`,
  )) as number[][];
  const [first] = rows;
  if (first === undefined) return { bins: [], average_conversion_time: null };
  const [, , shortest = 0, width = 0, number = 0, average = 0] = first;
  const people = new Map(rows.map(([bin, count]) => [bin, count]));
  return {
    // One more than the number of bins: the maximum time is the lower bound of the last one.
    bins: Array.from({ length: number + 1 }, (_, bin) => [shortest + bin * width, people.get(bin) ?? 0]),
    average_conversion_time: average,
  };
}

/** @throws {UnknownQueryError} */
function binsIn({ binCount: count = null }: JsonObject): number | undefined {
  if (count === null) return undefined;
  if (typeof count === "number" && Number.isInteger(count) && count >= 1 && count <= binsMax) return count;
  throw new UnknownQueryError(`\`binCount\` must be 1 to ${binsMax}.`);
}

function getWindow(filter: JsonObject): number {
  const unit = unitSeconds.get(String(filter.funnelWindowIntervalUnit ?? "day"));
  const count = Number(filter.funnelWindowInterval ?? 14);
  if (unit === undefined || !Number.isFinite(count) || count <= 0 || count > windowMax) {
    throw new UnknownQueryError("Invalid funnel window.");
  }
  return unit * count;
}
