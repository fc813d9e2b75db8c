/** `POST …/query/`: SQL over the documented views of a project. */

import { projectRoute } from "../../accounts/api/routes.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { unavailable } from "../../http/answers.ts";
import { throttled } from "../../http/failure.ts";
import type { Route } from "../../http/route.ts";
import {
  ApiFailure,
  anyJson,
  bool,
  dictionary,
  either,
  int,
  list,
  named,
  object,
  optional,
  text,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { type EventQueries, QueryRefused, StatementsBarred } from "../port.ts";
import { rowsDefault, rowsMax } from "./run-query.ts";

const QueryAnswer = named(
  "QueryAnswer",
  object({
    columns: list(text({ blank: true }), { description: "Names of the columns, in order." }),
    rows: list(dictionary(), { description: "One object per row, with a member per column." }),
    truncated: bool({ description: "There are more rows than `limit`." }),
  }),
);

const ComputedAnswer = named(
  "ComputedQuery",
  object({
    results: list(anyJson(), {
      description:
        "Trends: one object per series and breakdown value. Funnels: one per step (lists of steps with a breakdown), or with " +
        '`"funnelVizType": "trends"` one per breakdown value, with the percentage that got through in `data`. Retention: one per ' +
        "period. Lifecycle: one per status.",
    }),
  }),
);

const Body = object({
  query: anyJson({
    description:
      'A SELECT statement, or an object `{"kind": "HogQLQuery", "query": "SELECT …"}`, or a `TrendsQuery`, `FunnelsQuery`, ' +
      "`RetentionQuery` or `LifecycleQuery`, which is computed without being saved. A funnel's `funnelsFilter` takes " +
      "`funnelOrderType` (`ordered`, `strict`, `unordered`), `funnelVizType` (`steps`, `trends`), `funnelWindowInterval`, " +
      "`funnelWindowIntervalUnit`, `funnelFromStep` and `funnelToStep`.",
  }),
  limit: optional(
    int({ description: "Rows at most.", default: rowsDefault, minimum: 1, maximum: rowsMax } as never),
  ),
  name: optional(anyJson({ description: "Accepted for the sake of clients; ignored." })),
});

export function queryRoutes({ engine }: { engine: EventQueries }): Route[] {
  return [
    projectRoute("POST", "/query", "query:read", {
      summary: "Run a SELECT",
      description:
        "One SELECT (DuckDB's SQL) over the views `events` (uuid, event, distinct_id, timestamp, received_at, properties, " +
        "elements_chain, historical, seq, person_id), `persons` (id, created_at, properties, distinct_ids) and `groups` " +
        "(type, type_index, key, created_at, properties) of the project; `prop('$browser')` is a property as text. Functions " +
        "that compute are there; whatever else is refused with 400 and `code` `statement_refused`. A statement has at most 64 KiB; " +
        "an answer as many bytes as the setting `query-result-limit` says (400 `result_too_large`); a query takes as long as " +
        "`query-timeout` says (503 `query_timeout`) and about as much memory as `duckdb-memory-limit` (400 `query_memory`), and ends " +
        "when whoever asked has gone. 503 `query_busy`: too many wait. 429: statements of this project have brought the event " +
        "store down twice within a minute.",
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
      async handle({ project, body, now }) {
        const { query, limit = rowsDefault } = body;
        if (isJsonObject(query) && query.kind !== "HogQLQuery" && typeof query.query !== "string") {
          return await computed(engine, project, query, now);
        }
        const sql = isJsonObject(query) ? query.query : query;
        if (typeof sql !== "string") throw new InvalidField("query", "invalid_input", "Not a valid string.");
        try {
          const { body } = await engine.stream("query", { projectId: project.id, sql, limit });
          return new Response(body, { headers: { "Content-Type": "application/json" } });
        } catch (error) {
          if (error instanceof StatementsBarred) throw throttled(error.waitSeconds, error.message);
          if (!(error instanceof QueryRefused) || error.code === "query_busy") throw error;
          throw new InvalidField("query", error.code, error.message);
        }
      },
    }),
  ];
}

/** @throws {InvalidField} the query is of a kind, or has parts, that are not known. */
async function computed(
  engine: EventQueries,
  { id: projectId, timezone }: Project,
  query: JsonObject,
  now: Date,
): Promise<{ results: unknown[] }> {
  try {
    return { results: await engine.ask("trends", { projectId, query, timezone, now: now.getTime() }) };
  } catch (error) {
    if (!(error instanceof QueryRefused) || error.code === "query_busy") throw error;
    throw new InvalidField("query", error.code, error.message);
  }
}
