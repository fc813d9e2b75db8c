/** Streams all rows of an operator's statement as CSV or Parquet while they are computed. */

import type { DuckDBConnection, DuckDBType, DuckDBValue } from "@duckdb/node-api";
import { AppError } from "../../lib/errors.ts";
import { streamedRows } from "../duckdb/row-stream.ts";
import { statementFailure } from "../duckdb/statement-errors.ts";
import type { ExportColumn, ExportValue } from "../export/columns.ts";
import type { Sink } from "../export/writer.ts";
import { parseStatement } from "./parse.ts";
import type { QueryRequest } from "./run-query.ts";
import { toJsonString, utcTimes, type ValueFormat, zonedTimes } from "./values.ts";
import { createViews, findColumns, type ViewSources, withTypes } from "./views.ts";

export interface DownloadRequest extends Omit<QueryRequest, "limit"> {
  format: "csv" | "parquet";
  /** Default: all rows. */
  limit?: number;
}

/**
 * @param connection used exclusively: views remain on it, and its owner interrupts it at the time limit
 * @throws {StatementRejectedError} @throws {StatementFailedError} @throws errors of the sink; before or between bytes
 */
export async function downloadQuery(
  connection: DuckDBConnection,
  sources: ViewSources,
  { projectId, sql, hogql, format, limit = Number.POSITIVE_INFINITY }: DownloadRequest,
  sink: Sink,
): Promise<void> {
  const columns = findColumns(sources, projectId);
  const parsed = await parseStatement(connection, sql, withTypes(hogql, sources, projectId), columns);
  await createViews(connection, sources, { projectId, ...parsed });
  try {
    const api = await import("@duckdb/node-api");
    const times = hogql === undefined ? utcTimes : zonedTimes(hogql.timezone, { hasOffset: false });
    const {
      columns: names,
      types,
      chunks,
    } = await streamedRows(connection, parsed.sql, {
      // The cause could not be sent to the client.
      findsReason: false,
    });
    const columns = names.map((name, index): ExportColumn => ({ name, kind: getKind(api, types[index]!) }));
    // Imported on demand: the formats' libraries stay out of memory.
    const { rowWriter } = await import("../export/writer.ts");
    const writer = rowWriter(format, columns, sink);
    let left = limit;
    for await (const chunk of chunks) {
      const vectors = columns.map((_, index) => chunk.getColumnVector(index));
      const rows = Array.from({ length: Math.min(chunk.rowCount, left) }, (_, row) =>
        columns.map(({ kind }, index) =>
          getCell({ api, times }, vectors[index]!.getItem(row), types[index]!, kind),
        ),
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

/** Like DuckDB's Parquet writer; types without an equivalent become strings. */
function getKind(api: Api, type: DuckDBType): ExportColumn["kind"] {
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
function getCell(
  format: ValueFormat,
  value: DuckDBValue,
  type: DuckDBType,
  kind: ExportColumn["kind"],
): ExportValue {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (kind === "number")
    return Number(value instanceof format.api.DuckDBDecimalValue ? value.toDouble() : value);
  if (typeof value === "bigint") return String(value);
  const text = toJsonString(format, value, type);
  if (text === "null") return null;
  return text.startsWith('"') || kind === "integer" || kind === "boolean" ? JSON.parse(text) : text;
}
