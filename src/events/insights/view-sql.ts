/**
 * Prints insight queries as SQL over the documented views: what a query counts, and the persons behind one of its
 * numbers. The statements count as the computed queries do; a test compares the two.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { type TrendsRequest, withOwnWeeks } from "./event-source.ts";
import { validateQuery } from "./validate-query.ts";
import { funnelPersonsSql, funnelSql } from "./view-sql-funnel.ts";
import { type Figure, readQuery, unwrapped } from "./view-sql-query.ts";
import {
  lifecyclePersonsSql,
  lifecycleSql,
  retentionCountSql,
  retentionPersonsSql,
  retentionSql,
} from "./view-sql-retention.ts";
import { trendPersonsSql, trendSql } from "./view-sql-trends.ts";

/** What a printed statement selects: the results, the persons of a figure, or the number of a retention's persons. */
export type Selection =
  | { select: "results" }
  | { select: "persons"; figure: Figure }
  | { select: "person_count" };

const personColumns = `any_value(e.distinct_id) AS distinct_id,
  any_value(coalesce(prop(p.properties, 'email'), prop(p.properties, 'name'))) AS name, count(*) AS times`;

/** The statement of a query, or of the `source` of a wrapping node. @throws {UnknownQueryError} */
export function printSql(sent: TrendsRequest, selection: Selection): string {
  const query = unwrapped(sent.query);
  validateQuery(query);
  const request = withOwnWeeks(sent, query);
  const { kind } = query;
  if (kind === "RetentionQuery") return printRetention(request, query, selection);
  if (selection.select === "person_count" || !isPrintable(kind))
    throw new UnknownQueryError(`Queries of kind ${JSON.stringify(kind ?? null)} cannot be printed as SQL.`);
  const view = readQuery(request, query);
  const { print, printPersons } = printers[kind];
  if (selection.select === "results") return print(view);
  assertSeries(selection.figure, view.series.length);
  return printPersons(view, selection.figure, personColumns);
}

const printers = {
  TrendsQuery: { print: trendSql, printPersons: trendPersonsSql },
  FunnelsQuery: { print: funnelSql, printPersons: funnelPersonsSql },
  LifecycleQuery: { print: lifecycleSql, printPersons: lifecyclePersonsSql },
};
const isPrintable = (kind: unknown): kind is keyof typeof printers =>
  typeof kind === "string" && Object.hasOwn(printers, kind);

function printRetention(request: TrendsRequest, query: JsonObject, selection: Selection): string {
  if (selection.select === "results") return retentionSql(request, query);
  if (selection.select === "person_count") return retentionCountSql(request, query);
  return retentionPersonsSql(request, query, selection.figure, personColumns);
}

function assertSeries({ series }: Figure, count: number): void {
  if (series >= count) throw new UnknownQueryError(`The query has no series ${series}: they start at 0.`);
}
