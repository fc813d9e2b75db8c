/**
 * Questions as statements over the views: what *Open as SQL* shows, and how the persons behind a figure are found.
 *
 * They count as the computed queries do; a test holds one against the other.
 */

import type { Condition } from "./flags.ts";
import type { Question, Series } from "./insight.ts";

/** A figure of an answer: of which series or step, in which period, of which value. */
export interface Figure {
  /** Place of the series or step. */
  series: number;
  /** Where its period begins, as the answer says it: `2026-11-21` or `2026-11-21 05:00:00`. */
  day?: string;
  breakdown?: unknown;
}

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
const property = (owner: "e" | "p", name: string) => `prop(${owner}.properties, ${quoted(name)})`;
const who = "coalesce(e.person_id::VARCHAR, e.distinct_id)";
/** How an answer names events without the property. */
const noValue = "$$_posthog_breakdown_null_$$";
const signs: Record<string, string> = { gt: ">", gte: ">=", lt: "<", lte: "<=" };

const isPlainFunnel = ({ kind, order, shape, breakdown }: Question) =>
  kind === "funnel" && order === "ordered" && shape === "steps" && !breakdown;

/** Whether a question can be written as a statement. */
export const isInSql = (question: Question): boolean => question.kind === "trends" || isPlainFunnel(question);

/** The statement that computes what the question asks. */
export function statementOf(question: Question, timezone: string): string {
  if (question.kind === "funnel") {
    const steps = question.series.map(
      ({ event }, place) =>
        `SELECT ${place + 1} AS step, ${quoted(event || "All events")} AS event, count(DISTINCT who) AS persons FROM step_${place + 1}`,
    );
    return `WITH ${funnelSteps(question, timezone)}\n${steps.join("\nUNION ALL\n")}\nORDER BY ALL`;
  }
  const isMany = question.series.length > 1;
  const selects = question.series.map((series, place) => {
    const columns = [
      `date_trunc('${question.interval}', ${localTime(timezone)}) AS period`,
      ...(isMany ? [`${quoted(`${String.fromCharCode(65 + place)} ${series.event}`.trim())} AS series`] : []),
      ...(question.breakdown
        ? [`${property("e", question.breakdown)} AS "${question.breakdown.replaceAll('"', '""')}"`]
        : []),
      `${measure(series)} AS value`,
    ];
    return `SELECT ${columns.join(",\n  ")}\n${eventsOf(question, series, timezone)}\nGROUP BY ALL`;
  });
  return `${selects.join("\nUNION ALL\n")}\nORDER BY ALL`;
}

/** A statement for whoever is behind a figure: `who`, one distinct id, a name where there is one, how often. */
export function personsStatement(question: Question, figure: Figure, timezone: string): string {
  const series = question.series[figure.series]!;
  const columns = `any_value(e.distinct_id) AS distinct_id,
  any_value(coalesce(prop(p.properties, 'email'), prop(p.properties, 'name'))) AS name, count(*) AS times`;
  if (question.kind === "funnel") {
    return `WITH ${funnelSteps(question, timezone)}
SELECT s.who AS who, ${columns}
FROM step_${figure.series + 1} s
JOIN events e ON ${who} = s.who AND e.timestamp = s.moment AND e.seq = s.seq
LEFT JOIN persons p ON p.id = e.person_id
GROUP BY s.who ORDER BY times DESC, who`;
  }
  const value = property("e", question.breakdown);
  const more = [
    ...(figure.day === undefined
      ? []
      : [
          `date_trunc('${question.interval}', ${localTime(timezone)}) = TIMESTAMP '${figure.day.length === 10 ? `${figure.day} 00:00:00` : figure.day}'`,
        ]),
    ...(!question.breakdown || figure.breakdown === undefined
      ? []
      : [
          figure.breakdown === noValue
            ? `${value} IS NULL`
            : `${value} = ${quoted(String(figure.breakdown))}`,
        ]),
  ];
  return `SELECT ${who} AS who, ${columns}
${eventsOf(question, series, timezone, { more, withPersons: true })}
GROUP BY who ORDER BY times DESC, who`;
}

function localTime(timezone: string): string {
  return timezone === "UTC" ? "e.timestamp" : `timezone(${quoted(timezone)}, timezone('UTC', e.timestamp))`;
}

/** The same bounds as those of the computed query: whole days, or hours, on the project's clock. */
function rangeConditions({ range, interval, kind }: Question, timezone: string): string[] {
  const now = `timezone(${quoted(timezone)}, now())`;
  const local = localTime(timezone);
  const match = /^-(\d+)([hd])$/.exec(range);
  const unit = kind === "trends" && interval === "hour" ? "hour" : "day";
  const until = `${local} < date_trunc('${unit}', ${now}) + INTERVAL 1 ${unit}`;
  if (match === null) return [until];
  const [, count, letter] = match;
  const fromUnit = letter === "h" ? "hour" : "day";
  return [`${local} >= date_trunc('${fromUnit}', ${now}) - INTERVAL ${count} ${fromUnit}`, until];
}

function eventsOf(
  question: Question,
  series: Series,
  timezone: string,
  { more = [], withPersons = false }: { more?: string[]; withPersons?: boolean } = {},
): string {
  const conditions = [
    ...conditionsOf(series, question.properties),
    ...rangeConditions(question, timezone),
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

/** Tables `step_1`, `step_2`, …: who got there and when, with the latest beginning from which it is still in time. */
function funnelSteps(question: Question, timezone: string): string {
  const { series, properties } = question;
  const columns = series.map(
    (step, place) => `(${conditionsOf(step, properties).join(" AND ") || "true"}) AS is_${place + 1}`,
  );
  const persons = hasPersonCondition(series, question) ? "\n  LEFT JOIN persons p ON p.id = e.person_id" : "";
  const later = series.slice(1).map((_, place) => {
    const step = place + 2;
    return `step_${step} AS (
  SELECT f.who, f.moment, f.historical, f.seq, max(s.began) AS began
  FROM found f JOIN step_${step - 1} s ON s.who = f.who
    AND (s.moment, s.historical, s.seq) < (f.moment, f.historical, f.seq) AND f.moment <= s.began + INTERVAL ${question.window} DAY
  WHERE f.is_${step} GROUP BY ALL
)`;
  });
  return `found AS (
  SELECT ${who} AS who, e.timestamp AS moment, e.historical, e.seq,
    ${columns.join(",\n    ")}
  FROM events e${persons}
  WHERE ${rangeConditions(question, timezone).join("\n    AND ")}
),
${["step_1 AS (\n  SELECT who, moment, historical, seq, moment AS began FROM found WHERE is_1\n)", ...later].join(",\n")}`;
}
