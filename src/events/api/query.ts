/** `POST …/query/`: SQL over the documented views of a project. */

import type { Static } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import type { Project } from "../../accounts/project-directory.ts";
import type { User } from "../../accounts/users.ts";
import { unavailable } from "../../http/error-mapping.ts";
import { fileTypes, getFileFormat, whileAllowed } from "../../http/result-files.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import {
  ApiFailure,
  anyJson,
  bool,
  dateTime,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  record,
  string,
  union,
} from "../../http/schemas.ts";
import { clientSignal, withAbortSignal } from "../../lib/cancellation.ts";
import { InvalidFieldError, TooManyAttemptsError } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { toApiTimeOrNull } from "../../lib/time.ts";
import { QueryRejectedError } from "../event-filters.ts";
import { columnsDescription, csvCaution } from "../export/columns.ts";
import { getRefresh, type Refresh, refreshDescription } from "../insights/insight-cache.ts";
import { toHogqlOptions, toStatement } from "../query/hogql.ts";
import { rowsDefault, rowsMax } from "../query/run-query.ts";
import { webRowsMax } from "../web/stats-table.ts";
import { findWebQuery, webSettings } from "../web/web-query.ts";
import { type EventQueries, StatementBlockedError } from "./query-port.ts";

const ofHogQl = (what: string) => `\`HogQLQuery\` only: ${what}.`;
const QueryAnswer = named(
  "QueryAnswer",
  object({
    columns: list(string({ blank: true }), { description: "Names of the columns, in order." }),
    rows: list(record(), { description: "One object per row, with a member per column." }),
    truncated: bool({ description: "True if there are more rows than `limit`." }),
    types: optional(
      list(list(string({ blank: true })), { description: ofHogQl("name and type of each column") }),
    ),
    results: optional(list(list(anyJson()), { description: ofHogQl("the values of each row, in order") })),
    hasMore: optional(bool({ description: ofHogQl("the same as `truncated`") })),
  }),
);

const ofWeb = (what: string) => `Web analytics only: ${what}.`;
/** What web analytics queries return in addition to the members of other computed queries. */
const webMembers = {
  columns: optional(list(string(), { description: ofWeb("names of the columns of lists") })),
  hasMore: optional(bool({ description: ofWeb("there are more rows than `limit`") })),
  limit: optional(int({ description: ofWeb("maximum number of rows") })),
  offset: optional(int({ description: ofWeb("number of rows that were skipped") })),
  isEstimated: optional(
    bool({ description: ofWeb("some countries of `Country` are estimated from the time zone") }),
  ),
  previous: optional(
    anyJson({ description: ofWeb("`results` of `WebTrendsQuery` for the previous period") }),
  ),
  dateFrom: optional(string({ description: ofWeb("first second of the range, in the project's time zone") })),
  dateTo: optional(string({ description: ofWeb("last second of the range") })),
  samplingRate: optional(nullable(anyJson({ description: ofWeb("always null") }))),
  usedPreAggregatedTables: optional(bool({ description: ofWeb("always false") })),
};

const ComputedAnswer = named(
  "ComputedQuery",
  object({
    results: anyJson({
      description:
        "Trends: one object per series and breakdown value. Funnels: one per step (lists of steps with a breakdown), or with " +
        '`"funnelVizType": "trends"` one per breakdown value, with the conversion rate in `data`, or with `"time_to_convert"` one ' +
        "object: `bins` (lower bound in seconds, number of persons) and `average_conversion_time`. Retention: one per period. Lifecycle: one per status. Stickiness: one per series, with the users of 1, 2, … intervals. Null for `force_cache` without a cached result.",
    }),
    is_cached: bool({ description: "The result comes from the cache." }),
    last_refresh: nullable(dateTime(), { description: "Time of the computation." }),
    ...webMembers,
  }),
);

type WebResults = Pick<Static<typeof ComputedAnswer>, "results">;

const queryIdLengthMax = 128;

