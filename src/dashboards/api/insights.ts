/** Insights: stored queries over events, and their results. */

import type { Static } from "@sinclair/typebox";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { allows } from "../../accounts/limits.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { findUser } from "../../accounts/users.ts";
import type { WebSettings } from "../../events/insights/event-source.ts";
import {
  type ComputedInsight,
  getRefresh,
  type Refresh,
  refreshNames,
  refreshWords,
} from "../../events/insights/insight-cache.ts";
import { toStatement } from "../../events/query/hogql.ts";
import { webSettings } from "../../events/web/web-query.ts";
import { unavailable } from "../../http/documented-responses.ts";
import { notFound } from "../../http/http-error.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { enumeration, object, optional, pageExample, pageOf, string, withPage } from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import {
  createInsight,
  findInsight,
  getDashboards,
  type Insight,
  listInsights,
  tagsOfInsight,
  updateInsight,
} from "../store.ts";
import {
  type Computed,
  exampleInsight,
  InsightBody,
  InsightInput,
  type InsightTable,
  insightBody,
} from "./insight-schemas.ts";

const tagName = "Insights";
const withoutResult = { ...exampleInsight, last_refresh: null, result: null };
/** Maximum age of results. */
export const RefreshQuery = object({
  refresh: optional(enumeration(refreshNames, { description: refreshWords })),
});
const InsightPage = pageOf("InsightPage", InsightBody);

export interface InsightQueries {
  /**
   * Runs the query of an insight.
   *
   * @param query e.g. `{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", ...}}`.
   * @returns     the `result` of the insight: for trends one object per series, for funnels one per step, for SQL one
   *   list per row.
   * @throws {InvalidFieldError} the kind of the query is unknown.
   */
  run(projectId: number, query: JsonObject, how: InsightRun): Promise<InsightOutcome>;
}

/** Results; for SQL also the columns. */
export type InsightOutcome = Omit<ComputedInsight, "results"> & {
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

export function insightRoutes(deps: InsightDeps): Route[] {
  const { metadata } = deps;
  const write = (insight: Insight, computed?: Computed) =>
    insightBody(insight, {
      creator: insight.createdById === null ? undefined : findUser(metadata.db, insight.createdById),
      dashboards: getDashboards(metadata.db, insight.id),
      tags: tagsOfInsight(metadata.db, insight.id),
      computed,
    });
  return [
    projectRoute("GET", "/insights", "insight:read", {
      summary: "List insights",
      description: "Without results; get a single insight for its result.",
      tag: tagName,
      query: withPage(
        object({
          search: optional(string({ description: "Part of the name." })),
          short_id: optional(string()),
        }),
      ),
      answers: {
        200: pageExample("One page of insights.", InsightPage, withoutResult),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const filter = {
          search: call.query.get("search") || undefined,
          shortId: call.query.get("short_id") || undefined,
        };
        const { insights, count } = listInsights(metadata.db, call.project.id, filter, page);
        return pageAnswer(
          call.url,
          page,
          count,
          insights.map((insight) => write(insight)),
        );
      },
    }),
    projectRoute("POST", "/insights", "insight:write", {
      summary: "Create an insight",
      tag: tagName,
      body: InsightInput,
      bodyExample: { name: exampleInsight.name, query: exampleInsight.query, dashboards: [31] },
      answers: { 201: { description: "The new insight.", schema: InsightBody, example: withoutResult } },
      handle: (call) => {
        const input = { projectId: call.project.id, by: call.user.id, ...written(call.body) };
        return new RouteResponse(201, write(createInsight(metadata, input, call.now)));
      },
    }),
    projectRoute("GET", "/insights/:id", "insight:read", {
      summary: "Get an insight with its result",
      description: "By id or short id. If the result cannot be computed, `query_status` has the error.",
      tag: tagName,
      query: RefreshQuery,
      answers: {
        200: { description: "The insight.", schema: InsightBody, example: exampleInsight },
        ...unavailable,
      },
      handle: async (call) => {
        const insight = findInsight(metadata.db, call.project.id, call.params.id ?? "");
        if (!insight) throw notFound();
        return write(insight, await compute(deps, call, insight));
      },
    }),
    projectRoute("PATCH", "/insights/:id", "insight:write", {
      summary: "Update or delete an insight",
      description: "`deleted: false` restores a deleted insight.",
      tag: tagName,
      body: InsightInput,
      isPartial: true,
      bodyExample: { name: "Orders" },
      answers: { 200: { description: "The insight.", schema: InsightBody, example: withoutResult } },
      handle: (call) => {
        const of = { projectId: call.project.id, name: call.params.id ?? "" };
        return write(updateInsight(metadata, of, written(call.body), call.now));
      },
    }),
  ];
}

/** Splits a body into columns of the insight and its links. */
function written({ dashboards, tags, derived_name: derivedName, ...fields }: Static<typeof InsightInput>) {
  return {
    fields: { ...fields, ...(derivedName === undefined ? {} : { derivedName }) },
    links: { dashboards, tags },
  };
}

/**
 * Runs the query of an insight; undefined if it has no query or nothing is to be computed. @throws {InvalidFieldError}
 * `refresh`
 */
export async function compute(
  deps: InsightDeps,
  call: Pick<ProjectCall<unknown>, "project" | "query" | "limits" | "now">,
  insight: Insight,
): Promise<Computed | undefined> {
  const refresh = getRefresh(call.query.get("refresh"));
  if (!deps.insights || Object.keys(insight.query).length === 0) return undefined;
  const { id, timezone, weekStartDay } = call.project;
  // Otherwise a key without `query:read` could save a statement and read its rows.
  if (toStatement(insight.query) !== undefined && !allows(call.limits.scopes, "query:read")) {
    return { problem: "The insight is an SQL query, which requires the scope query:read." };
  }
  try {
    const how = { timezone, weekStartDay, web: webSettings(call.project), now: call.now, refresh };
    const { results, computedAt, isCached, table } = await deps.insights.run(id, insight.query, how);
    if (results === null || computedAt === null) return undefined;
    return { result: results, at: new Date(computedAt), isCached, table };
  } catch (error) {
    // The insight itself stays readable and editable.
    if (error instanceof InvalidFieldError) return { problem: error.message };
    throw error;
  }
}
