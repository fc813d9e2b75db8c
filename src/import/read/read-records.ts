/** Reads contents as a stream of records with their line numbers. */

import type { Content, ContentOptions } from "./contents.ts";
import { type CsvOptions, readCsv } from "./csv.ts";
import { readDocument } from "./json-document.ts";
import { readParquet } from "./parquet.ts";
import { parsedLine, type ReadRecord } from "./record.ts";
import type { RecordCopier } from "./record-copier.ts";
import { type Shape, shapeOf } from "./shape.ts";
import { lineBlocks, textBlocks, textOf } from "./text-blocks.ts";

export interface RecordSource {
  /** For a sentence: `JSON lines`. */
  shape: string;
  /** @throws {FileUnreadable} @throws {InputDamaged} after the records before the damage were given. */
  records: AsyncGenerator<readonly ReadRecord[]>;
  /** Has records of lines copied, where they are usual, from the next one on. */
  copyWith: (copier: RecordCopier) => void;
}

const newline = 0x0a;
const shapeNames = { lines: "JSON lines", csv: "CSV", parquet: "Parquet", document: "JSON" } as const;

/**
 * The records of a content from its beginning, in the shape that its first bytes tell or that was said.
 *
 * @throws {FileUnreadable} it holds nothing that can be read.
 */
export function recordSource(
  content: Content,
  forced: "csv" | "parquet" | undefined,
  options: ContentOptions & CsvOptions,
): RecordSource {
  const { name, head, bytes } = content;
  const shape: Shape = forced === undefined ? shapeOf(name, head) : { kind: forced };
  let copier: RecordCopier | undefined;
  const records = () => {
    switch (shape.kind) {
      case "parquet":
        return singly(readParquet(content, options));
      case "csv":
        return singly(readCsv(textBlocks(bytes), options));
      case "document":
        return singly(readDocument(name, bytes, shape.member, shape.columns));
      default:
        return readLines(lineBlocks(bytes), () => copier);
    }
  };
  const copyWith = (given: RecordCopier) => {
    copier = given;
  };
  return { shape: shapeNames[shape.kind], records: records(), copyWith };
}

async function* singly(records: AsyncIterable<ReadRecord>): AsyncGenerator<readonly ReadRecord[]> {
  for await (const record of records) yield [record];
}

/** One by one as long as there is no copier. */
async function* readLines(
  blocks: AsyncIterable<Buffer>,
  copierNow: () => RecordCopier | undefined,
): AsyncGenerator<readonly ReadRecord[]> {
  let line = 1;
  for await (const block of blocks) {
    let copier = copierNow();
    let isCopied = copier?.canRead(block) ?? false;
    for (let start = 0; start < block.length; ) {
      if (isCopied) {
        line = yield* copier!.read(block.subarray(start), line);
        break;
      }
      const found = block.indexOf(newline, start);
      const end = found === -1 ? block.length : found;
      const text = textOf(block.subarray(start, end));
      if (text.trim() !== "") yield [parsedLine(text, line)];
      line += 1;
      start = end + 1;
      if (copier !== undefined) continue;
      // The first records have told what they are.
      copier = copierNow();
      isCopied = copier?.canRead(block) ?? false;
    }
  }
}
