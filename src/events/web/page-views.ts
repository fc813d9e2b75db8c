/** Page views by path and visitor. */

import { isAboutPerson } from "../event-filters.ts";
import type { EventSql } from "../sql-dialect.ts";
import { propertyOfFilter, visitFilterSql, webFilterSql } from "./filters.ts";
import { pathSql } from "./visit-fields.ts";
import { inRanges, isView, keyedHits, roleColumns, visitAggregates, withOwners } from "./visits.ts";
import type { WebQuery } from "./web-query.ts";

/** SQL for rows with `period`, `path`, `who` and `views`. @throws {UnknownQueryError} names an unsupported filter */
export async function pageSource(store: EventSql, query: WebQuery): Promise<string> {
  const pages = query.visitFilters.length === 0 ? allPages(store, query) : pagesOfVisits(store, query);
  return withOwners(store, query, pages);
}

/** Every page view belongs to a visit, so visits need not be known. */
function allPages(store: EventSql, query: WebQuery): string {
  const { request, eventFilters } = query;
  const persons = eventFilters.some(isAboutPerson) ? store.dialect.personOfEvent(request.projectId) : "";
  const conditions = [isView(store, query), ...eventFilters.map((filter) => webFilterSql(store, filter))];
  // Not grouped: callers group by visitor, which is faster than by the strings here.
  return inRanges(store, query)
    .parts.map(
      ({
        where,
        period,
      }) => `SELECT ${request.projectId} AS project_id, ${period} AS period, ${pathSql(store)} AS path,
        e.distinct_id AS distinct_id, 1 AS views FROM events e ${persons} WHERE ${where} AND ${conditions.join(" AND ")}`,
    )
    .join(" UNION ALL ");
}

/** The pages of visits that pass the filters, with the visitor of the visit. */
function pagesOfVisits(store: EventSql, query: WebQuery): string {
  const { request, visitFilters } = query;
  const columns = roleColumns(store, [
    ...new Set(visitFilters.flatMap((filter) => propertyOfFilter(filter).fields)),
  ]);
  const path = { name: "path", value: pathSql(store) };
  const visits = `SELECT h.period AS period, h.visit AS visit, ${visitAggregates(store, columns)}
    FROM (${keyedHits(store, query, columns)}) AS h GROUP BY h.period, h.visit`;
  const conditions = visitFilters.map((filter) => visitFilterSql(store, filter));
  return `SELECT ${request.projectId} AS project_id, h.period AS period, h.path AS path, e.distinct_id AS distinct_id,
      sum(h.is_view * h.is_selected) AS views
    FROM (${keyedHits(store, query, [path])}) AS h JOIN (${visits}) AS e ON e.period = h.period AND e.visit = h.visit
    WHERE ${conditions.join(" AND ")} AND h.is_view = 1 AND h.is_selected = 1
    GROUP BY h.period, h.path, e.distinct_id`;
}
