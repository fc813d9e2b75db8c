/** Writes the rows of an operator's statement as CSV or Parquet while they are computed: as many as there are. */

import type { DuckDBConnection, DuckDBType, DuckDBValue } from "@duckdb/node-api";
import { AppError } from "../../lib/errors.ts";
import type { ExportColumn, ExportValue } from "../export/columns.ts";
import type { Sink } from "../export/writer.ts";
import { statementFailure } from "./failures.ts";
import { parseStatement } from "./parse.ts";
import type { QueryRequest } from "./run-query.ts";
import { streamedRows } from "./streamed-rows.ts";
import { jsonText } from "./values.ts";
import { createViews, type ViewSources } from "./views.ts";

export interface DownloadRequest extends Omit<QueryRequest, "limit"> {
  format: "csv" | "parquet";
  /** Left out: all rows. */
  limit?: number;
}

/**
 * @param connection one of its own: views stay on it; whoever gave it stops it when it takes too long.
 * @throws {StatementRefused} @throws {StatementFailed} and what the sink throws; before the first bytes or between others.
 */
export async function downloadQuery(
  connection: DuckDBConnection,
  sources: ViewSources,
  { projectId, sql, format, limit = Number.POSITIVE_INFINITY }: DownloadRequest,
  sink: Sink,
): Promise<void> {
  const parsed = await parseStatement(connection, sql);
  await createViews(connection, sources, { projectId, ...parsed });
  try {
    const api = await import("@duckdb/node-api");
    const {
      columns: names,
      types,
      chunks,
    } = await streamedRows(connection, parsed.sql, {
      // Nobody would hear it.
      isToldWhy: false,
    });
    const columns = names.map((name, index): ExportColumn => ({ name, kind: kindOf(api, types[index]!) }));
    // Loaded late: the formats' libraries would be in memory for nothing.
    const { rowWriter } = await import("../export/writer.ts");
    const writer = rowWriter(format, columns, sink);
    let left = limit;
    for await (const chunk of chunks) {
      const vectors = columns.map((_, index) => chunk.getColumnVector(index));
      const rows = Array.from({ length: Math.min(chunk.rowCount, left) }, (_, row) =>
        columns.map(({ kind }, index) => cellOf(api, vectors[index]!.getItem(row), types[index]!, kind)),
      );
      left -= rows.length;
      await writer.write(rows);
      if (left <= 0) break;
    }
    await writer.finish();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw statementFailure(error);
  }
}

type Api = typeof import("@duckdb/node-api");

/** As DuckDB's own Parquet writer chooses; what has no kind of its own is text. */
function kindOf(api: Api, type: DuckDBType): ExportColumn["kind"] {
  const { DuckDBTypeId: id } = api;
  switch (type.typeId) {
    case id.BOOLEAN:
      return "boolean";
    case id.TINYINT:
    case id.SMALLINT:
    case id.INTEGER:
    case id.BIGINT:
    case id.UTINYINT:
    case id.USMALLINT:
    case id.UINTEGER:
      return "integer";
    case id.FLOAT:
    case id.DOUBLE:
    case id.DECIMAL:
    case id.HUGEINT:
    case id.UHUGEINT:
    case id.UBIGINT:
      return "number";
    case id.TIMESTAMP:
    case id.TIMESTAMP_TZ:
      return "instant";
    case id.UUID:
      return "uuid";
    default:
      return "text";
  }
}

/** Nested values are JSON. */
function cellOf(api: Api, value: DuckDBValue, type: DuckDBType, kind: ExportColumn["kind"]): ExportValue {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (kind === "number") return Number(value instanceof api.DuckDBDecimalValue ? value.toDouble() : value);
  if (typeof value === "bigint") return String(value);
  const text = jsonText(api, value, type);
  if (text === "null") return null;
  return text.startsWith('"') || kind === "integer" || kind === "boolean" ? JSON.parse(text) : text;
}
