/** Streams the rows of a statement while they are computed. */

import type { DuckDBConnection, DuckDBDataChunk, DuckDBType } from "@duckdb/node-api";
import { StatementFailedError, statementFailure } from "./statement-errors.ts";

export interface StreamedRows {
  columns: readonly string[];
  types: readonly DuckDBType[];
  /** @throws {StatementFailedError} possibly after many rows */
  chunks: AsyncGenerator<DuckDBDataChunk, void>;
}

/**
 * Runs a statement. DuckDB's library reports no error after the first rows: they just end. The error is detected
 * because it ends the transaction. @param connection without a transaction, and used exclusively
 * @param options.findsReason runs the statement again for the cause of a late error
 */
export async function streamedRows(
  connection: DuckDBConnection,
  sql: string,
  { findsReason = true } = {},
): Promise<StreamedRows> {
  await connection.run("BEGIN TRANSACTION READ ONLY");
  const result = await connection.stream(sql).catch(async (error) => {
    await connection.run("ROLLBACK").catch(() => undefined);
    throw error;
  });
  async function* chunks() {
    let count = 0;
    try {
      for (;;) {
        const chunk = await result.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) break;
        count += chunk.rowCount;
        yield chunk;
      }
      await connection.run("SELECT 1");
    } catch {
      const late = new StatementFailedError(`The statement failed after ${count} rows.`);
      throw findsReason ? ((await getReason(connection, sql)) ?? late) : late;
    } finally {
      // After an interrupt there may be no transaction to end.
      await connection.run("ROLLBACK").catch(() => undefined);
    }
  }
  return { columns: result.deduplicatedColumnNames(), types: result.columnTypes(), chunks: chunks() };
}

async function getReason(
  connection: DuckDBConnection,
  sql: string,
): Promise<StatementFailedError | undefined> {
  try {
    await connection.run("ROLLBACK");
    await connection.run(`SELECT count(COLUMNS(*)) FROM (${sql})`);
  } catch (error) {
    return statementFailure(error);
  }
  return undefined;
}