const Body = object({
  query: anyJson({
    description:
      'A SELECT statement, or an object `{"kind": "HogQLQuery", "query": "SELECT …"}`, also as the `source` of a `DataVisualizationNode`, or a `TrendsQuery`, `FunnelsQuery`, ' +
      "`RetentionQuery`, `LifecycleQuery` or `StickinessQuery`, which is computed without being saved, or a query of web analytics: `WebOverviewQuery`, " +
      "`WebStatsTableQuery` (`breakdownBy`, `includeBounceRate`, `includeScrollDepth`, `includeAvgTimeOnPage`, `conversionGoal`, `includeRevenue`, `orderBy`, `limit` up to " +
      `${webRowsMax}, \`offset\`), \`WebGoalsQuery\`, \`WebTrendsQuery\` (\`metrics\`) or \`WebOnlineQuery\`, with \`properties\`, ` +
      "`dateRange` and `compareFilter`. A funnel's `funnelsFilter` takes " +
      "`funnelOrderType` (`ordered`, `strict`, `unordered`), `funnelVizType` (`steps`, `trends`, `time_to_convert` with `binCount`), `funnelWindowInterval`, " +
      "`funnelWindowIntervalUnit`, `funnelFromStep` and `funnelToStep`; a trend takes `compareFilter: {compare: true}` to add " +
      "the previous period, or the one shifted by its `compare_to` (`-1y`). Its `trendsFilter` takes a `display`: of " +
      "`BoldNumber`, `ActionsTable`, `ActionsPie`, `ActionsBarValue` and `WorldMap` each result has the figure of the whole range in " +
      "`aggregated_value`; `ActionsLineGraphCumulative` returns running totals, where users " +
      "and sessions count once. Its `formula`, `formulas` or `formulaNodes` (at most 10, of at most 200 characters: letters of " +
      "the series, numbers, `+ - * / %`, parentheses) replace the series by figures such as `A / B * 100`, 0 where they are " +
      "not finite. Its `breakdownFilter` takes up to 3 `breakdowns` (`property`, `type`); `breakdown_value` is then a list. The `math` `weekly_active` and `monthly_active` of a trend count the users of the 7 or 30 days up to the " +
      "end of each bucket; like `dau` if the interval is as long. A `stickinessFilter` takes `computedAs` (`non_cumulative`, `cumulative`) and " +
      '`stickinessCriteria` (`{"operator": "gte", "value": 2}`). ' +
      "Weeks start on the project's `week_start_day`, or the query's `weekStartDay` next to its " +
      "`interval`: 0 (Sunday) or 1 (Monday). `ExperimentQuery` (`experiment_id`, `metric`) and `ExperimentExposureQuery` " +
      "(`experiment_id`) return the figures of an experiment.",
  }),
  limit: optional(
    int({
      description: "Maximum number of rows.",
      default: rowsDefault,
      minimum: 1,
      maximum: rowsMax,
    } as never),
  ),
  refresh: optional(anyJson({ description: `Of computed queries. ${refreshDescription}` })),
  client_query_id: optional(
    string({ max: queryIdLengthMax, description: "Client-defined ID to cancel the query." }),
  ),
  name: optional(anyJson({ description: "Accepted for compatibility; ignored." })),
});

/** Kinds of queries that other modules compute, with result types of their own. */
export type QueryKinds = Readonly<Record<string, QueryKind>>;
export type QueryKind = (
  query: JsonObject,
  context: { project: Project; now: Date; refresh: Refresh },
) => Promise<JsonObject>;

