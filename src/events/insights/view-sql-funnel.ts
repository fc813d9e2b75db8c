/** Funnels as SQL over the views, and the persons of a step or of a time to convert. */

import { viewSql } from "../duckdb/sql-dialect.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { quoted } from "../sql-text.ts";
import type { Funnel } from "./funnel-sql.ts";
import { funnelIn } from "./funnels.ts";
import {
  type Figure,
  identifier,
  localTime,
  part,
  personJoin,
  rangeConditions,
  startOf,
  type ViewQuery,
  who,
} from "./view-sql-query.ts";

/** A funnel whose conditions are over the views. */
interface ViewFunnel extends ViewQuery {
  funnel: Funnel;
  shape: string;
  /** SQL of the time within which persons convert. */
  window: string;
}

const daySeconds = 86_400;

function readFunnel(view: ViewQuery): ViewFunnel {
  const filter = part(view.query, "funnelsFilter");
  const funnel = funnelIn(viewSql, view.query, filter);
  if (funnel.from !== 0 || funnel.to !== funnel.steps.length - 1)
    throw new UnknownQueryError("A part of a funnel cannot be printed as SQL.");
  const seconds = funnel.windowMicros / 1e6;
  const window =
    seconds % daySeconds === 0 ? `INTERVAL ${seconds / daySeconds} DAY` : `INTERVAL ${seconds} SECOND`;
  return { ...view, funnel, shape: String(filter.funnelVizType ?? "steps"), window };
}

export function funnelSql(view: ViewQuery): string {
  const read = readFunnel(view);
  const { shape, series, breakdowns } = read;
  if (shape === "time_to_convert") {
    return `WITH ${stepTables(read)},
${conversionTable(read)}
SELECT seconds, count(*) AS persons FROM taken GROUP BY ALL ORDER BY ALL`;
  }
  const [breakdown] = breakdowns;
  const value = breakdown ? `b.value AS ${identifier(breakdown.name)}, ` : "";
  const withValue = breakdown ? " JOIN first_values b ON b.who = s.who" : "";
  const selects =
    shape === "steps"
      ? series.map(
          ({ event }, index) =>
            `SELECT ${value}${index + 1} AS step, ${quoted(event || "All events")} AS event, count(DISTINCT s.who) AS persons FROM step_${index + 1} s${withValue} GROUP BY ALL`,
        )
      : [
          `SELECT s.period, ${value}count(DISTINCT s.who) AS began, count(DISTINCT l.who) AS got, round(100 * got / began, 2) AS percent
FROM step_1 s LEFT JOIN step_${series.length} l ON l.who = s.who AND l.period = s.period${withValue} GROUP BY ALL`,
        ];
  return `WITH ${stepTables(read)}\n${selects.join("\nUNION ALL\n")}\nORDER BY ALL`;
}

/** @param columns of each person */
export function funnelPersonsSql(view: ViewQuery, figure: Figure, columns: string): string {
  const read = readFunnel(view);
  if (read.shape === "time_to_convert") {
    const [from, to] = figure.seconds ?? [0, 0];
    return `WITH ${stepTables(read)},
${conversionTable(read)}
SELECT t.who AS who, ${columns}
FROM taken t JOIN events e ON ${who} = t.who AND e.timestamp = t.moment${personJoin}
WHERE t.seconds >= ${from} AND t.seconds < ${to}
GROUP BY t.who ORDER BY times DESC, who`;
  }
  const isOfValue = figure.breakdown !== undefined && read.breakdowns.length > 0;
  return `WITH ${stepTables(read)}
SELECT s.who AS who, ${columns}
FROM step_${figure.series + 1} s${isOfValue ? " JOIN first_values b ON b.who = s.who" : ""}
JOIN events e ON ${who} = s.who AND e.timestamp = s.moment AND e.seq = s.seq${personJoin}${isOfValue ? `\nWHERE coalesce(b.value, '') = ${quoted(figure.breakdown?.[0] ?? "")}` : ""}
GROUP BY s.who ORDER BY times DESC, who`;
}

/**
 * Tables `step_1`, `step_2`, …: who reached the step from which start, and when; with a breakdown also `first_values`: each
 * person's value at the first step.
 */
