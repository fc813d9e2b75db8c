/** Reads contents as a stream of records with their line numbers. */

import type { Content, ContentOptions } from "./archive-contents.ts";
import { type CsvOptions, readCsv } from "./csv.ts";
import { detectFileType, type FileType } from "./file-type.ts";
import { CorruptInputError } from "./input.ts";
import { readDocument } from "./json-document.ts";
import { isBeginningOfJson } from "./json-text.ts";
import { readParquet } from "./parquet.ts";
import { parsedLine, type ReadRecord } from "./record.ts";
import type { RecordCopier } from "./record-copier.ts";
import { lineBlocks, textBlocks, toDisplayString } from "./text-blocks.ts";

export interface RecordSource {
  /** For messages: `JSON lines`. */
  shape: string;
  /** @throws {UnreadableFileError} @throws {CorruptInputError} after yielding the records before the corruption. */
  records: AsyncGenerator<readonly ReadRecord[]>;
  /** Sets the copier for typical records, from the next line on. */
  copyWith: (copier: RecordCopier) => void;
}

const newline = 0x0a;
const shapeNames = { lines: "JSON lines", csv: "CSV", parquet: "Parquet", document: "JSON" } as const;

/**
 * The records of a content from its start, in the detected or specified file type.
 *
 * @throws {UnreadableFileError} it contains nothing readable.
 */
export function recordSource(
  content: Content,
  forced: "csv" | "parquet" | undefined,
  options: ContentOptions & CsvOptions,
): RecordSource {
  const { name, head, bytes } = content;
  const shape: FileType = forced === undefined ? detectFileType(name, head) : { kind: forced };
  let copier: RecordCopier | undefined;
  const records = () => {
    switch (shape.kind) {
      case "parquet":
        return singly(readParquet(content, options));
      case "csv":
        return singly(readCsv(name, textBlocks(bytes), options));
      case "document":
        return singly(readDocument(name, bytes, shape.member, shape.columns));
      default:
        return wholeLines(name, lineBlocks(bytes), () => copier);
    }
  };
  const copyWith = (sent: RecordCopier) => {
    copier = sent;
  };
  return { shape: shapeNames[shape.kind], records: records(), copyWith };
}

async function* singly(records: AsyncIterable<ReadRecord>): AsyncGenerator<readonly ReadRecord[]> {
  for await (const record of records) yield [record];
}

/** Problems of a last line that may be cut off, also inside of a character. */
const unfinished = new Set<string | undefined>(["not_json", "not_utf8"]);

/**
 * The records of lines. A last line that ends in the middle of its JSON is no record: the rest of the file is missing.
 *
 * @throws {CorruptInputError} after the other records.
 */
async function* wholeLines(
  name: string,
  blocks: AsyncIterable<Buffer>,
  copierNow: () => RecordCopier | undefined,
): AsyncGenerator<readonly ReadRecord[]> {
  let isOpen = false;
  async function* watched(): AsyncGenerator<Buffer> {
    for await (const block of blocks) {
      // Only the last block may end without a line break.
      isOpen = block.at(-1) !== newline;
      yield block;
    }
  }
  let last: readonly ReadRecord[] | undefined;
  for await (const records of readLines(watched(), copierNow)) {
    if (last !== undefined) yield last;
    last = undefined;
    if (isOpen && unfinished.has(records.at(-1)?.problem)) last = records;
    else yield records;
  }
  const cut = last?.at(-1);
  if (last === undefined || cut === undefined) return;
  if (!isBeginningOfJson(cut.text ?? "")) {
    yield last;
    return;
  }
  if (last.length > 1) yield last.slice(0, -1);
  throw new CorruptInputError(`${name} is cut off: line ${cut.line} has no end.`);
}

/** One by one until the copier is set. */
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
      const text = toDisplayString(block.subarray(start, end));
      if (text.trim() !== "") yield [parsedLine(text, line)];
      line += 1;
      start = end + 1;
      if (copier !== undefined) continue;
      // The first records have determined the format.
      copier = copierNow();
      isCopied = copier?.canRead(block) ?? false;
    }
  }
}
