/**
 * Insight queries as SQL over the views, for *Open as SQL* and for the persons behind a number.
 *
 * They must count as the computed queries do; a test compares the two.
 */

import { getActiveDays, isActiveUsers } from "../../../events/insights/active-days.ts";
import { noValue } from "../../../events/insights/breakdown-values.ts";
import type { Condition } from "./flags.ts";
import { getBreakdowns, type InsightDraft, parseDays, retentionPeriods, type Series } from "./insight.ts";
import {
  clockNow,
  type Figure,
  getConditions,
  getEvents,
  getStart,
  hasPersonCondition,
  identifier,
  localTime,
  type ProjectClock,
  property,
  quoted,
  rangeBounds,
  rangeConditions,
  wallTime,
  who,
} from "./insight-sql-parts.ts";

/** SQL that computes the draft's query. */
export function toStatement(question: InsightDraft, clock: ProjectClock): string {
  if (question.kind === "funnel") return funnelStatement(question, clock);
  if (question.kind === "retention") {
    return `WITH ${retentionParts(question, clock)}
SELECT ${retentionFirst(question, clock)} + b.place * INTERVAL 1 ${question.period} AS began, 0 AS later, count(*) AS persons
FROM began b GROUP BY ALL
UNION ALL
SELECT ${retentionFirst(question, clock)} + b.place * INTERVAL 1 ${question.period}, r.place - b.place, count(*)
FROM began b JOIN returned r ON r.who = b.who AND r.place > b.place GROUP BY ALL
ORDER BY ALL`;
  }
  if (question.kind === "lifecycle") {
    return `WITH ${lifecycleParts(question, clock)}
SELECT period, status, sum(if(status = 'dormant', -1, 1)) AS persons
FROM lived WHERE ${lifecycleRange(question, clock)}
GROUP BY ALL ORDER BY ALL`;
  }
  const isMany = question.series.length > 1 || question.formula !== "";
  const breakdowns = getBreakdowns(question);
  const selects = question.series.map((series, position) => {
    const event = question.formula ? "" : series.event;
    const name = isMany ? [`${quoted(`${getLetter(position)} ${event}`.trim())} AS series`] : [];
    const days = getActiveDays(series.math, question.interval);
    if (days !== undefined) return activeStatement(question, series, { clock, days, name });
    const columns = [
      `${getStart(question.interval, localTime(clock), clock)} AS period`,
      ...name,
      ...breakdowns.map((one) => `${property("e", one)} AS ${identifier(one)}`),
      `${measure(series)} AS value`,
    ];
    return `SELECT ${columns.join(",\n  ")}\n${getEvents(question, series, clock)}\nGROUP BY ALL`;
  });
  const counted = selects.join("\nUNION ALL\n");
  return `${question.formula ? formulaStatement(question, counted) : counted}\nORDER BY ALL`;
}

const getLetter = (position: number) => String.fromCharCode("A".charCodeAt(0) + position);

/** SQL for a formula over the series; without rows for periods without events. */
function formulaStatement(question: InsightDraft, counted: string): string {
  const shown = ["period", ...getBreakdowns(question).map(identifier)].join(", ");
  const letters = question.series.map((_, position) => {
    const letter = getLetter(position);
    return `coalesce(sum(value) FILTER (WHERE series = '${letter}'), 0)::DOUBLE AS "${letter}"`;
  });
  const formula = question.formula.toUpperCase().replaceAll(/[A-Z]/g, (letter) => `"${letter}"`);
  return `WITH counted AS (
${counted}
)
SELECT ${shown}, if(isfinite(value), value, 0) AS value
FROM (SELECT *, coalesce(${formula}, 0) AS value FROM (
  SELECT ${[shown, ...letters].join(",\n    ")}
  FROM counted GROUP BY ALL
))`;
}

