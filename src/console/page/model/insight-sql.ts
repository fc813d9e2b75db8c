/**
 * Questions as statements over the views: what *Open as SQL* shows, and how the persons behind a figure are found.
 *
 * They count as the computed queries do; a test holds one against the other.
 */

import { noValue } from "../../../events/insights/breakdown-values.ts";
import type { Condition } from "./flags.ts";
import { type Question, retentionPeriods, type Series } from "./insight.ts";

/** A figure of an answer: of which series or step, in which period, of which value. */
export interface Figure {
  /** Place of the series or step. */
  series: number;
  /** Where its period begins, as the answer says it: `2026-11-21` or `2026-11-21 05:00:00`. */
  day?: string;
  breakdown?: unknown;
  /** Of a retention: how many periods later they came back. */
  later?: number;
  /** Of a lifecycle: `new`, `returning`, `resurrecting` or `dormant`. */
  status?: string;
  /** Of times to convert: from how many seconds on, and up to how many. */
  seconds?: [from: number, to: number];
}

/** The settings of the project that decide where periods start. */
export interface ProjectClock {
  /** IANA name. */
  timezone: string;
  /** 0 Sunday, 1 Monday; null or absent is Monday. */
  weekStartDay?: number | null | undefined;
}

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
const property = (owner: "e" | "p", name: string) => `prop(${owner}.properties, ${quoted(name)})`;
const who = "coalesce(e.person_id::VARCHAR, e.distinct_id)";
const signs: Record<string, string> = { gt: ">", gte: ">=", lt: "<", lte: "<=" };

/** The statement that computes what the question asks. */
export function statementOf(question: Question, clock: ProjectClock): string {
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
  const isMany = question.series.length > 1;
  const selects = question.series.map((series, place) => {
    const columns = [
      `${startOf(question.interval, localTime(clock), clock)} AS period`,
      ...(isMany ? [`${quoted(`${String.fromCharCode(65 + place)} ${series.event}`.trim())} AS series`] : []),
      ...(question.breakdown
        ? [`${property("e", question.breakdown)} AS "${question.breakdown.replaceAll('"', '""')}"`]
        : []),
      `${measure(series)} AS value`,
    ];
    return `SELECT ${columns.join(",\n  ")}\n${eventsOf(question, series, clock)}\nGROUP BY ALL`;
  });
  return `${selects.join("\nUNION ALL\n")}\nORDER BY ALL`;
}