export function queryRoutes({ engine, kinds = {} }: { engine: EventQueries; kinds?: QueryKinds }): Route[] {
  const running = new CancellableQueries();
  return [
    projectRoute("POST", "/query", "query:read", {
      summary: "Run a query",
      description:
        `One SELECT (DuckDB's SQL) over the views \`events\` (${columnsDescription("events")}), \`persons\` ` +
        `(${columnsDescription("persons")}) and \`groups\` (${columnsDescription("groups")}) of the project; ` +
        "a `HogQLQuery` may use HogQL's properties (`properties.plan`) and functions (`toStartOfDay`, `uniq`). " +
        "`prop('$browser')` returns a property as a string (`12` for 12.0). Functions " +
        "without side effects are allowed; everything else is rejected with 400 and `code` `statement_refused`. A statement has at most 64 KiB; " +
        "a result is limited by the setting `query-result-limit` (400 `result_too_large`), the run time by " +
        "`query-timeout` (503 `query_timeout`), and memory by `duckdb-memory-limit` (400 `query_memory`). Queries are cancelled " +
        "when the client disconnects. 503 `query_busy`: too many queries are queued. 429: statements of this project crashed the event " +
        "store twice within a minute. With `Accept: text/csv` or `application/vnd.apache.parquet` the rows of a SELECT are a " +
        "file streamed during the computation: all rows unless `limit` is set, of any size; an aborted " +
        `connection marks an incomplete file. ${csvCaution} With events in ClickHouse only insight queries are available.`,
      tag: "Events",
      body: Body,
      bodyExample: { query: "SELECT event, count(*) AS times FROM events GROUP BY ALL" },
      answers: {
        200: {
          description: "The rows of a SELECT, or the `results` of an insight query.",
          schema: union(QueryAnswer, ComputedAnswer),
          example: { columns: ["event", "times"], rows: [{ event: "signup", times: 3 }], truncated: false },
        },
        400: { description: "The statement is rejected or fails.", schema: ApiFailure },
        ...unavailable,
      },
      async handle({ project, user, body, now, request, isStillAllowed }) {
        const { query, limit = rowsDefault } = body;
        const statement = toStatement(query);
        if (isJsonObject(query) && statement === undefined && typeof query.query !== "string") {
          const context = { project, now, refresh: getRefresh(body.refresh) };
          const { kind } = query;
          const own = typeof kind === "string" && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
          return await running.run(getOwner(project, user), body.client_query_id, () =>
            own === undefined ? computed(engine, { ...context, query }) : own(query, context),
          );
        }
        const sql = statement ?? (isJsonObject(query) ? query.query : query);
        if (typeof sql !== "string")
          throw new InvalidFieldError("query", "invalid_input", "Not a valid string.");
        const { timezone, weekStartDay } = project;
        const hogql = toHogqlOptions(query, { timezone, weekStartDay, now: now.getTime() });
        const format = getFileFormat(request);
        try {
          if (format !== undefined) {
            const download = await running.run(getOwner(project, user), body.client_query_id, () =>
              engine.stream("download", { projectId: project.id, sql, hogql, format, limit: body.limit }),
            );
            return new Response(download.body && whileAllowed(download.body, isStillAllowed), {
              headers: {
                "Content-Type": format === "csv" ? `${fileTypes.csv}; charset=utf-8` : fileTypes.parquet,
                "Content-Disposition": `attachment; filename="query.${format}"`,
                Vary: "Accept",
              },
            });
          }
          const answer = await running.run(getOwner(project, user), body.client_query_id, () =>
            engine.stream("query", { projectId: project.id, sql, limit, hogql }),
          );
          return new Response(answer.body, { headers: { "Content-Type": "application/json" } });
        } catch (error) {
          if (error instanceof StatementBlockedError)
            throw new TooManyAttemptsError(error.waitSeconds, error.message);
          if (!(error instanceof QueryRejectedError) || error.code === "query_busy") throw error;
          throw new InvalidFieldError("query", error.code, error.message);
        }
      },
    }),
    projectRoute("DELETE", "/query/:client_query_id", "query:read", {
      summary: "Cancel a query",
      description:
        "Cancels the query that the same user runs in this project with this `client_query_id`; it returns 400 `query_cancelled`. A " +
        "finished or unknown query is not an error.",
      tag: "Events",
      answers: { 204: { description: "The query is not running." } },
      handle({ project, user, params }) {
        running.cancel(getOwner(project, user), params.client_query_id ?? "");
        return new RouteResponse(204);
      },
    }),
  ];
}

const getOwner = (project: Project, user: User) => `${project.id} ${user.id}`;

/** Running queries with a client-assigned ID, which can be cancelled. */
class CancellableQueries {
  private readonly running = new Map<string, Set<AbortController>>();

  /** @throws {InvalidFieldError} it was cancelled */
  async run<Result>(owner: string, id: string | undefined, work: () => Promise<Result>): Promise<Result> {
    if (id === undefined) return await work();
    const key = `${owner} ${id}`;
    const controller = new AbortController();
    const same = this.running.get(key) ?? new Set();
    this.running.set(key, same.add(controller));
    const signals = [clientSignal(), controller.signal].filter((signal) => signal !== undefined);
    try {
      return await withAbortSignal(AbortSignal.any(signals), work);
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      throw new InvalidFieldError("query", "query_cancelled", "The query was cancelled.");
    } finally {
      same.delete(controller);
      if (same.size === 0) this.running.delete(key);
    }
  }

  cancel(owner: string, id: string): void {
    for (const controller of this.running.get(`${owner} ${id}`) ?? []) controller.abort();
  }
}

/** @throws {InvalidFieldError} unsupported kind or part of a query */
async function computed(
  engine: EventQueries,
  { project, query, now, refresh }: { project: Project; query: JsonObject; now: Date; refresh: Refresh },
): Promise<Static<typeof ComputedAnswer>> {
  const { id: projectId, timezone, weekStartDay } = project;
  const isWeb = findWebQuery(query) !== undefined;
  const web = isWeb ? webSettings(project) : undefined;
  try {
    const request = { projectId, query, timezone, weekStartDay, web, now: now.getTime(), refresh };
    const { results, computedAt, isCached } = await engine.ask("trends", request);
    const at = computedAt === null ? null : new Date(computedAt);
    const found = isWeb && isJsonObject(results) ? (results as unknown as WebResults) : { results };
    return { ...found, is_cached: isCached, last_refresh: toApiTimeOrNull(at) };
  } catch (error) {
    if (!(error instanceof QueryRejectedError) || error.code === "query_busy") throw error;
    throw new InvalidFieldError("query", error.code, error.message);
  }
}
