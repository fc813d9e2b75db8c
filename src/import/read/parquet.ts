/** Reads Parquet files with an in-memory DuckDB; the caller has set up its library. */

import { statSync } from "node:fs";
import { streamedRows } from "../../events/query/row-stream.ts";
import { quoted } from "../../events/sql-text.ts";
import type { Content, ContentOptions } from "./archive-contents.ts";
import { CorruptInputError, UnreadableFileError } from "./input.ts";
import { parsedLine, type ReadRecord } from "./record.ts";
import { spooled } from "./spool-file.ts";

/** An unlikely column name: a column with the name of the table would be mistaken for the row. */
const alias = "row_of_imported_file";

/** ClickHouse and Spark may write text as binary; values that are not UTF-8 are read with escapes. */
const noUtf8 = /string encoding|utf-?8/i;

/** @throws {UnreadableFileError} @throws {CorruptInputError} */
export async function* readParquet(
  content: Content,
  { workFolder, onBytes }: ContentOptions,
): AsyncGenerator<ReadRecord> {
  const { name, path, bytes, close } = content;
  if (path !== undefined) {
    await close();
    yield* readFile(path, name, onBytes);
  }
  // Parquet has its directory at the end, so reading needs random access.
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
    const source = quoted(path);
    const counted = await connection.runAndReadAll(`SELECT count(*) FROM read_parquet(${source})`);
    const bytesPerRow = statSync(path).size / Math.max(1, Number(counted.getRows()[0]![0]));
    const rowsOf = async function* (isText: boolean) {
      const file = `read_parquet(${source}, binary_as_string = ${isText})`;
      const rows = `SELECT to_json(${alias})::VARCHAR FROM ${file} AS ${alias}`;
      const { chunks } = await streamedRows(connection, rows);
      let at = 0;
      for await (const chunk of chunks) {
        if (at >= line) onBytes(bytesPerRow * chunk.rowCount);
        for (const [text] of chunk.getRows()) {
          at += 1;
          if (at <= line) continue;
          line = at;
          yield parsedLine(text as string, line);
        }
      }
    };
    try {
      yield* rowsOf(true);
    } catch (error) {
      if (!noUtf8.test((error as Error).message)) throw error;
      yield* rowsOf(false);
    }
  } catch (error) {
    const reason = `${name} cannot be read${line === 0 ? "" : ` behind row ${line}`}`;
    const message = `${reason} (${(error as Error).message.split("\n")[0]}).`;
    throw line === 0 ? new UnreadableFileError(message) : new CorruptInputError(message);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
