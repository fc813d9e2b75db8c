/** Conversions of visitors, and the goal that a query names. */

import type { WebGoal } from "../../accounts/project-settings.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { type EventSql, looseStringAt } from "../sql-dialect.ts";
import { pathSql } from "./visit-fields.ts";
import { inRanges, isView, periods, withOwners } from "./visits.ts";
import type { WebQuery, WebRequest } from "./web-query.ts";

/** The property whose numbers are added up as revenue; PostHog's default. */
const revenueProperty = "revenue";

/** What counts as a conversion: an event, a page, or for revenue without a goal, any event with revenue. */
type Target = Pick<WebGoal, "event" | "path">;
const anyEvent: Target = { event: null, path: null };

/**
 * The `conversionGoal` of a query: `customEventName`, as in PostHog, or `goalName` for a goal of the project.
 * @throws {UnknownQueryError}
 */
export function conversionGoalIn(
  { conversionGoal: goal }: JsonObject,
  request: WebRequest,
): Target | undefined {
  if (goal === undefined || goal === null) return undefined;
  const { customEventName: event, goalName: name } = isJsonObject(goal) ? goal : {};
  if (typeof event === "string" && event !== "") return { event, path: null };
  const saved = request.web?.goals.find((goal) => goal.name === name);
  if (saved !== undefined) return saved;
  if (typeof name === "string")
    throw new UnknownQueryError(`The project has no goal ${JSON.stringify(name)} in its web_goals.`);
  throw new UnknownQueryError(
    `The conversionGoal ${JSON.stringify(goal)} is not supported: expected customEventName, or goalName with the name of a goal in web_goals.`,
  );
}

/**
 * SQL for rows with `period`, `who`, and per target `g0`, `g1`, …: how often it was reached; a visitor may have several.
 * @param hasRevenue also `r0`, `r1`, …: the revenue of these events
 */
export function conversions(
  store: EventSql,
  web: WebQuery,
  targets: readonly Target[],
  hasRevenue = false,
): string {
  const { dialect, eventProperties } = store;
  const path = pathSql(store);
  const revenue = dialect.number(looseStringAt(dialect, eventProperties, revenueProperty));
  const conditions = targets.map((target) => {
    if (target.event !== null) return `e.event = ${dialect.text(target.event)}`;
    if (target.path === null) return `${revenue} IS NOT NULL`;
    return `(${isView(store, web)} AND coalesce(${path} = ${dialect.text(target.path)}, false))`;
  });
  const values = conditions.flatMap((condition, index) => [
    { name: `g${index}`, sql: `CASE WHEN ${condition} THEN 1 ELSE 0 END` },
    ...(hasRevenue
      ? [{ name: `r${index}`, sql: `CASE WHEN ${condition} THEN coalesce(${revenue}, 0) ELSE 0 END` }]
      : []),
  ]);
  const read = values.map(({ name, sql }) => `${sql} AS ${name}`).join(", ");
  const parts = inRanges(store, web).parts.map(
    ({ where, period }) => `SELECT ${period} AS period, e.distinct_id AS distinct_id, ${read}
      FROM events e WHERE ${where} AND (${conditions.join(" OR ")})`,
  );
  const sums = values.map(({ name }) => `sum(h.${name}) AS ${name}`).join(", ");
  return withOwners(
    store,
    web,
    `SELECT ${web.request.projectId} AS project_id, h.period AS period, h.distinct_id AS distinct_id, ${sums}
     FROM (${parts.join(" UNION ALL ")}) AS h GROUP BY h.period, h.distinct_id`,
  );
}

/** SQL for one row per visitor: `who`, and `goals_…` and `revenue_…` of each period. */
export function conversionsByVisitor(
  store: EventSql,
  web: WebQuery,
  target: Target = anyEvent,
  hasRevenue = false,
): string {
  const columns = Object.values(periods).flatMap((period) => {
    const within = (name: string) => `sum(CASE WHEN g.period = ${period} THEN g.${name} ELSE 0 END)`;
    return [
      `${within("g0")} AS goals_${period}`,
      ...(hasRevenue ? [`${within("r0")} AS revenue_${period}`] : []),
    ];
  });
  return `SELECT g.who AS who, ${columns.join(", ")}
    FROM (${conversions(store, web, [target], hasRevenue)}) AS g GROUP BY g.who`;
}