/** SQL for the persons behind a number: `who`, one distinct id, a name if known, and a count. */
export function personsStatement(question: InsightDraft, figure: Figure, clock: ProjectClock): string {
  const series = question.series[figure.series]!;
  const columns = `any_value(e.distinct_id) AS distinct_id,
  any_value(coalesce(prop(p.properties, 'email'), prop(p.properties, 'name'))) AS name, count(*) AS times`;
  if (question.kind === "funnel" && question.shape === "time_to_convert") {
    const [from, to] = figure.seconds ?? [];
    return `WITH ${funnelSteps(question, clock)},
${reuseCount(question)}
SELECT t.who AS who, ${columns}
FROM taken t JOIN events e ON ${who} = t.who AND e.timestamp = t.moment
LEFT JOIN persons p ON p.id = e.person_id
WHERE t.seconds >= ${from} AND t.seconds < ${to}
GROUP BY t.who ORDER BY times DESC, who`;
  }
  if (question.kind === "funnel") {
    const isOfValue = figure.breakdown !== undefined;
    return `WITH ${funnelSteps(question, clock)}
SELECT s.who AS who, ${columns}
FROM step_${figure.series + 1} s${isOfValue ? " JOIN begun b ON b.who = s.who" : ""}
JOIN events e ON ${who} = s.who AND e.timestamp = s.moment AND e.seq = s.seq
LEFT JOIN persons p ON p.id = e.person_id${isOfValue ? `\nWHERE coalesce(b.value, '') = ${quoted(String(figure.breakdown))}` : ""}
GROUP BY s.who ORDER BY times DESC, who`;
  }
  if (question.kind === "retention") {
    const index = `date_diff('${question.period}', ${retentionFirst(question, clock)}, TIMESTAMP '${wallTime(figure.day)}')`;
    const { later = 0 } = figure;
    return `WITH ${retentionParts(question, clock)}
SELECT f.who AS who, ${columns}
FROM found f JOIN began b ON b.who = f.who AND b.place = ${index}
JOIN events e ON ${who} = f.who AND e.timestamp = f.moment AND e.seq = f.seq
LEFT JOIN persons p ON p.id = e.person_id
WHERE f.place = b.place + ${later} AND ${later === 0 ? "f.is_target" : "f.is_returning"}
GROUP BY f.who ORDER BY times DESC, who`;
  }
  if (question.kind === "lifecycle") {
    const { interval } = question;
    const period = `TIMESTAMP '${wallTime(figure.day)}'`;
    // Dormant persons were last seen in the previous period.
    const seen = figure.status === "dormant" ? `${period} - INTERVAL 1 ${interval}` : period;
    return `WITH ${lifecycleParts(question, clock)}
SELECT l.who AS who, ${columns}
FROM lived l JOIN events e ON ${who} = l.who AND ${getStart(interval, localTime(clock), clock)} = ${seen}
LEFT JOIN persons p ON p.id = e.person_id
WHERE ${[`l.period = ${period}`, `l.status = ${quoted(figure.status ?? "")}`, ...getConditions(series, question.properties)].join(" AND ")}
GROUP BY l.who ORDER BY times DESC, who`;
  }
  const values = [figure.breakdown].flat();
  const days = getActiveDays(series.math, question.interval);
  const more = [
    ...(figure.day === undefined || days !== undefined
      ? []
      : [`${getStart(question.interval, localTime(clock), clock)} = TIMESTAMP '${wallTime(figure.day)}'`]),
    ...(figure.breakdown === undefined
      ? []
      : getBreakdowns(question).map((one, index) => {
          const value = property("e", one);
          return values[index] === noValue
            ? `${value} IS NULL`
            : `${value} = ${quoted(String(values[index]))}`;
        })),
  ];
  return `SELECT ${who} AS who, ${columns}
${getEvents(question, series, clock, {
  more,
  withPersons: true,
  ...(days === undefined ? {} : { range: activeConditions(question, figure, { clock, days }) }),
})}
GROUP BY who ORDER BY times DESC, who`;
}

