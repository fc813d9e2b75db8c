/** `POST …/query/`: SQL over the documented views of a project. */

import type { Static } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import type { Project } from "../../accounts/project-directory.ts";
import type { User } from "../../accounts/users.ts";
import { unavailable } from "../../http/answers.ts";
import { Reply, type Route } from "../../http/route.ts";
import {
  ApiFailure,
  anyJson,
  bool,
  dictionary,
  either,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  text,
} from "../../http/shapes.ts";
import { callerSignal, forCaller } from "../../lib/caller.ts";
import { InvalidField, TooManyAttempts } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { toWireOrNull } from "../../lib/wire-time.ts";
import { columnsInWords } from "../export/columns.ts";
import { type Refresh, refreshOf, refreshWords } from "../insights/insight-cache.ts";
import { type EventQueries, QueryRefused, StatementsBarred } from "../port.ts";
import { statementOf } from "../query/hogql.ts";
import { rowsDefault, rowsMax } from "../query/run-query.ts";

const ofHogQl = (what: string) => `Of a \`HogQLQuery\`: ${what}.`;
const QueryAnswer = named(
  "QueryAnswer",
  object({
    columns: list(text({ blank: true }), { description: "Names of the columns, in order." }),
    rows: list(dictionary(), { description: "One object per row, with a member per column." }),
    truncated: bool({ description: "There are more rows than `limit`." }),
    types: optional(
      list(list(text({ blank: true })), { description: ofHogQl("name and type of each column") }),
    ),
    results: optional(list(list(anyJson()), { description: ofHogQl("the values of each row, in order") })),
    hasMore: optional(bool({ description: ofHogQl("the same as `truncated`") })),
  }),
);

const ComputedAnswer = named(
  "ComputedQuery",
  object({
    results: anyJson({
      description:
        "Trends: one object per series and breakdown value. Funnels: one per step (lists of steps with a breakdown), or with " +
        '`"funnelVizType": "trends"` one per breakdown value, with the percentage that got through in `data`, or with `"time_to_convert"` one ' +
        "object: `bins` (from how many seconds on, how many people) and `average_conversion_time`. Retention: one per period. Lifecycle: one per status. Null for `force_cache` where nothing is kept.",
    }),
    is_cached: bool({ description: "It was computed for an earlier request." }),
    last_refresh: nullable(instant(), { description: "When it was computed." }),
  }),
);

const queryIdLengthMax = 128;

const Body = object({
  query: anyJson({
    description:
      'A SELECT statement, or an object `{"kind": "HogQLQuery", "query": "SELECT …"}`, also as the `source` of a `DataVisualizationNode`, or a `TrendsQuery`, `FunnelsQuery`, ' +
      "`RetentionQuery` or `LifecycleQuery`, which is computed without being saved. A funnel's `funnelsFilter` takes " +
      "`funnelOrderType` (`ordered`, `strict`, `unordered`), `funnelVizType` (`steps`, `trends`, `time_to_convert` with `binCount`), `funnelWindowInterval`, " +
      "`funnelWindowIntervalUnit`, `funnelFromStep` and `funnelToStep`; a trend takes `compareFilter: {compare: true}`, and brings " +
      "the period before too, or the one that is earlier by its `compare_to` (`-1y`). Its `trendsFilter` takes a `display`: of " +
      "`BoldNumber`, `ActionsTable`, `ActionsPie`, `ActionsBarValue` and `WorldMap` each result has the figure of the whole range in " +
      "`aggregated_value`; of `ActionsLineGraphCumulative` the figures are of all that came up to the end of a bucket, where users " +
      "and sessions count once. Weeks start where the project's `week_start_day` says, or the `weekStartDay` of the query next to its " +
      "`interval`: 0 (Sunday) or 1 (Monday).",
  }),
  limit: optional(
    int({ description: "Rows at most.", default: rowsDefault, minimum: 1, maximum: rowsMax } as never),
  ),
  refresh: optional(anyJson({ description: `Of computed queries. ${refreshWords}` })),
  client_query_id: optional(
    text({ max: queryIdLengthMax, description: "By which it can be cancelled while it runs." }),
  ),
  name: optional(anyJson({ description: "Accepted for the sake of clients; ignored." })),
});

