/** Insights: stored queries over events, and their results. */

import type { Static } from "@sinclair/typebox";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { allows } from "../../accounts/limits.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { findUser } from "../../accounts/users.ts";
import {
  type ComputedInsight,
  type Refresh,
  refreshNames,
  refreshOf,
  refreshWords,
} from "../../events/insights/insight-cache.ts";
import { statementOf } from "../../events/query/hogql.ts";
import { unavailable } from "../../http/answers.ts";
import { notFound } from "../../http/failure.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { Reply, type Route } from "../../http/route.ts";
import { choice, object, onePage, optional, pageOf, text, withPage } from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import {
  createInsight,
  dashboardsOf,
  findInsight,
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
} from "./insight-shapes.ts";

const tagName = "Insights";
const withoutResult = { ...exampleInsight, last_refresh: null, result: null };
/** How old results may be. */
export const RefreshQuery = object({
  refresh: optional(choice(refreshNames, { description: refreshWords })),
});
const InsightPage = pageOf("InsightPage", InsightBody);

/** Computes insights. */
export interface InsightQueries {
  /**
   * Runs the query of an insight.
   *
   * @param query e.g. `{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", ...}}`.
   * @returns     the `result` of the insight: for trends one object per series, for funnels one per step, for SQL one list
   *              per row.
   * @throws {InvalidField} the query is of a kind that is not known.
   */
  run(projectId: number, query: JsonObject, how: InsightRun): Promise<InsightOutcome>;
}

/** What was computed; of SQL also what its columns are. */
export type InsightOutcome = Omit<ComputedInsight, "results"> & {
  results: Json | null;
  table?: InsightTable;
};

export interface InsightRun {
  /** IANA name; days begin there. */
  timezone: string;
  /** Where weeks start, unless the query says so. */
  weekStartDay: Project["weekStartDay"];
  now: Date;
  refresh: Refresh;
}

export interface InsightDeps {
  metadata: Metadata;
  /** Absent: insights come without results. */
  insights?: InsightQueries;
}

export function insightRoutes(deps: InsightDeps): Route[] {
  const { metadata } = deps;
  const write = (insight: Insight, computed?: Computed) =>
    insightBody(insight, {
      creator: insight.createdById === null ? undefined : findUser(metadata.db, insight.createdById),
      dashboards: dashboardsOf(metadata.db, insight.id),
      tags: tagsOfInsight(metadata.db, insight.id),
      computed,
    });
  return [
    projectRoute("GET", "/insights", "insight:read", {
      summary: "List insights",
      description: "Without results; read one insight for its result.",
      tag: tagName,
      query: withPage(
        object({
          search: optional(text({ description: "Part of the name." })),
          short_id: optional(text()),
        }),
      ),
      answers: {
        200: onePage("One page of insights.", InsightPage, withoutResult),
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
        return new Reply(201, write(createInsight(metadata, input, call.now)));
      },
    }),
    projectRoute("GET", "/insights/:id", "insight:read", {
      summary: "Get an insight with its result",
      description:
        "By id or short id, with its result; where that cannot be computed `query_status` says why.",
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
      description: "`deleted: false` brings a deleted one back.",
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

/** What a body writes into the insight, and what it links it with. */
function written({ dashboards, tags, derived_name: derivedName, ...fields }: Static<typeof InsightInput>) {
  return {
    fields: { ...fields, ...(derivedName === undefined ? {} : { derivedName }) },
    links: { dashboards, tags },
  };
}

/** Runs the query of an insight; undefined when it has none, or nothing was to be computed. @throws {InvalidField} `refresh` */
export async function compute(
  deps: InsightDeps,
  call: ProjectCall<unknown>,
  insight: Insight,
): Promise<Computed | undefined> {
  const refresh = refreshOf(call.query.get("refresh"));
  if (!deps.insights || Object.keys(insight.query).length === 0) return undefined;
  const { id, timezone, weekStartDay } = call.project;
  // Otherwise a key without `query:read` could save a statement and read its rows.
  if (statementOf(insight.query) !== undefined && !allows(call.limits.scopes, "query:read")) {
    return { problem: "The insight is a SQL query, which needs the scope query:read." };
  }
  try {
    const how = { timezone, weekStartDay, now: call.now, refresh };
    const { results, computedAt, isCached, table } = await deps.insights.run(id, insight.query, how);
    if (results === null || computedAt === null) return undefined;
    return { result: results, at: new Date(computedAt), isCached, table };
  } catch (error) {
    // The insight itself can be read all the same, and changed.
    if (error instanceof InvalidField) return { problem: error.message };
    throw error;
  }
}
