/** Reads everything that the event store's file holds; DuckDB compares the checksum of each block when it reads it. */

import type { DuckDBConnection } from "@duckdb/node-api";

/** Rows that one statement reads: other work goes on in between. */
const rowsAtOnce = 1_000_000;

/**
 * Reads every value of every table.
 *
 * @throws what DuckDB says of the first damage.
 */
export async function readAllRows(connection: DuckDBConnection): Promise<void> {
  const tables = await connection.runAndReadAll(
    "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary",
  );
  for (const [name] of tables.getRows()) {
    // Removed rows keep their numbers until their place is used again, so the last number is what counts.
    const last = await connection.runAndReadAll(`SELECT coalesce(max(rowid), -1) FROM "${name}"`);
    const end = Number(last.getRows()[0]![0]);
    for (let start = 0; start <= end; start += rowsAtOnce) {
      // Without a condition DuckDB also looks at what stands in the place of a null, as an export does.
      const range = end < rowsAtOnce ? "" : `WHERE rowid >= ${start} AND rowid < ${start + rowsAtOnce}`;
      await connection.run(`SELECT max(hash(COLUMNS(*))) FROM "${name}" ${range}`);
    }
  }
}
