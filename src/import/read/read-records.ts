/** Reads files of events as a stream of records with their line numbers. */

import type { JsonObject } from "../../lib/json.ts";
import { isObject } from "../map/loose-json.ts";
import type { ImportFormat } from "../map/records.ts";
import { readCsv } from "./csv.ts";
import { readInput } from "./input.ts";
import { NestedTooDeep, parseJsonText } from "./json-text.ts";
import { readParquet } from "./parquet.ts";
import { problemOf, textBlocks, withoutMarks } from "./text-blocks.ts";

/** One record, or why it is none. */
export interface ReadRecord {
  /** Counted from 1; in Parquet files the number of the row. */
  line: number;
  record?: JsonObject;
  problem?: string;
  /** What stands there instead of a record. */
  text?: string;
}

export interface ReadOptions {
  /** Told of bytes of the file that have been read. */
  onBytes: (bytes: number) => void;
  /** For what standard input brings of a format that is not read from its beginning to its end. */
  workFolder: string;
}

/**
 * Reads a file from its beginning.
 *
 * @param path absolute, or `-` for standard input.
 * @throws {FileUnreadable} @throws {InputDamaged} after the records before the damage were given.
 */
export async function* readRecords(
  path: string,
  format: ImportFormat,
  options: ReadOptions,
): AsyncGenerator<ReadRecord> {
  const shape = format === "posthog" ? shapeOf(path) : format;
  if (shape === "parquet") yield* readParquet(path, options);
  else if (shape === "csv") yield* readCsv(textBlocks(readInput(path, options.onBytes)));
  else yield* readLines(textBlocks(readInput(path, options.onBytes)));
}

/** PostHog exports all of these. */
function shapeOf(path: string): "parquet" | "csv" | "ndjson" {
  if (path.endsWith(".parquet")) return "parquet";
  return /\.csv(\.gz|\.zst)?$/.test(path) ? "csv" : "ndjson";
}

async function* readLines(blocks: AsyncIterable<string>): AsyncGenerator<ReadRecord> {
  let line = 0;
  for await (const block of blocks) {
    const lines = block.split("\n");
    if (block.endsWith("\n")) lines.pop();
    for (const text of lines) {
      line += 1;
      if (text.trim() !== "") yield parsedLine(text, line);
    }
  }
}

/** A line of JSON as a record. */
export function parsedLine(text: string, line: number): ReadRecord {
  const marked = problemOf(text);
  if (marked !== undefined) return { line, problem: marked, text: withoutMarks(text) };
  try {
    const record = parseJsonText(text);
    return isObject(record) ? { line, record } : { line, problem: "not_an_object", text };
  } catch (error) {
    return { line, problem: error instanceof NestedTooDeep ? "nested_too_deep" : "not_json", text };
  }
}
