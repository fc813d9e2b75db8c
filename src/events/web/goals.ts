/** Goals: visitors who reached a page or performed an event, as a share of all visitors. */

import type { WebGoal } from "../../accounts/project-settings.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import type { EventSql } from "../sql-dialect.ts";
import { conversions } from "./conversions.ts";
import { figures, inPeriod, rangeMembers } from "./overview.ts";
import { periods, visitSource } from "./visits.ts";
import { readWebQuery, type WebQuery, type WebRequest } from "./web-query.ts";

const columns = ["action_name", "converting_users", "total_conversions", "conversion_rate"];
/** Columns by which rows can be ordered; PostHog's names. */
const orders = { ConvertingUsers: 1, TotalConversions: 2, ConversionRate: 3 } as const;

type Pair = [current: number, previous: number | null];
type Row = [name: string, visitors: Pair, conversions: Pair, rate: Pair];

/** One row per goal: its name, visitors who reached it, how often they did, and their share of all visitors (0 to 1). */
export async function computeWebGoals(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const web = await readWebQuery(store, request, query);
  const order = orderIn(query);
  const goals = request.web?.goals ?? [];
  const results = goals.length === 0 ? [] : await countGoals(store, web, goals);
  if (order !== undefined) results.sort((a, b) => order.sign * (a[order.column][0] - b[order.column][0]));
  return {
    columns: columns.map((name) => `context.columns.${name}`),
    results,
    ...rangeMembers(web),
    samplingRate: null,
  };
}

async function countGoals(store: EventSql, web: WebQuery, goals: readonly WebGoal[]): Promise<Row[]> {
  const visits = await visitSource(store, web, []);
  const counted = Object.values(periods);
  const [all = []] = await store.rows(
    `SELECT ${counted.map((period) => figures.visitors(inPeriod(period))).join(", ")} FROM (${visits}) AS e`,
  );
  const amounts = goals.flatMap((_, index) => [
    `count(DISTINCT CASE WHEN g.g${index} > 0 THEN g.who END)`,
    `sum(g.g${index})`,
  ]);
  // Only visitors in the figures above, so that no rate exceeds 1.
  const rows = await store.rows(
    `SELECT g.period, ${amounts.join(", ")} FROM (${conversions(store, web, goals)}) AS g
     JOIN (SELECT DISTINCT e.period AS period, e.who AS who FROM (${visits}) AS e) AS v
       ON v.period = g.period AND v.who = g.who GROUP BY g.period`,
  );
  const amount = (period: number, position: number) =>
    Number(rows.find(([of]) => Number(of) === period)?.[1 + position] ?? 0);
  const pair = (getValue: (period: number) => number): Pair => [
    getValue(periods.current),
    web.previous === undefined ? null : getValue(periods.previous),
  ];
  return goals.map(({ name }, index): Row => {
    const visitors = (period: number) => amount(period, 2 * index);
    const total = (period: number) => Number(all[period] ?? 0);
    const rate = (period: number) => (total(period) === 0 ? 0 : visitors(period) / total(period));
    return [name, pair(visitors), pair((period) => amount(period, 2 * index + 1)), pair(rate)];
  });
}

/** @throws {UnknownQueryError} */
function orderIn({ orderBy }: JsonObject): { column: 1 | 2 | 3; sign: 1 | -1 } | undefined {
  if (orderBy === undefined || orderBy === null) return undefined;
  const [field, direction = "DESC"] = Array.isArray(orderBy) ? orderBy : [];
  const isKnown = typeof field === "string" && Object.hasOwn(orders, field);
  if (isKnown && (direction === "ASC" || direction === "DESC"))
    return { column: orders[field as keyof typeof orders], sign: direction === "ASC" ? 1 : -1 };
  throw new UnknownQueryError(
    `The orderBy ${JSON.stringify(orderBy)} is not valid: expected [field, "ASC" or "DESC"], with the field ${Object.keys(orders).join(" or ")}.`,
  );
}
