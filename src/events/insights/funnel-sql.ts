/**
 * SQL for the paths through a funnel. For ordered funnels, the latest possible start per person and step suffices: of
 * two paths to a step, the one that started later has at least as much time left. For trends and times, each start
 * counts separately and continues with the first event of the next step.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import type { Interval, SqlDialect } from "../sql-dialect.ts";
import { otherValues } from "./breakdown-values.ts";
import { eventSource, type TrendsRequest } from "./event-source.ts";
import type { Range } from "./trend-range.ts";

/** `strict`: no other events in between. `unordered`: each step once, in any order. */
export const orders = ["ordered", "strict", "unordered"] as const;
export type Order = (typeof orders)[number];

export interface Funnel {
  dialect: SqlDialect;
  steps: JsonObject[];
  /** SQL for whether an event matches the step. */
  conditions: string[];
  order: Order;
  /** Steps between which conversion is measured, for trends and times. */
  from: number;
  to: number;
  windowMicros: number;
  breakdown: string | undefined;
  /** Number of breakdown values shown separately. */
  breakdownMax: number;
  needsPersons: boolean;
}

/** SQL for the events that match a step (all events for a strict funnel): person, time, period and matching steps. */
export function foundSteps(
  request: TrendsRequest,
  { dialect, conditions, order, breakdown, needsPersons }: Funnel,
  { interval, range }: { interval: Interval; range: Range },
): string {
  return eventSource(dialect, request, range, {
    columns: [
      `${dialect.micros(dialect.time("e"))} AS moment, e.historical AS lane, e.seq AS seq`,
      `${dialect.startOf(interval, "local_time", range.weekStartDay)} AS bucket`,
      `${breakdown ?? "NULL::VARCHAR"} AS value`,
      ...conditions.map((condition, index) => `coalesce(${condition}, false) AS is_${index}`),
    ],
    conditions: order === "strict" ? [] : [`(${conditions.join(" OR ")})`],
    reads: { person: needsPersons },
  });
}

/** Order of simultaneous events: by arrival, historical ones last. */
const arrival = (dialect: SqlDialect) => dialect.triple("moment", "lane", "seq");

/** SQL for each person's breakdown value: the value at their first start. */
export function shownValues({ dialect, order, breakdownMax }: Funnel): string {
  return `begun AS (
       SELECT who, ${dialect.valueAtLeast("value", arrival(dialect))} AS value FROM found ${order === "unordered" ? "" : "WHERE is_0"} GROUP BY who
     ),
     ranked AS (
       SELECT value, row_number() OVER (ORDER BY count(*) DESC, value) AS rank FROM begun GROUP BY value
     ),
     shown AS (
       SELECT b.who AS who, CASE WHEN r.rank <= ${breakdownMax} THEN b.value ELSE ${dialect.text(otherValues)} END AS value
       FROM begun b JOIN ranked r ON r.value IS NOT DISTINCT FROM b.value
     )`;
}

/** SQL for `reached`: persons by reached step, with the time since the previous step. */
export const stepsReached: Record<Order, (funnel: Funnel) => string> = {
  ordered: ({ dialect, steps, windowMicros }) => `
     step_0 AS (SELECT who, moment, lane, seq, moment AS start, 0 AS took FROM found WHERE is_0)
     ${steps
       .slice(1)
       .map((_, index) => layer(dialect, index + 1, windowMicros))
       .join("")},
     reached AS (${allSteps(steps, (index) => `SELECT ${index} AS step, who, ${dialect.valueAtLeast("took", arrival(dialect))} AS took FROM step_${index} GROUP BY who`)})`,
  strict: (funnel) => `${strictPaths(funnel)},
     reached AS (${allSteps(
       funnel.steps,
       (index) =>
         `SELECT ${index} AS step, who,
            ${funnel.dialect.valueAtLeast(`moment_${index} - moment_${Math.max(0, index - 1)}`, "position")} AS took
          FROM rows WHERE got_${index} GROUP BY who`,
     )})`,
  unordered: (funnel) => `${completed(funnel)},
     best AS (
       SELECT who, moment AS start FROM counted
       QUALIFY row_number() OVER (PARTITION BY who ORDER BY completed DESC, moment, lane, seq) = 1
     ),
     ${partsMet(funnel)}`,
};

/**
 * SQL for `reached` from `best`: the steps completed within the window from each person's start, in order of
 * completion.
 */
function partsMet(funnel: Funnel): string {
  return `met AS (${parts(funnel)
    .map(
      ({ step, times }) =>
        `SELECT f.who AS who, f.moment AS moment, f.lane AS lane, f.seq AS seq, ${step} AS part FROM found f JOIN best b ON b.who = f.who
            WHERE f.is_${step} AND f.moment BETWEEN b.start AND b.start + ${funnel.windowMicros}
            QUALIFY row_number() OVER (PARTITION BY f.who ORDER BY f.moment, f.lane, f.seq) <= ${times}`,
    )
    .join(" UNION ALL ")}),
     reached AS (
       SELECT who, row_number() OVER one - 1 AS step, moment, moment - lag(moment, 1, moment) OVER one AS took FROM met
       WINDOW one AS (PARTITION BY who ORDER BY moment, lane, seq, part)
     )`;
}

