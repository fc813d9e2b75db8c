/** Reads contents as a stream of records with their line numbers. */

import { statSync } from "node:fs";
import { streamedRows } from "../../events/duckdb/row-stream.ts";
import { quoted } from "../../events/sql-text.ts";
import type { Content, ContentOptions } from "./archive-contents.ts";
import { type CsvOptions, readCsv } from "./csv.ts";
import { detectFileType, type FileType } from "./file-type.ts";
import { CorruptInputError, UnreadableFileError } from "./input.ts";
import { readDocument } from "./json-document.ts";
import { isBeginningOfJson } from "./json-text.ts";
import { parsedLine, type ReadRecord } from "./record.ts";
import type { RecordCopier } from "./record-copier.ts";
import { spooled } from "./spool-file.ts";
import { lineBlocks, textBlocks, toDisplayString } from "./text-blocks.ts";

/** An unlikely column name: a column with the name of the table would be mistaken for the row. */
const alias = "row_of_imported_file";

/** ClickHouse and Spark may write text as binary; values that are not UTF-8 are read with escapes. */
const noUtf8 = /string encoding|utf-?8/i;

/** @throws {UnreadableFileError} @throws {CorruptInputError} */
async function* readParquet(
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
