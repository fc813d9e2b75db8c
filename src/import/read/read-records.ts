/** Reads contents as a stream of records with their line numbers. */

import type { Content, ContentOptions } from "./contents.ts";
import { readCsv } from "./csv.ts";
import { readDocument } from "./json-document.ts";
import { readParquet } from "./parquet.ts";
import { parsedLine, type ReadRecord } from "./record.ts";
import { type Shape, shapeOf } from "./shape.ts";
import { textBlocks } from "./text-blocks.ts";

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
export function recordSource(
  content: Content,
  forced: "csv" | "parquet" | undefined,
  options: ContentOptions,
): RecordSource {
  const { name, head, bytes } = content;
  const shape: Shape = forced === undefined ? shapeOf(name, head) : { kind: forced };
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
