/** SQL over the views that insight statements share: times, ranges, and conditions of Explore. */

import type { Condition } from "./flags.ts";
import { type InsightDraft, parseDays, type Series } from "./insight.ts";

/** A number in a result: its series or step, period and value. */
export interface Figure {
  /** Index of the series or step. */
  series: number;
  /** Start of its period as in the response: `2026-11-21` or `2026-11-21 05:00:00`. */
  day?: string;
  breakdown?: unknown;
  /** Retention: number of periods until the return. */
  later?: number;
  /** Lifecycle: `new`, `returning`, `resurrecting` or `dormant`. */
  status?: string;
  /** Times to convert: bounds in seconds. */
  seconds?: [from: number, to: number];
}

/** Project settings that determine where periods start. */
export interface ProjectClock {
  /** IANA name. */
  timezone: string;
  /** 0 Sunday, 1 Monday; null or absent is Monday. */
  weekStartDay?: number | null | undefined;
}

export const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const property = (owner: "e" | "p", name: string) => `prop(${owner}.properties, ${quoted(name)})`;
export const who = "coalesce(e.person_id::VARCHAR, e.distinct_id)";
const signs: Record<string, string> = { gt: ">", gte: ">=", lt: "<", lte: "<=" };

export const wallTime = (day = "") => (day.length === 10 ? `${day} 00:00:00` : day);

export function localTime({ timezone }: ProjectClock): string {
  return timezone === "UTC" ? "e.timestamp" : `timezone(${quoted(timezone)}, timezone('UTC', e.timestamp))`;
}

/** SQL for the start of the interval that contains a wall time, as in computed queries. */
export function getStart(interval: string, wallTime: string, { weekStartDay }: ProjectClock): string {
  if (interval.toLowerCase() !== "week" || weekStartDay !== 0)
    return `date_trunc('${interval}', ${wallTime})`;
  return `(date_trunc('week', ${wallTime} + INTERVAL 1 DAY) - INTERVAL 1 DAY)`;
}

export const clockNow = ({ timezone }: ProjectClock) => `timezone(${quoted(timezone)}, now())`;

/** The same bounds as in the computed query: whole days or hours in the project's time zone. */
export function rangeBounds(
  { range, interval, kind, shape }: InsightDraft,
  clock: ProjectClock,
): { from?: string; until: string } {
  const now = clockNow(clock);
  const match = /^-(\d+)([hd])$/.exec(range);
  const unit = (kind === "trends" || shape === "trends") && interval === "hour" ? "hour" : "day";
  const until = `date_trunc('${unit}', ${now}) + INTERVAL 1 ${unit}`;
  const days = parseDays(range);
  if (days) return { from: `TIMESTAMP '${days.from}'`, until: `TIMESTAMP '${days.to}' + INTERVAL 1 DAY` };
  if (match === null) return { until };
  const [, count, letter] = match;
  const fromUnit = letter === "h" ? "hour" : "day";
  return { from: `date_trunc('${fromUnit}', ${now}) - INTERVAL ${count} ${fromUnit}`, until };
}

export function rangeConditions(question: InsightDraft, clock: ProjectClock): string[] {
  const { from, until } = rangeBounds(question, clock);
  const local = localTime(clock);
  return [...(from === undefined ? [] : [`${local} >= ${from}`]), `${local} < ${until}`];
}

export function getEvents(
  question: InsightDraft,
  series: Series,
  clock: ProjectClock,
  {
    more = [],
    withPersons = false,
    range = rangeConditions(question, clock),
  }: { more?: string[]; withPersons?: boolean; range?: string[] } = {},
): string {
  const conditions = [...getConditions(series, question.properties), ...range, ...more];
  const isAboutPersons = withPersons || hasPersonCondition([series], question);
  return `FROM events e${isAboutPersons ? "\nLEFT JOIN persons p ON p.id = e.person_id" : ""}
WHERE ${conditions.join("\n  AND ")}`;
}

export const hasPersonCondition = (series: readonly Series[], question: InsightDraft) =>
  [...question.properties, ...series.flatMap(({ properties }) => properties ?? [])].some(
    ({ type }) => type === "person",
  );

export function getConditions(series: Series, shared: readonly Condition[]): string[] {
  return [
    ...(series.event ? [`e.event = ${quoted(series.event)}`] : []),
    ...[...(series.properties ?? []), ...shared].map(conditionSql),
  ];
}

/** SQL for the filters that Explore offers. */
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