/** A statement for whoever is behind a figure: `who`, one distinct id, a name where there is one, how often. */
export function personsStatement(question: Question, figure: Figure, clock: ProjectClock): string {
  const series = question.series[figure.series]!;
  const columns = `any_value(e.distinct_id) AS distinct_id,
  any_value(coalesce(prop(p.properties, 'email'), prop(p.properties, 'name'))) AS name, count(*) AS times`;
  if (question.kind === "funnel" && question.shape === "time_to_convert") {
    const [from, to] = figure.seconds ?? [];
    return `WITH ${funnelSteps(question, clock)},
${timesTaken(question)}
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
    const place = `date_diff('${question.period}', ${retentionFirst(question, clock)}, TIMESTAMP '${wallTime(figure.day)}')`;
    const { later = 0 } = figure;
    return `WITH ${retentionParts(question, clock)}
SELECT f.who AS who, ${columns}
FROM found f JOIN began b ON b.who = f.who AND b.place = ${place}
JOIN events e ON ${who} = f.who AND e.timestamp = f.moment AND e.seq = f.seq
LEFT JOIN persons p ON p.id = e.person_id
WHERE f.place = b.place + ${later} AND ${later === 0 ? "f.is_target" : "f.is_returning"}
GROUP BY f.who ORDER BY times DESC, who`;
  }
  if (question.kind === "lifecycle") {
    const { interval } = question;
    const period = `TIMESTAMP '${wallTime(figure.day)}'`;
    // Of those who stayed away the last period is looked at.
    const seen = figure.status === "dormant" ? `${period} - INTERVAL 1 ${interval}` : period;
    return `WITH ${lifecycleParts(question, clock)}
SELECT l.who AS who, ${columns}
FROM lived l JOIN events e ON ${who} = l.who AND ${startOf(interval, localTime(clock), clock)} = ${seen}
LEFT JOIN persons p ON p.id = e.person_id
WHERE ${[`l.period = ${period}`, `l.status = ${quoted(figure.status ?? "")}`, ...conditionsOf(series, question.properties)].join(" AND ")}
GROUP BY l.who ORDER BY times DESC, who`;
  }
  const value = property("e", question.breakdown);
  const more = [
    ...(figure.day === undefined
      ? []
      : [`${startOf(question.interval, localTime(clock), clock)} = TIMESTAMP '${wallTime(figure.day)}'`]),
    ...(!question.breakdown || figure.breakdown === undefined
      ? []
      : [
          figure.breakdown === noValue
            ? `${value} IS NULL`
            : `${value} = ${quoted(String(figure.breakdown))}`,
        ]),
  ];
  return `SELECT ${who} AS who, ${columns}
${eventsOf(question, series, clock, { more, withPersons: true })}
GROUP BY who ORDER BY times DESC, who`;
}

const wallTime = (day = "") => (day.length === 10 ? `${day} 00:00:00` : day);

function localTime({ timezone }: ProjectClock): string {
  return timezone === "UTC" ? "e.timestamp" : `timezone(${quoted(timezone)}, timezone('UTC', e.timestamp))`;
}

/** SQL for the start of the interval that contains a wall time, as computed queries have it. */
function startOf(interval: string, wallTime: string, { weekStartDay }: ProjectClock): string {
  if (interval.toLowerCase() !== "week" || weekStartDay !== 0)
    return `date_trunc('${interval}', ${wallTime})`;
  return `(date_trunc('week', ${wallTime} + INTERVAL 1 DAY) - INTERVAL 1 DAY)`;
}

const clockNow = ({ timezone }: ProjectClock) => `timezone(${quoted(timezone)}, now())`;

/** The same bounds as those of the computed query: whole days, or hours, on the project's clock. */
function rangeConditions({ range, interval, kind, shape }: Question, clock: ProjectClock): string[] {
  const now = clockNow(clock);
  const local = localTime(clock);
  const match = /^-(\d+)([hd])$/.exec(range);
  const unit = (kind === "trends" || shape === "trends") && interval === "hour" ? "hour" : "day";
  const until = `${local} < date_trunc('${unit}', ${now}) + INTERVAL 1 ${unit}`;
  if (match === null) return [until];
  const [, count, letter] = match;
  const fromUnit = letter === "h" ? "hour" : "day";
  return [`${local} >= date_trunc('${fromUnit}', ${now}) - INTERVAL ${count} ${fromUnit}`, until];
}

function eventsOf(
  question: Question,
  series: Series,
  clock: ProjectClock,
  { more = [], withPersons = false }: { more?: string[]; withPersons?: boolean } = {},
): string {
  const conditions = [
    ...conditionsOf(series, question.properties),
    ...rangeConditions(question, clock),
    ...more,
  ];
  const isAboutPersons = withPersons || hasPersonCondition([series], question);
  return `FROM events e${isAboutPersons ? "\nLEFT JOIN persons p ON p.id = e.person_id" : ""}
WHERE ${conditions.join("\n  AND ")}`;
}

const hasPersonCondition = (series: readonly Series[], question: Question) =>
  [...question.properties, ...series.flatMap(({ properties }) => properties ?? [])].some(
    ({ type }) => type === "person",
  );

function conditionsOf(series: Series, shared: readonly Condition[]): string[] {
  return [
    ...(series.event ? [`e.event = ${quoted(series.event)}`] : []),
    ...[...(series.properties ?? []), ...shared].map(conditionSql),
  ];
}

/** The filters that Explore offers. */
export function conditionSql({ key, type, operator = "exact", value }: Condition): string {
  const text = property(type === "person" ? "p" : "e", key);
  const values = (Array.isArray(value) ? value : [value ?? ""]).map((one) =>
    typeof one === "string" ? one : JSON.stringify(one),
  );
  const lower = values.map((one) => quoted(one.toLowerCase()));
  const isNegative = operator.startsWith("not_") || operator === "is_not";
  const not = (condition: string) => (isNegative ? `NOT coalesce(${condition}, false)` : condition);
  if (operator === "is_set" || operator === "is_not_set") {
    return `${text} IS ${operator === "is_set" ? "NOT " : ""}NULL`;
  }
  if (signs[operator]) return `try_cast(${text} AS DOUBLE) ${signs[operator]} ${Number(values[0]) || 0}`;
  if (operator.endsWith("regex")) return not(`regexp_matches(${text}, ${quoted(values[0] ?? "")})`);
  if (operator.endsWith("icontains")) return not(`contains(lower(${text}), ${lower[0] ?? "''"})`);
  return values.length === 0 ? String(isNegative) : not(`lower(${text}) IN (${lower.join(", ")})`);
}

function measure({ math, math_property: name = "" }: Series): string {
  if (math === "total") return "count(*)";
  if (math === "dau") return `count(DISTINCT ${who})`;
  if (math === "unique_session") return `count(DISTINCT ${property("e", "$session_id")})`;
  const number = `try_cast(${property("e", name)} AS DOUBLE)`;
  const share = /^p(\d+)$/.exec(math)?.[1];
  return share === undefined ? `${math}(${number})` : `quantile_cont(${number}, 0.${share})`;
}

function funnelStatement(question: Question, clock: ProjectClock): string {
  const { series, shape, breakdown } = question;
  if (shape === "time_to_convert") {
    return `WITH ${funnelSteps(question, clock)},
${timesTaken(question)}
SELECT seconds, count(*) AS persons FROM taken GROUP BY ALL ORDER BY ALL`;
  }
  const value = breakdown ? `b.value AS "${breakdown.replaceAll('"', '""')}", ` : "";
  const withValue = breakdown ? " JOIN begun b ON b.who = s.who" : "";
  const selects =
    shape === "steps"
      ? series.map(
          ({ event }, place) =>
            `SELECT ${value}${place + 1} AS step, ${quoted(event || "All events")} AS event, count(DISTINCT s.who) AS persons FROM step_${place + 1} s${withValue} GROUP BY ALL`,
        )
      : [
          `SELECT s.period, ${value}count(DISTINCT s.who) AS began, count(DISTINCT l.who) AS got, round(100 * got / began, 2) AS percent
FROM step_1 s LEFT JOIN step_${series.length} l ON l.who = s.who AND l.period = s.period${withValue} GROUP BY ALL`,
        ];
  return `WITH ${funnelSteps(question, clock)}\n${selects.join("\nUNION ALL\n")}\nORDER BY ALL`;
}

/**
 * Tables `step_1`, `step_2`, …: who got there from which start, and when; with a breakdown `begun`: with which value each
 * person began.
 */
function funnelSteps(question: Question, clock: ProjectClock): string {
  const { series, properties, order, shape, breakdown } = question;
  const conditions = conditionsOfSteps(series, properties);
  const persons = hasPersonCondition(series, question) ? "\n  LEFT JOIN persons p ON p.id = e.person_id" : "";
  const columns = [
    `${who} AS who, e.timestamp AS moment, e.historical, e.seq`,
    // By period: of the start. Else all starts are one.
    `${shape === "trends" ? startOf(question.interval, localTime(clock), clock) : "0"} AS period`,
    ...(breakdown ? [`${property("e", breakdown)} AS value`] : []),
    ...conditions.map((condition, place) => `coalesce(${condition}, false) AS is_${place + 1}`),
  ];
  const begun = `begun AS (
  SELECT who, arg_min_null(value, moment) AS value FROM found${order === "unordered" ? "" : " WHERE is_1"} GROUP BY who
)`;
  return [
    `found AS (
  SELECT ${columns.join(",\n    ")}
  FROM events e${persons}
  WHERE ${[...rangeConditions(question, clock), ...(order === "strict" ? [] : [`(${conditions.map((one) => `(${one})`).join(" OR ")})`])].join("\n    AND ")}
)`,
    ...(breakdown ? [begun] : []),
    ...(order === "strict"
      ? strictSteps(question)
      : order === "unordered"
        ? unorderedSteps(question, conditions)
        : orderedSteps(question)),
  ].join(",\n");
}

/** Table `taken`: when each person came to the end on the first way that leads there, and after how many seconds. */
function timesTaken({ series, properties, order, window }: Question): string {
  const ends =
    order === "unordered"
      ? `SELECT b.who, b.start, greatest(${partsOf(conditionsOfSteps(series, properties))
          .map(
            ([place, times]) =>
              `(list(f.moment ORDER BY f.moment) FILTER (WHERE f.is_${place + 1}))[${times}]`,
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
  series.map((step) => conditionsOf(step, properties).join(" AND ") || "true");

/** Steps that are the same thing, by the place of the first, and how many times it is needed. */
const partsOf = (conditions: readonly string[]) =>
  [...new Set(conditions)].map(
    (condition) =>
      [conditions.indexOf(condition), conditions.filter((other) => other === condition).length] as const,
  );

const inOrder = "PARTITION BY who ORDER BY moment, historical, seq";

/** Each start goes on with the first event of the next step. */
function orderedSteps({ series, window }: Question): string[] {
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

/** The events right behind a start are the next steps. */
function strictSteps({ series, window }: Question): string[] {
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
    ...series.map((_, place) => {
      const all = Array.from({ length: place + 1 }, (_, n) => `is_at_${n}`);
      const inTime = place === 0 ? "" : ` AND moment_at_${place} <= moment_at_0 + INTERVAL ${window} DAY`;
      return `step_${place + 1} AS (SELECT who, period, nth, moment_at_0 AS start, moment_at_${place} AS moment, seq_at_${place} AS seq FROM placed WHERE ${all.join(" AND ")}${inTime})`;
    }),
  ];
}

/** Of each event, how many of the steps were done from it on; steps that are the same thing are needed several times. */
function unorderedSteps({ series, window }: Question, conditions: readonly string[]): string[] {
  const sum = partsOf(conditions).map(
    ([place, times]) => `least(${times}, count(*) FILTER (WHERE is_${place + 1}) OVER ahead)`,
  );
  return [
    `counted AS (
  SELECT *, ${sum.join(" + ")} AS done FROM found
  WINDOW ahead AS (PARTITION BY who ORDER BY moment RANGE BETWEEN CURRENT ROW AND INTERVAL ${window} DAY FOLLOWING)
)`,
    ...series.map((_, place) => `step_${place + 1} AS (SELECT * FROM counted WHERE done >= ${place + 1})`),
  ];
}

/** Where the first of the periods begins. */
const retentionFirst = ({ period }: Question, clock: ProjectClock) =>
  `${startOf(period, clockNow(clock), clock)} - INTERVAL ${retentionPeriods - 1} ${period}`;

/** Tables `began` and `returned`: who did so in which period, counted from the first. */
function retentionParts(question: Question, clock: ProjectClock): string {
  const { target, returning, period, properties } = question;
  const is = (event: string) => conditionsOf({ event, math: "" }, properties).join(" AND ") || "true";
  const persons = hasPersonCondition([], question) ? "\n  LEFT JOIN persons p ON p.id = e.person_id" : "";
  return `found AS (
  SELECT ${who} AS who, e.timestamp AS moment, e.seq,
    date_diff('${period}', ${retentionFirst(question, clock)}, ${startOf(period, localTime(clock), clock)}) AS place,
    coalesce(${is(target)}, false) AS is_target,
    coalesce(${is(returning)}, false) AS is_returning
  FROM events e${persons}
  WHERE place BETWEEN 0 AND ${retentionPeriods - 1}
),
began AS (SELECT DISTINCT who, place FROM found WHERE is_target),
returned AS (SELECT DISTINCT who, place FROM found WHERE is_returning)`;
}

/** Table `lived`: who was new, came back, was there again or stayed away in which period. */
function lifecycleParts(question: Question, clock: ProjectClock): string {
  const { series, interval } = question;
  const conditions = conditionsOf(series[0]!, question.properties);
  const persons = hasPersonCondition(series.slice(0, 1), question)
    ? " LEFT JOIN persons p ON p.id = e.person_id"
    : "";
  return `active AS (
  SELECT DISTINCT ${who} AS who, ${startOf(interval, localTime(clock), clock)} AS period
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

/** Whole periods, the first and the last of which may be cut by the range. */
function lifecycleRange({ range, interval }: Question, clock: ProjectClock): string {
  const now = clockNow(clock);
  const until = `period <= ${startOf(interval, now, clock)}`;
  const match = /^-(\d+)([hd])$/.exec(range);
  if (match === null) return until;
  const unit = match[2] === "h" ? "hour" : "day";
  const from = `date_trunc('${unit}', ${now}) - INTERVAL ${match[1]} ${unit}`;
  return `period >= ${startOf(interval, from, clock)} AND ${until}`;
}
