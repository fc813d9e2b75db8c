/** Writes Parquet files for tests. */

import { rmSync, writeFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

/** Columns have the types of the values: times and UUIDs in strings become typed columns. */
export async function writeParquet(path: string, records: readonly object[]): Promise<void> {
  const lines = `${path}.ndjson`;
  writeFileSync(lines, records.map((record) => JSON.stringify(record)).join("\n"));
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  const read = `read_json('${lines}', sample_size = -1, convert_strings_to_integers = false, map_inference_threshold = -1)`;
  await connection.run(`COPY (SELECT * FROM ${read}) TO '${path}' (FORMAT parquet)`);
  connection.closeSync();
  instance.closeSync();
  rmSync(lines);
}
