/** Reads the whole file of the event store; DuckDB verifies the checksum of each block it reads. */

import type { DuckDBConnection } from "@duckdb/node-api";

/** Rows per statement: other work runs in between. */
const rowsAtOnce = 1_000_000;

/** Reads every value of every table. @throws DuckDB's error about the first corruption */
export async function readAllBlocks(connection: DuckDBConnection): Promise<void> {
  const tables = await connection.runAndReadAll(
    "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT internal AND NOT temporary",
  );
  for (const [name] of tables.getRows()) {
    // Deleted rows keep their row IDs until the space is reused, so use the highest ID, not the count.
    const last = await connection.runAndReadAll(`SELECT coalesce(max(rowid), -1) FROM "${name}"`);
    const end = Number(last.getRows()[0]![0]);
    for (let start = 0; start <= end; start += rowsAtOnce) {
      // Without a condition, DuckDB also reads the values behind nulls, as an export does.
      const range = end < rowsAtOnce ? "" : `WHERE rowid >= ${start} AND rowid < ${start + rowsAtOnce}`;
      await connection.run(`SELECT max(hash(COLUMNS(*))) FROM "${name}" ${range}`);
    }
  }
}