/** SQL for the persons active in the days up to the end of each period. */
function activeStatement(
  question: InsightDraft,
  series: Series,
  { clock, days, name }: { clock: ProjectClock; days: number; name: readonly string[] },
): string {
  const { interval } = question;
  const breakdowns = getBreakdowns(question);
  const unit = interval === "hour" ? "hour" : "day";
  const { from, until } = rangeBounds(question, clock);
  const local = localTime(clock);
  const value = breakdowns.map((one) => `${property("e", one)} AS ${identifier(one)}`);
  const shown = breakdowns.map(identifier);
  const range = [
    ...(from === undefined ? [] : [`${local} >= date_trunc('${unit}', ${from}) - INTERVAL ${days} DAY`]),
    `${local} < ${until}`,
  ];
  const period = getStart(interval, "moment", clock);
  const ends = `moment = least(${period} + INTERVAL 1 ${interval}, ${until}) - INTERVAL 1 ${unit}`;
  const started = from === undefined ? [] : [`moment >= date_trunc('${unit}', ${from})`];
  return `SELECT ${[`${period} AS period`, ...name, ...shown, "count(DISTINCT who) AS value"].join(",\n  ")}
FROM (
  SELECT ${["who", ...shown, `unnest(generate_series(active, active + INTERVAL ${days} DAY - INTERVAL 1 ${unit}, INTERVAL 1 ${unit})) AS moment`].join(", ")}
  FROM (
    SELECT DISTINCT ${[`${who} AS who`, ...value, `date_trunc('${unit}', ${local}) AS active`].join(", ")}
    ${getEvents(question, series, clock, { range })}
  )
)
WHERE ${[...started, ends].join(" AND ")}
GROUP BY ALL`;
}

/** Conditions on the times of the events behind a number of active persons. */
function activeConditions(
  question: InsightDraft,
  { day }: Figure,
  { clock, days }: { clock: ProjectClock; days: number },
): string[] {
  const { until } = rangeBounds(question, clock);
  const local = localTime(clock);
  const next = `TIMESTAMP '${wallTime(day)}' + INTERVAL 1 ${question.interval}`;
  const end = day === undefined ? until : `least(${next}, ${until})`;
  return [`${local} >= ${end} - INTERVAL ${days} DAY`, `${local} < ${end}`];
}

function measure({ math, math_property: name = "" }: Series): string {
  if (math === "total") return "count(*)";
  if (math === "dau" || isActiveUsers(math)) return `count(DISTINCT ${who})`;
  if (math === "unique_session") return `count(DISTINCT ${property("e", "$session_id")})`;
  const number = `try_cast(${property("e", name)} AS DOUBLE)`;
  const share = /^p(\d+)$/.exec(math)?.[1];
  return share === undefined ? `${math}(${number})` : `quantile_cont(${number}, 0.${share})`;
}

function funnelStatement(question: InsightDraft, clock: ProjectClock): string {
  const { series, shape, breakdown } = question;
  if (shape === "time_to_convert") {
    return `WITH ${funnelSteps(question, clock)},
${reuseCount(question)}
SELECT seconds, count(*) AS persons FROM taken GROUP BY ALL ORDER BY ALL`;
  }
  const value = breakdown ? `b.value AS ${identifier(breakdown)}, ` : "";
  const withValue = breakdown ? " JOIN begun b ON b.who = s.who" : "";
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
  return `WITH ${funnelSteps(question, clock)}\n${selects.join("\nUNION ALL\n")}\nORDER BY ALL`;
}

/**
 * Tables `step_1`, `step_2`, …: who reached the step from which start, and when; with a breakdown also `begun`: each
 * person's value at the first step.
 */
function funnelSteps(question: InsightDraft, clock: ProjectClock): string {
  const { series, properties, order, shape, breakdown } = question;
  const conditions = conditionsOfSteps(series, properties);
  const persons = hasPersonCondition(series, question) ? "\n  LEFT JOIN persons p ON p.id = e.person_id" : "";
  const columns = [
    `${who} AS who, e.timestamp AS moment, e.historical, e.seq`,
    // Over time: group by the period of the start. Otherwise all starts form one group.
    `${shape === "trends" ? getStart(question.interval, localTime(clock), clock) : "0"} AS period`,
    ...(breakdown ? [`${property("e", breakdown)} AS value`] : []),
    ...conditions.map((condition, index) => `coalesce(${condition}, false) AS is_${index + 1}`),
  ];
  const started = `begun AS (
  SELECT who, arg_min_null(value, moment) AS value FROM found${order === "unordered" ? "" : " WHERE is_1"} GROUP BY who
)`;
  return [
    `found AS (
  SELECT ${columns.join(",\n    ")}
  FROM events e${persons}
  WHERE ${[...rangeConditions(question, clock), ...(order === "strict" ? [] : [`(${conditions.map((one) => `(${one})`).join(" OR ")})`])].join("\n    AND ")}
)`,
    ...(breakdown ? [started] : []),
    ...(order === "strict"
      ? strictSteps(question)
      : order === "unordered"
        ? unorderedSteps(question, conditions)
        : orderedSteps(question)),
  ].join(",\n");
}

