/** Reads contents as a stream of records with their line numbers. */

import type { JsonObject } from "../../lib/json.ts";
import type { ImportFormat } from "../map/formats.ts";
import { isObject } from "../map/loose-json.ts";
import type { Content, ContentOptions } from "./contents.ts";
import { readCsv } from "./csv.ts";
import { readDocument } from "./json-document.ts";
import { NestedTooDeep, parseJsonText } from "./json-text.ts";
import { readParquet } from "./parquet.ts";
import { type Shape, shapeOf } from "./shape.ts";
import { problemOf, textBlocks, withoutMarks } from "./text-blocks.ts";

/** One record, or why it is none. */
export interface ReadRecord {
  /** Counted from 1; in Parquet and in JSON that is no file of lines the number of the record. */
  line: number;
  record?: JsonObject;
  problem?: string;
  /** What stands there instead of a record. */
  text?: string;
}

export interface RecordSource {
  /** For a sentence: `JSON lines`. */
  shape: string;
  /** @throws {FileUnreadable} @throws {InputDamaged} after the records before the damage were given. */
  records: AsyncGenerator<ReadRecord>;
}

const shapeNames = { lines: "JSON lines", csv: "CSV", parquet: "Parquet", document: "JSON" } as const;

/**
 * The records of a content from its beginning, in the shape that its first bytes tell or that was said.
 *
 * @throws {FileUnreadable} it holds nothing that can be read.
 */
export function recordSource(content: Content, format: ImportFormat, options: ContentOptions): RecordSource {
  const { name, head, bytes } = content;
  const isForced = format === "csv" || format === "parquet";
  const shape: Shape = isForced ? { kind: format } : shapeOf(name, head);
  const records = () => {
    switch (shape.kind) {
      case "parquet":
        return readParquet(content, options);
      case "csv":
        return readCsv(textBlocks(bytes));
      case "document":
        return readDocument(name, bytes, shape.member);
      default:
        return readLines(textBlocks(bytes));
    }
  };
  return { shape: shapeNames[shape.kind], records: records() };
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
