/** Queries of a project's events: through the engine of a data directory, or over the API of a server. */

import type { DownloadRequest } from "../../src/events/query/download.ts";
import type { QueryResult } from "../../src/events/query/run-query.ts";
import { webSettings } from "../../src/events/web/web-query.ts";
import { fileTypes } from "../../src/http/result-files.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import type { ServerConnection } from "../connection.ts";
import { openEngineSession, waitForIngestion } from "../engine-session.ts";
import { withProject } from "../stores.ts";
import { type CallOptions, getServer } from "./server.ts";

type FileForm = Pick<DownloadRequest, "format" | "limit">;

/** Runs queries of one project. */
export interface Queries {
  /** Rows of a SELECT. */
  select(sql: string, limit: number): Promise<QueryResult>;
  /** All rows of a SELECT as a file, in parts. */
  download(sql: string, form: FileForm): Promise<ReadableStream<Uint8Array>>;
  /** A query of web analytics. */
  web<Row>(query: JsonObject): Promise<WebAnswer<Row>>;
}

export interface WebAnswer<Row> {
  results: Row[];
  dateFrom?: string;
  dateTo?: string;
}

/** @param mayStartAgain whether the work may run twice, because a server of another command stopped meanwhile. */
export async function withQueries<Result>(
  options: CallOptions,
  work: (queries: Queries) => Promise<Result>,
  { mayStartAgain = true } = {},
): Promise<Result> {
  const server = getServer(options);
  if (server !== undefined) {
    const { parsed, postQuery } = await import("./remote.ts");
    const json = async (body: object) =>
      parsed(server, await (await postQuery(server, options, body)).text());
    return await work({
      select: async (query, limit) => (await json({ query, limit })) as QueryResult,
      download: async (query, { format, limit }) =>
        (await postQuery(server, options, { query, limit }, fileTypes[format])).body!,
      web: async <Row>(query: JsonObject) => (await json({ query })) as WebAnswer<Row>,
    });
  }
  const project = withProject(options, ({ project: found }) => found);
  const { id: projectId, timezone, weekStartDay } = project;
  const ofProject = { projectId, timezone, weekStartDay, web: webSettings(project) };
  const run = async (engine: ServerConnection) => {
    // Entries that a crash left in the journal; a running server loads them within a second.
    if (engine.isOwn) await waitForIngestion(engine);
    return await work({
      select: (sql, limit) => engine.ask("query", { projectId, sql, limit }),
      download: (sql, form) => engine.download({ projectId, sql, ...form }),
      web: async <Row>(query: JsonObject) =>
        (await engine.ask("web", { ...ofProject, now: Date.now(), query })) as unknown as WebAnswer<Row>,
    });
  };
  return await openEngineSession(options, run, { mayStartAgain });
}