/** Table `taken`: when each person first converted, and after how many seconds. */
function reuseCount({ series, properties, order, window }: InsightDraft): string {
  const ends =
    order === "unordered"
      ? `SELECT b.who, b.start, greatest(${getParts(conditionsOfSteps(series, properties))
          .map(
            ([index, times]) =>
              `(list(f.moment ORDER BY f.moment) FILTER (WHERE f.is_${index + 1}))[${times}]`,
          )
          .join(", ")}) AS moment
  FROM (SELECT who, moment AS start FROM step_${series.length} QUALIFY row_number() OVER (${inOrder}) = 1) b
  JOIN found f ON f.who = b.who AND f.moment BETWEEN b.start AND b.start + INTERVAL ${window} DAY
  GROUP BY b.who, b.start`
      : `SELECT * FROM step_${series.length} QUALIFY row_number() OVER (PARTITION BY who ORDER BY nth) = 1`;
  return `taken AS (
  SELECT who, moment, date_diff('microsecond', start, moment) / 1e6 AS seconds FROM (${ends})
)`;
}

const conditionsOfSteps = (series: readonly Series[], properties: readonly Condition[]) =>
  series.map((step) => getConditions(step, properties).join(" AND ") || "true");

/** Identical steps, keyed by the index of the first, with the number of times each is needed. */
const getParts = (conditions: readonly string[]) =>
  [...new Set(conditions)].map(
    (condition) =>
      [conditions.indexOf(condition), conditions.filter((other) => other === condition).length] as const,
  );

const inOrder = "PARTITION BY who ORDER BY moment, historical, seq";

/** Each start continues with the first event of the next step. */
function orderedSteps({ series, window }: InsightDraft): string[] {
  return [
    `placed AS (SELECT *, row_number() OVER (${inOrder}) AS place FROM found)`,
    "step_1 AS (SELECT who, period, moment AS start, place AS nth, moment, seq, place FROM placed WHERE is_1)",
    ...series.slice(1).map((_, index) => {
      const step = index + 2;
      return `step_${step} AS (
  SELECT s.who, s.period, s.start, s.nth, n.moment, n.seq, n.place FROM step_${step - 1} s
  ASOF JOIN (SELECT * FROM placed WHERE is_${step}) n ON n.who = s.who AND n.place > s.place
  WHERE n.moment <= s.start + INTERVAL ${window} DAY
)`;
    }),
  ];
}

/** The events immediately after a start must be the next steps. */
function strictSteps({ series, window }: InsightDraft): string[] {
  const behind = series.slice(1).map((_, index) => index + 1);
  const columns = behind.flatMap((n) =>
    [`is_${n + 1}`, "moment", "seq"].map(
      (name) => `lead(${name}, ${n}) OVER one AS ${name.replace(/_.*/, "")}_at_${n}`,
    ),
  );
  return [
    `placed AS (
  SELECT who, period, row_number() OVER one AS nth, is_1 AS is_at_0, moment AS moment_at_0, seq AS seq_at_0${columns.map((column) => `,\n    ${column}`).join("")}
  FROM found WINDOW one AS (${inOrder})
)`,
    ...series.map((_, index) => {
      const all = Array.from({ length: index + 1 }, (_, n) => `is_at_${n}`);
      const inTime = index === 0 ? "" : ` AND moment_at_${index} <= moment_at_0 + INTERVAL ${window} DAY`;
      return `step_${index + 1} AS (SELECT who, period, nth, moment_at_0 AS start, moment_at_${index} AS moment, seq_at_${index} AS seq FROM placed WHERE ${all.join(" AND ")}${inTime})`;
    }),
  ];
}

