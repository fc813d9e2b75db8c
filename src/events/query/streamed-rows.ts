/** Rows of a statement while they are computed. */

import type { DuckDBConnection, DuckDBDataChunk, DuckDBType } from "@duckdb/node-api";
import { StatementFailed, statementFailure } from "./failures.ts";

export interface StreamedRows {
  columns: readonly string[];
  types: readonly DuckDBType[];
  /** @throws {StatementFailed} behind some rows, perhaps many. */
  chunks: AsyncGenerator<DuckDBDataChunk, void>;
}

/**
 * Runs a statement.
 *
 * DuckDB's library does not tell of a failure behind the first rows: they just end. But it ends the transaction, which is
 * seen.
 *
 * @param connection one that is in no transaction, and that nothing else is done with meanwhile.
 * @param options.isToldWhy the statement is run once more to learn the reason of a late failure.
 */
export async function streamedRows(
  connection: DuckDBConnection,
  sql: string,
  { isToldWhy = true } = {},
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
      const late = new StatementFailed(`The statement failed behind ${count} rows.`);
      throw isToldWhy ? ((await reasonOf(connection, sql)) ?? late) : late;
    } finally {
      // Of an interrupted one there may be nothing left to end.
      await connection.run("ROLLBACK").catch(() => undefined);
    }
  }
  return { columns: result.deduplicatedColumnNames(), types: result.columnTypes(), chunks: chunks() };
}

async function reasonOf(connection: DuckDBConnection, sql: string): Promise<StatementFailed | undefined> {
  try {
    await connection.run("ROLLBACK");
    await connection.run(`SELECT count(COLUMNS(*)) FROM (${sql})`);
  } catch (error) {
    return statementFailure(error);
  }
  return undefined;
}
