/**
 * Splits JSON that is not line-delimited into its records, as bytes and without parsing: a list, a list in a member of
 * an object, or a sequence of values. The runtime's parser needs the whole text in memory.
 */

import { isUtf8 } from "node:buffer";
import { CorruptInputError } from "./input.ts";
import { objectFrom, parseJsonString } from "./json-text.ts";
import { parsedLine, type ReadRecord } from "./record.ts";
import { lineBytesMax, lineWithoutEnd, skippedBytesMax } from "./text-blocks.ts";

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const space = 0x20;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Records are numbered like lines: the first is 1.
 *
 * @param columns of rows that are lists; undefined if records are objects.
 */
export async function* readDocument(
  name: string,
  chunks: AsyncIterable<Buffer>,
  member: string | undefined,
  columns?: readonly string[],
): AsyncGenerator<ReadRecord> {
  const splitter = new JsonSplitter(member);
  let isFirst = true;
  for await (const chunk of chunks) {
    const hasMark = isFirst && chunk.subarray(0, 3).equals(byteOrderMark);
    isFirst = false;
    for (const read of splitter.take(hasMark ? chunk.subarray(3) : chunk)) yield namedRow(read, columns);
  }
  // The record that is not complete is read again when the file is.
  if (splitter.isOpen) throw new CorruptInputError(`${name} is cut off: its JSON has no end.`);
  for (const read of splitter.end()) yield namedRow(read, columns);
}

/** A row of a response `{"columns":[…],"results":[[…]]}` as a record. Source: contract, import 2.1. */
function namedRow(read: ReadRecord, columns: readonly string[] | undefined): ReadRecord {
  const { line, problem, text } = read;
  if (columns === undefined || problem !== "not_an_object") return read;
  const row = parseJsonString(text!);
  if (!Array.isArray(row)) return read;
  if (row.length !== columns.length) return { line, problem: "wrong_column_count", text };
  return { line, record: objectFrom(row.map((value, at) => [columns[at]!, value])) };
}

/** Depths of records; outside of the list of an object nothing is a record. */
const noLevel = -1;

class JsonSplitter {
  private depth = 0;
  private level = 0;
  private isInText = false;
  private isEscaped = false;
  /** Bytes of the record that is being read; undefined between records. */
  private parts: Buffer[] | undefined;
  private length = 0;
  private isTooLong = false;
  private count = 0;
  /** The last string at depth 1 of an object, which may be the name of a member. */
  private key: number[] | undefined;

  constructor(private readonly member: string | undefined) {}

  /** A list, an object or a string has no end yet. */
  get isOpen(): boolean {
    return this.depth > 0 || this.isInText;
  }

  *take(chunk: Buffer): Generator<ReadRecord> {
    /** Start of the record's part in this chunk. */
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (this.isInText) {
        at = this.passText(chunk, at);
        continue;
      }
      if (byte <= space) continue;
      const isRecord = this.parts !== undefined;
      if (byte === quote) {
        this.isInText = true;
        if (this.isAtKeys) this.key = [];
        else if (!isRecord && this.depth === this.level) start = this.start(at);
      } else if (byte === openBrace || byte === openBracket) {
        if (!isRecord && this.enters(byte)) continue;
        if (!isRecord && this.depth === this.level) start = this.start(at);
        this.depth += 1;
      } else if (byte === closeBrace || byte === closeBracket) {
        if (isRecord && this.depth > this.level) {
          this.depth -= 1;
          if (this.depth === this.level) yield this.finish(chunk.subarray(start, at + 1));
          continue;
        }
        // A value without brackets ends with its list.
        if (isRecord) yield this.finish(chunk.subarray(start, at));
        this.leave();
      } else if (byte === comma) {
        if (isRecord && this.depth === this.level) yield this.finish(chunk.subarray(start, at));
      } else if (byte !== colon && !isRecord && this.depth === this.level) start = this.start(at);
    }
    if (this.parts !== undefined) this.keep(chunk.subarray(start));
  }

  /** @returns the end of the string, or the last position of the chunk. */
  private passText(chunk: Buffer, from: number): number {
    const close = this.isEscaped ? -1 : chunk.indexOf(quote, from);
    const isPlain = close !== -1 && !isBehindEscape(chunk, from, close);
    if (isPlain) {
      if (this.isAtKeys) this.preserveKey(chunk.subarray(from, close));
      this.isInText = false;
      return close;
    }
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (this.isEscaped) this.isEscaped = false;
      else if (byte === backslash) this.isEscaped = true;
      else if (byte === quote) {
        this.isInText = false;
        return at;
      }
      if (this.isAtKeys) this.preserveKey(chunk.subarray(at, at + 1));
    }
    return chunk.length - 1;
  }

  /** Keeps only enough bytes to distinguish it from the member's name. */
  private preserveKey(bytes: Buffer): void {
    const keyOffset = this.member!.length + 1 - this.key!.length;
    if (keyOffset > 0) this.key!.push(...bytes.subarray(0, keyOffset));
  }

  *end(): Generator<ReadRecord> {
    if (this.parts !== undefined) yield this.finish(Buffer.alloc(0));
  }

  /** Inside an object whose members are searched for the list. */
  private get isAtKeys(): boolean {
    return this.level === noLevel && this.depth === 1;
  }

  /** Whether a bracket opens the container of the records. */
  private enters(byte: number): boolean {
    const isTop = this.depth === 0 && this.level === 0;
    const isList = isTop && byte === openBracket;
    const isHolder = isTop && byte === openBrace && this.member !== undefined;
    const isMember =
      this.isAtKeys && byte === openBracket && Buffer.from(this.key ?? []).toString() === this.member;
    if (!isList && !isHolder && !isMember) return false;
    this.depth += 1;
    this.level = isHolder ? noLevel : this.depth;
    return true;
  }

  private leave(): void {
    const wasList = this.depth === this.level;
    this.depth = Math.max(0, this.depth - 1);
    if (this.depth === 0) this.level = 0;
    else if (wasList) this.level = noLevel;
  }

  private start(at: number): number {
    this.parts = [];
    this.length = 0;
    this.isTooLong = false;
    return at;
  }

  private keep(part: Buffer): void {
    this.length += part.length;
    if (this.length > skippedBytesMax) throw lineWithoutEnd();
    if (this.length > lineBytesMax) {
      this.isTooLong = true;
      this.parts = [];
    } else this.parts!.push(Buffer.from(part));
  }

  private finish(part: Buffer): ReadRecord {
    this.keep(part);
    const bytes = Buffer.concat(this.parts!);
    this.parts = undefined;
    const line = ++this.count;
    if (this.isTooLong) return { line, problem: "line_too_long", text: "" };
    const text = bytes.toString("utf8").trim();
    return isUtf8(bytes) ? parsedLine(text, line) : { line, problem: "not_utf8", text };
  }
}

/** Whether an odd number of backslashes precedes the byte at `at`. */
function isBehindEscape(chunk: Buffer, from: number, at: number): boolean {
  let first = at;
  while (first > from && chunk[first - 1] === backslash) first -= 1;
  return (at - first) % 2 === 1;
}
