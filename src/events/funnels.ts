/**
 * Funnels: how many people did a first thing, and of these how many a second after it, and so on, within a time; in total,
 * or by when they began.
 *
 * Who has reached a step of an ordered funnel is found with the latest possible start: of two ways through the steps so far
 * the one that began later has at least as much time left, so one number per person and step is enough. By period each
 * start counts for itself, and goes on with the first event of the next step.
 * Source of the queries and answers: PostHog's `FunnelsQuery`.
 */

import { isJsonObject, type JsonObject } from "../lib/json.ts";
import type { Dialect, EventSql } from "./dialect.ts";
import { UnknownQuery } from "./event-filters.ts";
import { averageOf, medianOf, withOthers } from "./ordered-funnel.ts";
import { bucketsOf, type Interval, type Range } from "./trend-range.ts";
import {
  breakdownOf,
  breakdownValuesMax,
  conditionsOf,
  eventName,
  foundEvents,
  intervalIn,
  objectsIn,
  otherValues,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./trends.ts";

const stepsMax = 20;
const windowMax = 3_650;
const unitSeconds: Record<string, number> = {
  ...{ second: 1, minute: 60, hour: 3_600 },
  ...{ day: 86_400, week: 7 * 86_400, month: 30 * 86_400 },
};

/** `strict`: nothing else in between. `unordered`: each step once, in any order. */
const orders = ["ordered", "strict", "unordered"] as const;
type Order = (typeof orders)[number];

interface Funnel {
  dialect: Dialect;
  steps: JsonObject[];
  /** SQL for whether an event is the step. */
  conditions: string[];
  order: Order;
  /** Of whoever reached the one, how many reached the other; for trends. */
  from: number;
  to: number;
  windowMicros: number;
  breakdown: string | undefined;
  needsPersons: boolean;
}

/**
 * Computes a funnel.
 *
 * @returns one object per step; with a breakdown one list of steps per value, the largest first. Trends: one object, or one
 *          per value, with the share of people (in percent) who got through, by the period they began in.
 * @throws {UnknownQuery}
 */
export async function computeFunnel(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[] | JsonObject[][]> {
  const filter = isJsonObject(query.funnelsFilter) ? query.funnelsFilter : {};
  const funnel = funnelIn(store, query, filter);
  const shown = filter.funnelVizType ?? "steps";
  if (shown !== "steps" && shown !== "trends") {
    throw new UnknownQuery("Only the steps and the trends of a funnel can be computed.");
  }
  const interval = shown === "trends" ? intervalIn(query) : "day";
  const range = await rangeIn(store, request, query, interval);
  const found = foundSteps(request, funnel, { interval, range });
  if (shown === "trends") return await computeTrends(store, funnel, { found, interval, range });
  return await computeSteps(store, funnel, found);
}

/** @throws {UnknownQuery} */
function funnelIn(store: EventSql, query: JsonObject, filter: JsonObject): Funnel {
  const steps = objectsIn(query.series);
  if (steps.length < 1 || steps.length > stepsMax) {
    throw new UnknownQuery(`A funnel needs 1 to ${stepsMax} steps.`);
  }
  const order = orders.find((name) => name === (filter.funnelOrderType ?? "ordered"));
  if (order === undefined) {
    throw new UnknownQuery(`The order ${JSON.stringify(filter.funnelOrderType)} is not known.`);
  }
  const from = stepIn(filter.funnelFromStep ?? 0, steps);
  const to = stepIn(filter.funnelToStep ?? steps.length - 1, steps);
  if (from > to) throw new UnknownQuery("A funnel goes from an earlier step to a later one.");
  return {
    ...{ dialect: store.dialect, steps, order, from, to, windowMicros: windowOf(filter) * 1e6 },
    breakdown: breakdownOf(store, query),
    needsPersons: readsPersons(query, steps),
    conditions: steps.map((step) => `(${conditionsOf(store, step, query).join(" AND ")})`),
  };
}

function stepIn(written: unknown, steps: readonly JsonObject[]): number {
  if (typeof written === "number" && Number.isInteger(written) && written >= 0 && written < steps.length)
    return written;
  throw new UnknownQuery(`The funnel has no step ${JSON.stringify(written)}; the first is 0.`);
}

/** SQL for the events of the steps, of a strict funnel for all: whose, when, in which period, which steps they are. */
function foundSteps(
  request: TrendsRequest,
  { dialect, conditions, order, breakdown, needsPersons }: Funnel,
  { interval, range }: { interval: Interval; range: Range },
): string {
  return foundEvents(dialect, request, range, {
    columns: [
      `${dialect.micros(dialect.time("e"))} AS moment, e.historical AS lane, e.seq AS seq`,
      `${dialect.startOf(interval, "local_time")} AS bucket`,
      `${breakdown ?? "NULL::VARCHAR"} AS value`,
      ...conditions.map((condition, index) => `coalesce(${condition}, false) AS is_${index}`),
    ],
    conditions: order === "strict" ? [] : [`(${conditions.join(" OR ")})`],
    reads: { person: needsPersons },
  });
}

/** SQL for what each person's funnel is told apart by: the value when it first began. */
function shownValues({ dialect, order }: Funnel): string {
  return `begun AS (
       SELECT who, ${dialect.valueAtLeast("value", "moment")} AS value FROM found ${order === "unordered" ? "" : "WHERE is_0"} GROUP BY who
     ),
     ranked AS (
       SELECT value, row_number() OVER (ORDER BY count(*) DESC, value) AS place FROM begun GROUP BY value
     ),
     shown AS (
       SELECT b.who AS who, CASE WHEN r.place <= ${breakdownValuesMax} THEN b.value ELSE ${dialect.text(otherValues)} END AS value
       FROM begun b JOIN ranked r ON r.value IS NOT DISTINCT FROM b.value
     )`;
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
    steps.map((step, place): JsonObject => {
      const [count = 0, average = null, median = null] = own.get(place) ?? [];
      return {
        ...(order === "unordered"
          ? {
              action_id: null,
              name: `Completed ${place + 1} step${place === 0 ? "" : "s"}`,
              custom_name: null,
            }
          : { action_id: step.event ?? null, name: eventName(step), custom_name: step.custom_name ?? null }),
        ...{ order: place, type: "events", count },
        average_conversion_time: place === 0 ? null : average,
        median_conversion_time: place === 0 ? null : median,
        ...(breakdown === undefined ? {} : { breakdown: [value ?? ""], breakdown_value: [value ?? ""] }),
      };
    }),
  );
  if (breakdown === undefined) return series[0]!;
  return series.sort((one, other) => Number(other[0]!.count) - Number(one[0]!.count));
}

/** How many people of a value got to a step, and the seconds since the step before it on average and in the middle. */
type StepRow = [value: string | null, step: number, people: number, average: number, median: number];

async function stepRows(store: EventSql, funnel: Funnel, found: string): Promise<StepRow[]> {
  const { dialect, steps, order, windowMicros } = funnel;
  if (order === "ordered" && store.walkOrdered !== undefined) {
    const times = await store.walkOrdered(found, { count: steps.length, windowMicros });
    return [...withOthers(times, breakdownValuesMax, otherValues)].flatMap(([value, own]) =>
      own.flatMap((took, step): StepRow[] =>
        took.length === 0 ? [] : [[value, step, took.length, averageOf(took) / 1e6, medianOf(took) / 1e6]],
      ),
    );
  }
  const rows = await store.rows(
    `WITH found ${dialect.madeOnce} (${found}), ${stepsReached[order](funnel)}, ${shownValues(funnel)}
     SELECT s.value AS value, r.step AS step, count(*)::DOUBLE AS persons, avg(r.took) / 1e6 AS average,
       ${dialect.quantile(0.5, "r.took")} / 1e6 AS median
     FROM reached r JOIN shown s ON s.who = r.who GROUP BY ALL ORDER BY ALL`,
  );
  return rows as StepRow[];
}

/** SQL for `reached`: who got to which step, and how long after the step before it. */
const stepsReached: Record<Order, (funnel: Funnel) => string> = {
  ordered: ({ dialect, steps, windowMicros }) => `
     step_0 AS (SELECT who, moment, lane, seq, moment AS start, 0 AS took FROM found WHERE is_0)
     ${steps
       .slice(1)
       .map((_, index) => layer(dialect, index + 1, windowMicros))
       .join("")},
     reached AS (${allSteps(steps, (index) => `SELECT ${index} AS step, who, ${dialect.valueAtLeast("took", "moment")} AS took FROM step_${index} GROUP BY who`)})`,
  strict: (funnel) => `${inARow(funnel)},
     reached AS (${allSteps(
       funnel.steps,
       (index) =>
         `SELECT ${index} AS step, who,
            ${funnel.dialect.valueAtLeast(`moment_${index} - moment_${Math.max(0, index - 1)}`, `moment_${index}`)} AS took
          FROM rows WHERE got_${index} GROUP BY who`,
     )})`,
  unordered: (funnel) => `${completed(funnel)},
     best AS (
       SELECT who, moment AS start FROM counted
       QUALIFY row_number() OVER (PARTITION BY who ORDER BY completed DESC, moment, lane, seq) = 1
     ),
     met AS (${parts(funnel)
       .map(
         ({ step, times }) =>
           `SELECT f.who AS who, f.moment AS moment, f.lane AS lane, f.seq AS seq, ${step} AS part FROM found f JOIN best b ON b.who = f.who
            WHERE f.is_${step} AND f.moment BETWEEN b.start AND b.start + ${funnel.windowMicros}
            QUALIFY row_number() OVER (PARTITION BY f.who ORDER BY f.moment, f.lane, f.seq) <= ${times}`,
       )
       .join(" UNION ALL ")}),
     reached AS (
       SELECT who, row_number() OVER one - 1 AS step, moment - lag(moment, 1, moment) OVER one AS took FROM met
       WINDOW one AS (PARTITION BY who ORDER BY moment, lane, seq, part)
     )`,
};

const allSteps = (steps: readonly unknown[], one: (index: number) => string) =>
  steps.map((_, index) => one(index)).join(" UNION ALL ");

/** Each way through the steps so far goes on with the first event of the next one that comes after it, in time. */
function layer(dialect: Dialect, step: number, windowMicros: number): string {
  // The first member says that there is a way at all.
  const start = dialect.ofTriple("best", 2);
  const before = dialect.ofTriple("best", 3);
  // Of one event that is both steps, the earlier step's row comes last: nothing comes after itself.
  return `,
     step_${step} AS (
       SELECT who, moment, lane, seq, ${start} AS start, moment - ${before} AS took FROM (
         SELECT who, moment, lane, seq, is_next,
           max(way) OVER (
             PARTITION BY who ORDER BY moment, lane, seq, is_next DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS best
         FROM (
           SELECT who, moment, lane, seq, ${dialect.triple("1", "start", "moment")} AS way, false AS is_next FROM step_${step - 1}
           UNION ALL
           SELECT who, moment, lane, seq, ${dialect.triple("0", "0", "0")} AS way, true AS is_next FROM found WHERE is_${step}
         ) AS ways
       ) AS ends WHERE is_next AND ${dialect.ofTriple("best", 1)} = 1 AND moment - ${start} <= ${windowMicros}
     )`;
}

/** SQL for `rows`: of each event of a first step, which steps the events right behind it are. */
function inARow({ steps, windowMicros }: Funnel): string {
  const behind = steps.slice(1).map((_, index) => index + 1);
  return `placed AS (
       SELECT who, bucket, moment AS moment_0, is_0 AS got_0
         ${behind.map((n) => `, lead(moment, ${n}) OVER one AS moment_${n}, lead(is_${n}, ${n}) OVER one AS next_${n}`).join("")}
       FROM found WINDOW one AS (PARTITION BY who ORDER BY moment, lane, seq)
     ),
     rows AS (
       SELECT *${behind
         .map((n) => {
           const all = behind.slice(0, n).map((before) => `next_${before}`);
           return `, coalesce(${all.join(" AND ")} AND moment_${n} - moment_0 <= ${windowMicros}, false) AS got_${n}`;
         })
         .join("")}
       FROM placed WHERE got_0
     )`;
}

/** Steps that are the same thing are one part that is needed several times. */
function parts({ conditions }: Funnel): { step: number; times: number }[] {
  return [...new Set(conditions)].map((condition) => ({
    step: conditions.indexOf(condition),
    times: conditions.filter((other) => other === condition).length,
  }));
}

/** SQL for `counted`: for each event, how many steps were done from it on, in time. */
function completed(funnel: Funnel): string {
  const { dialect, windowMicros } = funnel;
  if (!dialect.hasLongRanges) return completedBySums(funnel);
  const sum = parts(funnel)
    .map(({ step, times }) => `least(${times}, count(*) FILTER (WHERE is_${step}) OVER ahead)`)
    .join(" + ");
  return `counted AS (
       SELECT who, bucket, moment, lane, seq, ${sum} AS completed FROM found
       WINDOW ahead AS (
         PARTITION BY who ORDER BY moment RANGE BETWEEN CURRENT ROW AND ${windowMicros} FOLLOWING
       )
     )`;
}

/** The same by what was done up to the end of the time, less what was done before the event. */
function completedBySums(funnel: Funnel): string {
  const all = parts(funnel);
  const done = all.map(
    ({ step }) => `count(*) FILTER (WHERE is_${step}) OVER so_far AS done_${step},
         count(*) FILTER (WHERE is_${step}) OVER so_far - count(*) FILTER (WHERE is_${step}) OVER now AS before_${step}`,
  );
  const sum = all.map(({ step, times }) => `least(${times}, u.done_${step} - f.before_${step})`).join(" + ");
  return `summed AS (
       SELECT who, bucket, moment, lane, seq, moment + ${funnel.windowMicros} AS until, ${done.join(", ")} FROM found
       WINDOW so_far AS (PARTITION BY who ORDER BY moment RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
         now AS (PARTITION BY who, moment)
     ),
     counted AS (
       SELECT f.who AS who, f.bucket AS bucket, f.moment AS moment, f.lane AS lane, f.seq AS seq, ${sum} AS completed
       FROM summed f ASOF JOIN summed u ON u.who = f.who AND u.moment <= f.until
     )`;
}

async function computeTrends(
  store: EventSql,
  funnel: Funnel,
  { found, interval, range }: { found: string; interval: Interval; range: Range },
): Promise<JsonObject[]> {
  const { dialect, order, from, to, breakdown } = funnel;
  const rows = await store.rows(
    `WITH found ${dialect.madeOnce} (${found}), ${startsReached[order](funnel)}, ${shownValues(funnel)},
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
  const buckets = bucketsOf(range, interval);
  const series = [...byValue].map(([value, own]) => {
    const reached = buckets.map(({ bucket }): [number, number] => own.get(bucket) ?? [0, 0]);
    const began = reached.map(([count]) => count);
    const result: JsonObject = {
      count: buckets.length,
      data: reached.map(([first, last]) => (first === 0 ? 0 : Math.round((last / first) * 10_000) / 100)),
      days: buckets.map(({ day }) => day),
      labels: buckets.map(({ label }) => label),
      reached_from_step_count: began,
      reached_to_step_count: reached.map(([, count]) => count),
    };
    if (breakdown !== undefined) result.breakdown_value = [value ?? ""];
    return { result, size: began.reduce((sum, count) => sum + count, 0) };
  });
  return series.sort((one, other) => other.size - one.size).map(({ result }) => result);
}

/** SQL for `starts`: of each event that begins the funnel, in which period it was and what was reached from it. */
const startsReached: Record<Order, (funnel: Funnel) => string> = {
  ordered: ({ dialect, steps, windowMicros }) => `
     placed ${dialect.madeOnce} (
       SELECT *, row_number() OVER (PARTITION BY who ORDER BY moment, lane, seq) AS place FROM found
     ),
     way_0 AS (SELECT who, bucket, moment AS began, place FROM placed WHERE is_0)
     ${steps
       .slice(1)
       .map(
         (_, index) => `,
     way_${index + 1} AS (
       SELECT w.who AS who, w.bucket AS bucket, w.began AS began, n.place AS place FROM way_${index} w
       ASOF JOIN (SELECT who, place, moment FROM placed WHERE is_${index + 1}) n ON n.who = w.who AND n.place > w.place
       WHERE n.moment - w.began <= ${windowMicros}
     )`,
       )
       .join("")},
     starts AS (${allSteps(steps, (index) => `SELECT who, bucket, ${index} AS step FROM way_${index}`)})`,
  strict: (funnel) => `${inARow(funnel)},
     starts AS (${allSteps(funnel.steps, (index) => `SELECT who, bucket, ${index} AS step FROM rows WHERE got_${index}`)})`,
  unordered: (funnel) => `${completed(funnel)},
     starts AS (SELECT who, bucket, completed - 1 AS step FROM counted)`,
};

function windowOf(filter: JsonObject): number {
  const unit = unitSeconds[String(filter.funnelWindowIntervalUnit ?? "day")];
  const count = Number(filter.funnelWindowInterval ?? 14);
  if (unit === undefined || !Number.isFinite(count) || count <= 0 || count > windowMax) {
    throw new UnknownQuery("The funnel's window cannot be read.");
  }
  return unit * count;
}
