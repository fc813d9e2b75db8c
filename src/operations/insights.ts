/** Insights: stored queries over events, and their results (contract: management-api 6.3). */

import type { Static } from "@sinclair/typebox";
import { getCreatorId } from "../accounts/activity.ts";
import { findUser } from "../accounts/users.ts";
import { compute, type InsightDeps } from "../dashboards/api/compute-insight.ts";
import {
  type Computed,
  exampleInsight as example,
  InsightBody,
  InsightInput,
  insightBody,
} from "../dashboards/api/insight-schemas.ts";
import {
  createInsight,
  findInsight,
  getDashboards,
  type Insight,
  listInsights,
  tagsOfInsight,
  updateInsight,
} from "../dashboards/store.ts";
import { UnknownQueryError } from "../events/event-filters.ts";
import { refreshDescription, refreshNames } from "../events/insights/insight-cache.ts";
import { printSql } from "../events/insights/view-sql.ts";
import { unavailable } from "../http/error-mapping.ts";
import { notFound } from "../http/http-error.ts";
import {
  enumeration,
  int,
  list,
  longString,
  named,
  num,
  object,
  optional,
  pageOf,
  record,
  string,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { jsonOptions } from "./experiment-list.ts";
import {
  type CommandArgument,
  getAuthor,
  getLimits,
  listOperation,
  type Operation,
  operation,
  type ProjectContext,
} from "./operation.ts";

type Context = ProjectContext<InsightDeps>;

const tag = "Insights";
const withoutResult = { ...example, last_refresh: null, result: null };

/** Maximum age of results. */
export const RefreshQuery = object({
  refresh: optional(enumeration(refreshNames, { description: refreshDescription })),
});
/** Routes that write read it too. */
export const readRefresh = (query: URLSearchParams) => ({ refresh: query.get("refresh") });

function body({ stores: { metadata } }: Context, insight: Insight, computed?: Computed) {
  return insightBody(insight, {
    creator: insight.createdById === null ? undefined : findUser(metadata.db, insight.createdById),
    dashboards: getDashboards(metadata.db, insight.id),
    tags: tagsOfInsight(metadata.db, insight.id),
    computed,
  });
}

const selectDescription =
  "`results` (default); `persons` behind a `figure`; `person_count`, the distinct persons of a retention";
const FigureInput = object(
  {
    series: int({ minimum: 0, maximum: 100, description: "Index of the series or step." }),
    day: optional(string({ max: 19, description: "Start of its period, as in the results." })),
    breakdown: optional(
      list(longString(), { maxItems: 3, description: "One value per property of the breakdown." }),
    ),
    later: optional(int({ minimum: 0, maximum: 100, description: "Retention: periods until the return." })),
    status: optional(enumeration(["new", "returning", "resurrecting", "dormant"])),
    seconds: optional(list(num(), { minItems: 2, maxItems: 2, description: "Bounds of a time to convert." })),
  },
  { description: "A number in the results: `persons` selects those behind it." },
);
const InsightSql = named("InsightSql", object({ sql: string({ description: "A SELECT over the views." }) }));

type InsightRecord = Static<typeof InsightBody>;
const getName = ({ name, derived_name: derived }: InsightRecord) => name || (derived ?? "");
const insightArgument: CommandArgument = { name: "insight", description: "id or short id", member: "id" };

const listAllInsights = listOperation({
  id: "insights.list",
  on: "project",
  scope: "insight:read",
  tag,
  summary: "List insights",
  description: "Without results; get a single insight for its result.",
  http: { method: "GET", path: "/insights", answer: "One page of insights." },
  cli: {
    name: "insights list",
    examples: ["insights list --search orders"],
    options: { short_id: { description: "only the insight with this short id" } },
    table: {
      headings: ["id", "short id", "name", "dashboards"],
      row: (insight: InsightRecord) => [
        String(insight.id),
        insight.short_id,
        getName(insight),
        insight.dashboards.join(","),
      ],
    },
  },
  mcp: { name: "list_insights" },
  input: object({
    search: optional(string({ description: "Part of the name." })),
    short_id: optional(string()),
  }),
  output: pageOf("InsightPage", InsightBody),
  example: withoutResult,
  readQuery: (query) => ({
    search: query.get("search") || undefined,
    shortId: query.get("short_id") || undefined,
  }),
  run: (context: Context, { limit, offset, ...filter }) => {
    const { stores, project } = context;
    const { insights, count } = listInsights(stores.metadata.db, project.id, filter, { limit, offset });
    return { count, results: insights.map((insight) => body(context, insight)) };
  },
});

const createNewInsight = operation({
  id: "insights.create",
  on: "project",
  scope: "insight:write",
  tag,
  summary: "Create an insight",
  http: { method: "POST", path: "/insights", status: 201, answer: "The new insight." },
  input: InsightInput,
  inputExample: { name: example.name, query: example.query, dashboards: [31] },
  output: InsightBody,
  example: withoutResult,
  run: (context: Context, input) => {
    const { stores, project, actor, now } = context;
    const fields = { projectId: project.id, by: getCreatorId(getAuthor(actor)), ...getFields(input) };
    return body(context, createInsight(stores.metadata, fields, now));
  },
});

const getOneInsight = operation({
  id: "insights.get",
  on: "project",
  scope: "insight:read",
  tag,
  summary: "Get an insight with its result",
  description: "By id or short id. If the result cannot be computed, `query_status` has the error.",
  http: { method: "GET", path: "/insights/:id", answer: "The insight.", errors: unavailable },
  cli: {
    name: "insights show",
    description: "Show an insight; a server computes its result.",
    examples: ["insights show 3fAbC9xY --url http://127.0.0.1:8000"],
    arguments: [insightArgument],
    done: (insight: InsightRecord) =>
      [
        `${getName(insight)} (${insight.short_id})`,
        insight.query_status?.error_message ?? JSON.stringify(insight.result, null, 2),
      ].join("\n"),
  },
  mcp: { name: "get_insight" },
  input: object({ id: string(), ...RefreshQuery.properties }),
  output: InsightBody,
  example,
  readQuery: readRefresh,
  run: async (context: Context, { id, refresh }) => {
    const { stores, project, actor, now } = context;
    const insight = findInsight(stores.metadata.db, project.id, id);
    if (!insight) throw notFound();
    const options = { project, limits: getLimits(actor), now, refresh };
    return body(context, insight, await compute(stores, options, insight));
  },
});

const updateOneInsight = operation({
  id: "insights.update",
  on: "project",
  scope: "insight:write",
  tag,
  summary: "Update or delete an insight",
  description: "`deleted: false` restores a deleted insight.",
  http: { method: "PATCH", path: "/insights/:id", answer: "The insight." },
  input: object({ id: string(), ...InsightInput.properties }),
  inputExample: { name: "Orders" },
  output: InsightBody,
  example: withoutResult,
  run: (context: Context, { id, ...input }) => {
    const { stores, project, now } = context;
    const target = { projectId: project.id, name: id };
    return body(context, updateInsight(stores.metadata, target, getFields(input), now));
  },
});

const printInsightSql = operation({
  id: "insights.sql",
  on: "project",
  scope: "query:read",
  tag,
  summary: "Print an insight query as SQL",
  description:
    "The statement for `POST …/query/` counts as the query does. Relative ranges stay relative. Stickiness, cumulative displays " +
    "and parts of funnels cannot be printed.",
  http: { method: "POST", path: "/insights/sql", answer: "The statement." },
  cli: {
    name: "insights sql",
    examples: ['insights sql --query \'{"kind":"TrendsQuery","series":[{"event":"order paid"}]}\''],
    options: { ...jsonOptions(["query", "figure"]), select: { description: selectDescription } },
    done: ({ sql }: Static<typeof InsightSql>) => sql,
  },
  input: object({
    query: record({ description: "As in insights: a computed query, or a node that wraps one." }),
    select: optional(enumeration(["results", "persons", "person_count"], { description: selectDescription })),
    figure: optional(FigureInput),
  }),
  inputExample: { query: { kind: "TrendsQuery", series: [{ event: "order paid" }] } },
  output: InsightSql,
  example: { sql: "SELECT date_trunc('day', e.timestamp) AS period, count(*) AS value\nFROM events e …" },
  run: ({ project, now }: Context, { query, select = "results", figure }) => {
    const { id: projectId, timezone, weekStartDay } = project;
    const request = { projectId, query, timezone, weekStartDay, now: now.getTime() };
    if (select === "persons" && figure === undefined)
      throw new InvalidFieldError("figure", "required", "The persons of a figure require `figure`.");
    try {
      const selection = select === "persons" ? { select, figure: figure! } : { select };
      return { sql: printSql(request, selection) };
    } catch (error) {
      if (error instanceof UnknownQueryError)
        throw new InvalidFieldError("query", "invalid_input", error.message);
      throw error;
    }
  },
});

/** Commands of their own; the routes are those of the operations. */
const createCommand = {
  ...createNewInsight,
  input: object({
    name: string({ max: 400 }),
    query: record(),
    description: optional(string({ blank: true })),
    dashboards: optional(list(int())),
  }),
  cli: {
    name: "insights create",
    examples: ['insights create Orders --query \'{"kind":"TrendsQuery","series":[{"event":"order paid"}]}\''],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    options: { description: { description: "description" }, ...jsonOptions(["query", "dashboards"]) },
    hasFile: true,
    hasCreator: true,
    done: (insight: InsightRecord) => `Insight ${getName(insight)} (${insight.short_id}) created.`,
  },
} satisfies Operation;
const deleteCommand = {
  ...updateOneInsight,
  input: object({ id: string() }),
  cli: {
    name: "insights delete",
    description: "Delete an insight.",
    examples: ["insights delete 3fAbC9xY"],
    arguments: [insightArgument],
    adds: () => ({ deleted: true }),
    done: (insight: InsightRecord) => `Insight ${getName(insight)} (${insight.short_id}) deleted.`,
  },
} satisfies Operation;

export const insightCommands: readonly Operation[] = [createCommand, deleteCommand];

/** Splits a body into columns of the insight and its links. */
function getFields({ dashboards, tags, derived_name: derivedName, ...fields }: Static<typeof InsightInput>) {
  return {
    fields: { ...fields, ...(derivedName === undefined ? {} : { derivedName }) },
    links: { dashboards, tags },
  };
}

/** In the order of the documentation. */
export const insightOperations = [
  listAllInsights,
  createNewInsight,
  getOneInsight,
  updateOneInsight,
  printInsightSql,
];
