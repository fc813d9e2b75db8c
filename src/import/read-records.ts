/** Reads files of events as a stream of records with their line numbers. */

import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { AppError } from "../errors.ts";
import { quoted } from "../events/sql-text.ts";
import { isJsonObject, type JsonObject } from "../flags/json.ts";
import type { ImportFormat } from "./records.ts";

/** One record, or why it is none. */
export interface ReadRecord {
  /** Counted from 1; in tables the number of the row. */
  line: number;
  record?: JsonObject;
  problem?: string;
}

/** A line longer than any event may be; it would take the memory. */
const lineLengthMax = 16 * 1024 * 1024;

/** The file is of another kind than was said. */
export class FileUnreadable extends AppError {
  readonly code = "file_unreadable";
  override readonly hint = "Check the path and --format.";
}

/**
 * Reads a file from its beginning.
 *
 * @param path absolute, or `-` for standard input.
 * @throws {FileUnreadable}
 */
export async function* readRecords(path: string, format: ImportFormat): AsyncGenerator<ReadRecord> {
  try {
    if (format === "csv" || format === "parquet") yield* readTable(path, format);
    else yield* readLines(path);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new FileUnreadable(`${path} can not be read (${(error as Error).message.split("\n")[0]}).`);
  }
}

async function* readLines(path: string): AsyncGenerator<ReadRecord> {
  const decoder = new TextDecoder();
  let rest = "";
  let line = 0;
  for await (const chunk of bytesOf(path)) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (rest.length > lineLengthMax) throw new FileUnreadable(`Line ${line + lines.length + 1} is too long.`);
    for (const text of lines) {
      line += 1;
      if (text.trim() !== "") yield parsed(text, line);
    }
  }
  if (rest.trim() !== "") yield parsed(rest, line + 1);
}

function bytesOf(path: string): AsyncIterable<unknown> {
  if (path === "-") return process.stdin;
  const file = createReadStream(path, { highWaterMark: 1024 * 1024 });
  if (!path.endsWith(".gz")) return file;
  const unpacked = createGunzip();
  file.on("error", (error) => unpacked.destroy(error));
  return file.pipe(unpacked);
}

function parsed(text: string, line: number): ReadRecord {
  try {
    const record: unknown = JSON.parse(text);
    return isJsonObject(record as never)
      ? { line, record: record as JsonObject }
      : { line, problem: "not_an_object" };
  } catch {
    return { line, problem: "not_json" };
  }
}

/** Tables are read by DuckDB, in memory; the caller has said where its library is. */
async function* readTable(path: string, format: "csv" | "parquet"): AsyncGenerator<ReadRecord> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(":memory:", { threads: "1", memory_limit: "1GB" });
  const connection = await instance.connect();
  try {
    const file = quoted(path === "-" ? "/dev/stdin" : path);
    const source =
      format === "csv" ? `read_csv(${file}, all_varchar = true, header = true)` : `read_parquet(${file})`;
    const result = await connection.stream(`SELECT to_json(t)::VARCHAR FROM ${source} AS t`);
    for (let line = 1; ; ) {
      const chunk = await result.fetchChunk();
      if (chunk === null || chunk.rowCount === 0) return;
      for (const [text] of chunk.getRows()) yield parsed(text as string, line++);
    }
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