/** For each event, the number of steps done from it on; identical steps are needed several times. */
function unorderedSteps({ series, window }: InsightDraft, conditions: readonly string[]): string[] {
  const sum = getParts(conditions).map(
    ([index, times]) => `least(${times}, count(*) FILTER (WHERE is_${index + 1}) OVER ahead)`,
  );
  return [
    `counted AS (
  SELECT *, ${sum.join(" + ")} AS done FROM found
  WINDOW ahead AS (PARTITION BY who ORDER BY moment RANGE BETWEEN CURRENT ROW AND INTERVAL ${window} DAY FOLLOWING)
)`,
    ...series.map((_, index) => `step_${index + 1} AS (SELECT * FROM counted WHERE done >= ${index + 1})`),
  ];
}

/** Start of the first period. */
const retentionFirst = ({ period }: InsightDraft, clock: ProjectClock) =>
  `${getStart(period, clockNow(clock), clock)} - INTERVAL ${retentionPeriods - 1} ${period}`;

/** Number of distinct persons who started in any period. */
export function retentionPeopleStatement(question: InsightDraft, clock: ProjectClock): string {
  return `WITH ${retentionParts(question, clock)}\nSELECT count(DISTINCT who)::INTEGER AS people FROM began`;
}

/** Tables `began` and `returned`: persons by period, numbered from the first. */
function retentionParts(question: InsightDraft, clock: ProjectClock): string {
  const { target, returning, period, properties, cohort } = question;
  const is = (event: string) => getConditions({ event, math: "" }, properties).join(" AND ") || "true";
  const persons = hasPersonCondition([], question) ? "\n  LEFT JOIN persons p ON p.id = e.person_id" : "";
  return `found AS (
  SELECT ${who} AS who, e.timestamp AS moment, e.seq,
    date_diff('${period}', ${retentionFirst(question, clock)}, ${getStart(period, localTime(clock), clock)}) AS place,
    coalesce(${is(target)}, false) AS is_target,
    coalesce(${is(returning)}, false) AS is_returning
  FROM events e${persons}
  WHERE place ${cohort === "first" ? "<=" : "BETWEEN 0 AND"} ${retentionPeriods - 1}
),
began AS (${
    cohort === "first"
      ? "SELECT who, min(place) AS place FROM found WHERE is_target GROUP BY who HAVING min(place) >= 0"
      : "SELECT DISTINCT who, place FROM found WHERE is_target"
  }),
returned AS (SELECT DISTINCT who, place FROM found WHERE is_returning)`;
}

/** Table `lived`: who was new, resurrecting, returning or dormant in which period. */
function lifecycleParts(question: InsightDraft, clock: ProjectClock): string {
  const { series, interval } = question;
  const conditions = getConditions(series[0]!, question.properties);
  const persons = hasPersonCondition(series.slice(0, 1), question)
    ? " LEFT JOIN persons p ON p.id = e.person_id"
    : "";
  return `active AS (
  SELECT DISTINCT ${who} AS who, ${getStart(interval, localTime(clock), clock)} AS period
  FROM events e${persons}${conditions.length > 0 ? `\n  WHERE ${conditions.join("\n    AND ")}` : ""}
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
function lifecycleRange({ range, interval }: InsightDraft, clock: ProjectClock): string {
  const now = clockNow(clock);
  const days = parseDays(range);
  if (days) {
    const [from, to] = [days.from, days.to].map((day) => getStart(interval, `TIMESTAMP '${day}'`, clock));
    return `period >= ${from} AND period <= ${to}`;
  }
  const until = `period <= ${getStart(interval, now, clock)}`;
  const match = /^-(\d+)([hd])$/.exec(range);
  if (match === null) return until;
  const unit = match[2] === "h" ? "hour" : "day";
  const from = `date_trunc('${unit}', ${now}) - INTERVAL ${match[1]} ${unit}`;
  return `period >= ${getStart(interval, from, clock)} AND ${until}`;
}
