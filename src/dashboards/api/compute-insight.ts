/** Runs the stored queries of insights. */

import { allows, type KeyRestrictions } from "../../accounts/limits.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import type { Project } from "../../accounts/project-directory.ts";
import type { WebSettings } from "../../events/insights/event-source.ts";
import { type ComputedInsight, getRefresh, type Refresh } from "../../events/insights/insight-cache.ts";
import { toStatement } from "../../events/query/hogql.ts";
import { webSettings } from "../../events/web/web-query.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { Insight } from "../store.ts";
import type { Computed, InsightTable } from "./insight-schemas.ts";

export interface InsightQueries {
  /**
   * Runs the query of an insight.
   *
   * @param query e.g. `{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", ...}}`.
   * @returns     the `result` of the insight: for trends one object per series, for funnels one per step, for SQL one
   *   list per row.
   * @throws {InvalidFieldError} the kind of the query is unknown.
   */
  run(projectId: number, query: JsonObject, how: InsightRun): Promise<InsightResult>;
}

/** Results; for SQL also the columns. */
export type InsightResult = Omit<ComputedInsight, "results"> & {
  results: Json | null;
  table?: InsightTable;
};

export interface InsightRun {
  /** IANA name; defines where days start. */
  timezone: string;
  /** First day of the week, unless the query sets it. */
  weekStartDay: Project["weekStartDay"];
  /** Settings of web analytics. */
  web: WebSettings;
  now: Date;
  refresh: Refresh;
}

export interface InsightDeps {
  metadata: Metadata;
  /** Absent: insights are returned without results. */
  insights?: InsightQueries;
}

/** Context of an insight's computation. */
export interface ComputeOptions {
  project: Project;
  limits: KeyRestrictions;
  now: Date;
  /** Maximum age of results, unchecked; null: the default. */
  refresh: string | null;
}

/**
 * Runs the query of an insight; undefined if it has no query or nothing is to be computed. @throws {InvalidFieldError}
 * `refresh`
 */
export async function compute(
  deps: InsightDeps,
  { project, limits, now, refresh: name }: ComputeOptions,
  insight: Pick<Insight, "query">,
): Promise<Computed | undefined> {
  const refresh = getRefresh(name);
  if (!deps.insights || Object.keys(insight.query).length === 0) return undefined;
  const { id, timezone, weekStartDay } = project;
  // Otherwise a key without `query:read` could save a statement and read its rows.
  if (toStatement(insight.query) !== undefined && !allows(limits.scopes, "query:read")) {
    return { problem: "The insight is an SQL query, which requires the scope query:read." };
  }
  try {
    const how = { timezone, weekStartDay, web: webSettings(project), now, refresh };
    const { results, computedAt, isCached, table } = await deps.insights.run(id, insight.query, how);
    if (results === null || computedAt === null) return undefined;
    return { result: results, at: new Date(computedAt), isCached, table };
  } catch (error) {
    // The insight itself stays readable and editable.
    if (error instanceof InvalidFieldError) return { problem: error.message };
    throw error;
  }
}

/** Applies the dashboard's dates to a query, or to the node that wraps one; no change if it has none. */
export function withDates(query: JsonObject, filters: JsonObject): JsonObject {
  const { date_from = null, date_to = null } = filters;
  if ((date_from === null && date_to === null) || Object.keys(query).length === 0) return query;
  if (isJsonObject(query.source)) return { ...query, source: withDates(query.source, filters) };
  return { ...query, dateRange: { date_from, date_to } };
}
