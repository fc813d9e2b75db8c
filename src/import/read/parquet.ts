/** Reads Parquet files, by DuckDB in memory; the caller has said where its library is. */

import { statSync } from "node:fs";
import { streamedRows } from "../../events/query/streamed-rows.ts";
import { quoted } from "../../events/sql-text.ts";
import { type Content, type ContentOptions, spooled } from "./contents.ts";
import { FileUnreadable, InputDamaged } from "./input.ts";
import { parsedLine, type ReadRecord } from "./record.ts";

/** A name that no column has: a column called as the table would be taken for the row. */
const alias = "row_of_imported_file";

/** @throws {FileUnreadable} @throws {InputDamaged} */
export async function* readParquet(
  content: Content,
  { workFolder, onBytes }: ContentOptions,
): AsyncGenerator<ReadRecord> {
  const { name, path, bytes, close } = content;
  if (path !== undefined) {
    await close();
    yield* readFile(path, name, onBytes);
  }
  // Its directory is at its end.
  else yield* spooled(bytes, workFolder, (copy) => readFile(copy, name, () => {}));
}

async function* readFile(
  path: string,
  name: string,
  onBytes: (bytes: number) => void,
): AsyncGenerator<ReadRecord> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "1GB" });
  const connection = await instance.connect();
  let line = 0;
  try {
    await connection.run("SET TimeZone = 'UTC'");
    const source = `read_parquet(${quoted(path)})`;
    const counted = await connection.runAndReadAll(`SELECT count(*) FROM ${source}`);
    const bytesPerRow = statSync(path).size / Math.max(1, Number(counted.getRows()[0]![0]));
    const rows = `SELECT to_json(${alias})::VARCHAR FROM ${source} AS ${alias}`;
    const { chunks } = await streamedRows(connection, rows);
    for await (const chunk of chunks) {
      onBytes(bytesPerRow * chunk.rowCount);
      for (const [text] of chunk.getRows()) yield parsedLine(text as string, ++line);
    }
  } catch (error) {
    const reason = `${name} cannot be read${line === 0 ? "" : ` behind row ${line}`}`;
    const message = `${reason} (${(error as Error).message.split("\n")[0]}).`;
    throw line === 0 ? new FileUnreadable(message) : new InputDamaged(message);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
