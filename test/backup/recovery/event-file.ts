/** Opens the event store of a stopped server, as a person with DuckDB at hand could. */

import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";

export async function withEventStore(
  dataDir: string,
  work: (run: (sql: string) => Promise<unknown[][]>) => Promise<unknown>,
): Promise<void> {
  const instance = await DuckDBInstance.create(join(dataDir, "events.duckdb"), { threads: "1" });
  const connection = await instance.connect();
  try {
    await work(async (sql) => (await connection.runAndReadAll(sql)).getRows() as unknown[][]);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
