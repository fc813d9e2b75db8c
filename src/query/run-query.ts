/** Runs an operator's statement over the documented views of one project. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { type Static, Type } from "@sinclair/typebox";
import { AppError } from "../errors.ts";
import type { Json } from "../flags/json.ts";
import { exactly } from "../shapes.ts";
import { ResultTooLarge, StatementFailed } from "./failures.ts";
import { parseStatement } from "./parse.ts";
import { jsonOf } from "./values.ts";
import { createViews, type ViewSources } from "./views.ts";

export const rowsDefault = 10_000;
export const rowsMax = 100_000;
/** An answer is held in memory by two processes. */
const bytesMax = 64 * 1024 * 1024;

export interface QueryRequest {
  projectId: number;
  sql: string;
  /** 1 to `rowsMax`. */
  limit: number;
}

export const QueryResult = exactly({
  columns: Type.Array(Type.String()),
  rows: Type.Array(Type.Record(Type.String(), Type.Unsafe<Json>(Type.Unknown()))),
  /** There are more rows than were asked for. */
  truncated: Type.Boolean(),
});
export type QueryResult = Static<typeof QueryResult>;

/**
 * Answers a statement.
 *
 * @param connection one of its own: views stay on it; whoever gave it stops it when it takes too long.
 * @throws {StatementRefused} @throws {StatementFailed} @throws {ResultTooLarge}
 */
export async function runQuery(
  connection: DuckDBConnection,
  sources: ViewSources,
  { projectId, sql, limit }: QueryRequest,
): Promise<QueryResult> {
  const { views, readsPersonId } = await parseStatement(connection, sql);
  await createViews(connection, sources, { projectId, views, readsPersonId });
  try {
    return await read(connection, sql, limit);
  } catch (error) {
    if (error instanceof AppError || isInterrupt(error)) throw error;
    throw new StatementFailed(firstLines(error));
  }
}

async function read(connection: DuckDBConnection, sql: string, limit: number): Promise<QueryResult> {
  const api = await import("@duckdb/node-api");
  const result = await connection.stream(sql);
  const columns = result.deduplicatedColumnNames();
  const types = result.columnTypes();
  const rows: Record<string, Json>[] = [];
  let bytes = 0;
  for (;;) {
    const chunk = await result.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) return { columns, rows, truncated: false };
    for (const values of chunk.getRows()) {
      if (rows.length === limit) return { columns, rows, truncated: true };
      const row: Record<string, Json> = {};
      values.forEach((value, index) => {
        if (typeof value === "string") bytes += value.length;
        row[columns[index]!] = jsonOf(api, value, types[index]);
      });
      bytes += 16 * columns.length;
      if (bytes > bytesMax) throw new ResultTooLarge(bytesMax);
      rows.push(row);
    }
  }
}

function isInterrupt(error: unknown): boolean {
  return String(error).includes("INTERRUPT");
}

/** DuckDB's message without its drawing of where in the statement the fault is. */
function firstLines(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n\n")[0]!.trim();
}
