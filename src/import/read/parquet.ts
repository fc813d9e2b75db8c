/** Reads Parquet files, by DuckDB in memory; the caller has said where its library is. */

import { createWriteStream, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { quoted } from "../../events/sql-text.ts";
import { FileUnreadable, InputDamaged } from "./input.ts";
import { parsedLine, type ReadOptions, type ReadRecord } from "./read-records.ts";

/** A name that no column has: a column called as the table would be taken for the row. */
const alias = "row_of_imported_file";

/** @throws {FileUnreadable} @throws {InputDamaged} */
export async function* readParquet(path: string, options: ReadOptions): AsyncGenerator<ReadRecord> {
  if (path !== "-") return yield* readFile(path, options);
  // Its directory is at its end.
  mkdirSync(options.workFolder, { recursive: true, mode: 0o700 });
  const copy = join(options.workFolder, `stdin-${crypto.randomUUID()}.parquet`);
  try {
    await pipeline(process.stdin, createWriteStream(copy, { mode: 0o600 }));
    yield* readFile(copy, options);
  } finally {
    rmSync(copy, { force: true });
  }
}

async function* readFile(path: string, { onBytes }: ReadOptions): AsyncGenerator<ReadRecord> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "1GB" });
  const connection = await instance.connect();
  let line = 0;
  try {
    await connection.run("SET TimeZone = 'UTC'");
    const source = `read_parquet(${quoted(path)})`;
    const counted = await connection.runAndReadAll(`SELECT count(*) FROM ${source}`);
    const bytesPerRow = statSync(path).size / Math.max(1, Number(counted.getRows()[0]![0]));
    const result = await connection.stream(`SELECT to_json(${alias})::VARCHAR FROM ${source} AS ${alias}`);
    for (;;) {
      const chunk = await result.fetchChunk();
      if (chunk === null || chunk.rowCount === 0) return;
      onBytes(bytesPerRow * chunk.rowCount);
      for (const [text] of chunk.getRows()) yield parsedLine(text as string, ++line);
    }
  } catch (error) {
    const reason = `${path} cannot be read${line === 0 ? "" : ` behind row ${line}`}`;
    const message = `${reason} (${(error as Error).message.split("\n")[0]}).`;
    throw line === 0 ? new FileUnreadable(message) : new InputDamaged(message);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