function stepTables(read: ViewFunnel): string {
  const { request, interval, funnel, shape, breakdowns } = read;
  const { order, conditions } = funnel;
  const [breakdown] = breakdowns;
  const columns = [
    `${who} AS who, e.timestamp AS moment, e.historical, e.seq`,
    // Over time: group by the period of the start. Otherwise all starts form one group.
    `${shape === "trends" ? startOf(interval, localTime(request), request) : "0"} AS period`,
    ...(breakdown ? [`${breakdown.sql} AS value`] : []),
    ...conditions.map((condition, index) => `coalesce(${condition}, false) AS is_${index + 1}`),
  ];
  const firstValues = `first_values AS (
  SELECT who, arg_min_null(value, moment) AS value FROM found${order === "unordered" ? "" : " WHERE is_1"} GROUP BY who
)`;
  const ofSteps = order === "strict" ? [] : [`(${conditions.join(" OR ")})`];
  return [
    `found AS (
  SELECT ${columns.join(",\n    ")}
  FROM events e${read.personJoin.replace("\n", "\n  ")}
  WHERE ${[...rangeConditions(read), ...ofSteps].join("\n    AND ")}
)`,
    ...(breakdown ? [firstValues] : []),
    ...(order === "strict"
      ? strictSteps(read)
      : order === "unordered"
        ? unorderedSteps(read)
        : orderedSteps(read)),
  ].join(",\n");
}

/** Table `taken`: when each person first converted, and after how many seconds. */
function conversionTable({ series, funnel: { order, conditions }, window }: ViewFunnel): string {
  const ends =
    order === "unordered"
      ? `SELECT b.who, b.start, greatest(${getParts(conditions)
          .map(
            ([index, times]) =>
              `(list(f.moment ORDER BY f.moment) FILTER (WHERE f.is_${index + 1}))[${times}]`,
          )
          .join(", ")}) AS moment
  FROM (SELECT who, moment AS start FROM step_${series.length} QUALIFY row_number() OVER (${inOrder}) = 1) b
  JOIN found f ON f.who = b.who AND f.moment BETWEEN b.start AND b.start + ${window}
  GROUP BY b.who, b.start`
      : `SELECT * FROM step_${series.length} QUALIFY row_number() OVER (PARTITION BY who ORDER BY nth) = 1`;
  return `taken AS (
  SELECT who, moment, date_diff('microsecond', start, moment) / 1e6 AS seconds FROM (${ends})
)`;
}

/** Identical steps, keyed by the index of the first, with the number of times each is needed. */
const getParts = (conditions: readonly string[]) =>
  [...new Set(conditions)].map(
    (condition) =>
      [conditions.indexOf(condition), conditions.filter((other) => other === condition).length] as const,
  );

const inOrder = "PARTITION BY who ORDER BY moment, historical, seq";

/** Each start continues with the first event of the next step. */
function orderedSteps({ series, window }: ViewFunnel): string[] {
  return [
    `numbered AS (SELECT *, row_number() OVER (${inOrder}) AS position FROM found)`,
    "step_1 AS (SELECT who, period, moment AS start, position AS nth, moment, seq, position FROM numbered WHERE is_1)",
    ...series.slice(1).map((_, index) => {
      const step = index + 2;
      return `step_${step} AS (
  SELECT s.who, s.period, s.start, s.nth, n.moment, n.seq, n.position FROM step_${step - 1} s
  ASOF JOIN (SELECT * FROM numbered WHERE is_${step}) n ON n.who = s.who AND n.position > s.position
  WHERE n.moment <= s.start + ${window}
)`;
    }),
  ];
}

/** The events immediately after a start must be the next steps. */
function strictSteps({ series, window }: ViewFunnel): string[] {
  const later = series.slice(1).map((_, index) => index + 1);
  const columns = later.flatMap((n) =>
    [`is_${n + 1}`, "moment", "seq"].map(
      (name) => `lead(${name}, ${n}) OVER one AS ${name.replace(/_.*/, "")}_at_${n}`,
    ),
  );
  return [
    `numbered AS (
  SELECT who, period, row_number() OVER one AS nth, is_1 AS is_at_0, moment AS moment_at_0, seq AS seq_at_0${columns.map((column) => `,\n    ${column}`).join("")}
  FROM found WINDOW one AS (${inOrder})
)`,
    ...series.map((_, index) => {
      const all = Array.from({ length: index + 1 }, (_, n) => `is_at_${n}`);
      const inTime = index === 0 ? "" : ` AND moment_at_${index} <= moment_at_0 + ${window}`;
      return `step_${index + 1} AS (SELECT who, period, nth, moment_at_0 AS start, moment_at_${index} AS moment, seq_at_${index} AS seq FROM numbered WHERE ${all.join(" AND ")}${inTime})`;
    }),
  ];
}

/** For each event, the number of steps done from it on; identical steps are needed several times. */
function unorderedSteps({ series, funnel: { conditions }, window }: ViewFunnel): string[] {
  const sum = getParts(conditions).map(
    ([index, times]) => `least(${times}, count(*) FILTER (WHERE is_${index + 1}) OVER ahead)`,
  );
  return [
    `counted AS (
  SELECT *, ${sum.join(" + ")} AS done FROM found
  WINDOW ahead AS (PARTITION BY who ORDER BY moment RANGE BETWEEN CURRENT ROW AND ${window} FOLLOWING)
)`,
    ...series.map((_, index) => `step_${index + 1} AS (SELECT * FROM counted WHERE done >= ${index + 1})`),
  ];
}