const allSteps = (steps: readonly unknown[], getStep: (index: number) => string) =>
  steps.map((_, index) => getStep(index)).join(" UNION ALL ");

/** Each path continues with the next step's first event after it, within the window. */
function layer(dialect: SqlDialect, step: number, windowMicros: number): string {
  // The tuple's first member is 1 if a path exists.
  const start = dialect.ofTriple("best", 2);
  const before = dialect.ofTriple("best", 3);
  // For an event that matches both steps, the previous step's row is sorted last: an event does not follow itself.
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

/** SQL for `rows`: for each first-step event, whether the directly following events match the next steps. */
function strictPaths({ steps, windowMicros }: Funnel): string {
  const behind = steps.slice(1).map((_, index) => index + 1);
  return `numbered AS (
       SELECT who, bucket, moment AS moment_0, is_0 AS got_0, row_number() OVER one AS position
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
       FROM numbered WHERE got_0
     )`;
}

/** Identical steps are one part that is required several times. */
function parts({ conditions }: Funnel): { step: number; times: number }[] {
  return [...new Set(conditions)].map((condition) => ({
    step: conditions.indexOf(condition),
    times: conditions.filter((other) => other === condition).length,
  }));
}

/** SQL for `counted`: for each event, the number of steps completed from it within the window. */
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

/** Like `completed`, as the count up to the end of the window minus the count before the event. */
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

/** SQL for `starts`: for each start of the funnel, its period and the reached steps. */
export const startsReached: Record<Order, (funnel: Funnel) => string> = {
  ordered: (funnel) => `${orderedPaths(funnel)},
     starts AS (${allSteps(funnel.steps, (index) => `SELECT who, bucket, ${index} AS step FROM way_${index}`)})`,
  strict: (funnel) => `${strictPaths(funnel)},
     starts AS (${allSteps(funnel.steps, (index) => `SELECT who, bucket, ${index} AS step FROM rows WHERE got_${index}`)})`,
  unordered: (funnel) => `${completed(funnel)},
     starts AS (SELECT who, bucket, completed - 1 AS step FROM counted)`,
};

/** SQL for `way_0`, `way_1`, …: each start continues with the first event of the next step. */
function orderedPaths({ dialect, steps, windowMicros }: Funnel): string {
  return `
     numbered ${dialect.asMaterialized} (
       SELECT *, row_number() OVER (PARTITION BY who ORDER BY moment, lane, seq) AS position FROM found
     ),
     way_0 AS (SELECT who, bucket, moment AS began, moment, position, position AS start FROM numbered WHERE is_0)
     ${steps
       .slice(1)
       .map(
         (_, index) => `,
     way_${index + 1} AS (
       SELECT w.who AS who, w.bucket AS bucket, w.began AS began, n.moment AS moment, n.position AS position, w.start AS start
       FROM way_${index} w
       ASOF JOIN (SELECT who, position, moment FROM numbered WHERE is_${index + 1}) n ON n.who = w.who AND n.position > w.position
       WHERE n.moment - w.began <= ${windowMicros}
     )`,
       )
       .join("")}`;
}

/** SQL for `taken`: each person's time from one step to the other. */
export const reuseCount: Record<Order, (funnel: Funnel) => string> = {
  ordered: (funnel) => `${orderedPaths(funnel)},
     taken AS (
       SELECT t.who AS who, ${funnel.dialect.valueAtLeast("t.moment - f.moment", "t.start")} AS took
       FROM way_${funnel.to} t JOIN way_${funnel.from} f ON f.who = t.who AND f.start = t.start GROUP BY t.who
     )`,
  strict: (funnel) => `${strictPaths(funnel)},
     taken AS (
       SELECT who, ${funnel.dialect.valueAtLeast(`moment_${funnel.to} - moment_${funnel.from}`, "position")} AS took
       FROM rows WHERE got_${funnel.to} GROUP BY who
     )`,
  unordered: (funnel) => `${completed(funnel)},
     best AS (
       SELECT who, moment AS start FROM counted WHERE completed > ${funnel.to}
       QUALIFY row_number() OVER (PARTITION BY who ORDER BY moment, lane, seq) = 1
     ),
     ${partsMet(funnel)},
     taken AS (
       SELECT t.who AS who, t.moment - f.moment AS took FROM reached t JOIN reached f ON f.who = t.who AND f.step = ${funnel.from}
       WHERE t.step = ${funnel.to}
     )`,
};