export function queryRoutes({ engine }: { engine: EventQueries }): Route[] {
  const running = new CancellableQueries();
  return [
    projectRoute("POST", "/query", "query:read", {
      summary: "Run a query",
      description:
        `One SELECT (DuckDB's SQL) over the views \`events\` (${columnsInWords("events")}), \`persons\` ` +
        `(${columnsInWords("persons")}) and \`groups\` (${columnsInWords("groups")}) of the project; ` +
        "`prop('$browser')` is a property as text (`12` for 12.0). Functions " +
        "that compute are there; whatever else is refused with 400 and `code` `statement_refused`. A statement has at most 64 KiB; " +
        "an answer as many bytes as the setting `query-result-limit` says (400 `result_too_large`); a query takes as long as " +
        "`query-timeout` says (503 `query_timeout`) and about as much memory as `duckdb-memory-limit` (400 `query_memory`), and ends " +
        "when whoever asked has gone. 503 `query_busy`: too many wait. 429: statements of this project have brought the event " +
        "store down twice within a minute. With `Accept: text/csv` or `application/vnd.apache.parquet` the rows of a SELECT are a " +
        "file, which is sent while it is computed: all rows unless there is a `limit`, however many bytes; a connection that is " +
        "cut says that it is not whole. With events in ClickHouse only the computed queries are answered.",
      tag: "Events",
      body: Body,
      bodyExample: { query: "SELECT event, count(*) AS times FROM events GROUP BY ALL" },
      answers: {
        200: {
          description: "The rows of a SELECT; or the `results` of a computed query.",
          schema: either(QueryAnswer, ComputedAnswer),
          example: { columns: ["event", "times"], rows: [{ event: "signup", times: 3 }], truncated: false },
        },
        400: { description: "The statement is refused or cannot be run.", schema: ApiFailure },
        ...unavailable,
      },
      async handle({ project, user, body, now, request }) {
        const { query, limit = rowsDefault } = body;
        const statement = statementOf(query);
        if (isJsonObject(query) && statement === undefined && typeof query.query !== "string") {
          const refresh = refreshOf(body.refresh);
          return await running.run(ownerOf(project, user), body.client_query_id, () =>
            computed(engine, { project, query, now, refresh }),
          );
        }
        const sql = statement ?? (isJsonObject(query) ? query.query : query);
        if (typeof sql !== "string") throw new InvalidField("query", "invalid_input", "Not a valid string.");
        const format = formatOf(request);
        try {
          if (format !== undefined) {
            const download = await running.run(ownerOf(project, user), body.client_query_id, () =>
              engine.stream("download", { projectId: project.id, sql, format, limit: body.limit }),
            );
            return new Response(download.body, {
              headers: {
                "Content-Type": format === "csv" ? `${fileTypes.csv}; charset=utf-8` : fileTypes.parquet,
                "Content-Disposition": `attachment; filename="query.${format}"`,
                Vary: "Accept",
              },
            });
          }
          const answer = await running.run(ownerOf(project, user), body.client_query_id, () =>
            engine.stream("query", { projectId: project.id, sql, limit, hasLists: statement !== undefined }),
          );
          return new Response(answer.body, { headers: { "Content-Type": "application/json" } });
        } catch (error) {
          if (error instanceof StatementsBarred) throw new TooManyAttempts(error.waitSeconds, error.message);
          if (!(error instanceof QueryRefused) || error.code === "query_busy") throw error;
          throw new InvalidField("query", error.code, error.message);
        }
      },
    }),
    projectRoute("DELETE", "/query/:client_query_id", "query:read", {
      summary: "Cancel a query",
      description:
        "One that the same user runs in this project under this `client_query_id`; it answers 400 `query_cancelled` then. One " +
        "that has ended, or never was, is no failure.",
      tag: "Events",
      answers: { 204: { description: "It does not run any more." } },
      handle({ project, user, params }) {
        running.cancel(ownerOf(project, user), params.client_query_id ?? "");
        return new Reply(204);
      },
    }),
  ];
}

const fileTypes = { csv: "text/csv", parquet: "application/vnd.apache.parquet" } as const;

/** The kind of file that is asked for first of all; undefined for JSON. */
function formatOf(request: Request): keyof typeof fileTypes | undefined {
  for (const range of (request.headers.get("accept") ?? "").split(",")) {
    const type = range.split(";", 1)[0]!.trim().toLowerCase();
    if (type === fileTypes.csv) return "csv";
    if (type === fileTypes.parquet) return "parquet";
    if (["*/*", "application/*", "application/json"].includes(type)) return undefined;
  }
  return undefined;
}

const ownerOf = (project: Project, user: User) => `${project.id} ${user.id}`;

/** Queries that can be cancelled: those that run and were given a name. */
class CancellableQueries {
  private readonly running = new Map<string, Set<AbortController>>();

  /** @throws {InvalidField} it was cancelled. */
  async run<Result>(owner: string, id: string | undefined, work: () => Promise<Result>): Promise<Result> {
    if (id === undefined) return await work();
    const key = `${owner} ${id}`;
    const controller = new AbortController();
    const same = this.running.get(key) ?? new Set();
    this.running.set(key, same.add(controller));
    const signals = [callerSignal(), controller.signal].filter((signal) => signal !== undefined);
    try {
      return await forCaller(AbortSignal.any(signals), work);
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      throw new InvalidField("query", "query_cancelled", "The query was cancelled.");
    } finally {
      same.delete(controller);
      if (same.size === 0) this.running.delete(key);
    }
  }

  cancel(owner: string, id: string): void {
    for (const controller of this.running.get(`${owner} ${id}`) ?? []) controller.abort();
  }
}

/** @throws {InvalidField} the query is of a kind, or has parts, that are not known. */
async function computed(
  engine: EventQueries,
  { project, query, now, refresh }: { project: Project; query: JsonObject; now: Date; refresh: Refresh },
): Promise<Static<typeof ComputedAnswer>> {
  const { id: projectId, timezone, weekStartDay } = project;
  try {
    const request = { projectId, query, timezone, weekStartDay, now: now.getTime(), refresh };
    const { results, computedAt, isCached } = await engine.ask("trends", request);
    const at = computedAt === null ? null : new Date(computedAt);
    return { results, is_cached: isCached, last_refresh: toWireOrNull(at) };
  } catch (error) {
    if (!(error instanceof QueryRefused) || error.code === "query_busy") throw error;
    throw new InvalidField("query", error.code, error.message);
  }
}
