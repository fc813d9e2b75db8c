/**
 * Splits bytes into blocks of whole lines.
 *
 * A line that is invalid UTF-8 or too long is marked instead of failing the file: `getProblem` detects the marks.
 */

import { isUtf8 } from "node:buffer";
import { CorruptInputError } from "./input.ts";

/** The longest line that is read: far more than an event may have at the default body limit. Decision 26. */
export const lineBytesMax = 64 * 1024 * 1024;
/** A longer line ends the file: input without line breaks may be endless. */
export const skippedBytesMax = 1024 * 1024 * 1024;
const newline = 0x0a;
const byteOrderMark = Buffer.from("\uFEFF");

/** Two high surrogates: text decoded from UTF-8 never contains them. */
const notUtf8Mark = "\uD800\uD800";
const tooLongMark = "\uD800\uD801";
/** Replaces a line that is too long in bytes; also invalid UTF-8. */
const tooLongLine = Buffer.from([0xff, 0xfe, 0xff]);

/** Like `lineBlocks`, as strings. */
export async function* textBlocks(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  for await (const block of lineBlocks(chunks)) yield toDisplayString(block);
}

/**
 * Yields bytes that end with a line break, except for the last ones. A byte order mark is removed.
 *
 * @throws {CorruptInputError} a line is longer than `skippedBytesMax`.
 */
export async function* lineBlocks(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let isTooLong = false;
  let skippedBytes = 0;
  let isFirst = true;
  const withoutMark = (bytes: Buffer): Buffer => {
    const hasMark = isFirst && bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark);
    isFirst = false;
    return hasMark ? bytes.subarray(byteOrderMark.length) : bytes;
  };
  for await (const chunk of chunks) {
    let start = 0;
    if (isTooLong) {
      const end = chunk.indexOf(newline);
      if (end === -1) {
        skippedBytes += chunk.length;
        if (skippedBytes > skippedBytesMax) throw lineWithoutEnd();
        continue;
      }
      yield Buffer.from([...tooLongLine, newline]);
      isTooLong = false;
      start = end + 1;
    }
    const lineEnd = rest.length === 0 ? -1 : chunk.indexOf(newline, start);
    if (lineEnd !== -1 && restBytes + lineEnd - start > lineBytesMax) {
      yield Buffer.from([...tooLongLine, newline]);
      rest = [];
      restBytes = 0;
      start = lineEnd + 1;
    }
    const end = chunk.lastIndexOf(newline) + 1;
    if (end > start && rest.length > 0) {
      // Only the line that starts before the chunk is copied.
      yield withoutMark(Buffer.concat([...rest, chunk.subarray(start, lineEnd + 1)]));
      rest = [];
      restBytes = 0;
      start = lineEnd + 1;
    }
    if (end > start) yield withoutMark(chunk.subarray(start, end));
    const more = chunk.subarray(Math.max(start, end));
    rest.push(more);
    restBytes += more.length;
    if (restBytes > lineBytesMax) {
      isTooLong = true;
      skippedBytes = restBytes;
      rest = [];
      restBytes = 0;
    }
  }
  if (isTooLong) yield tooLongLine;
  else if (restBytes > 0) yield withoutMark(Buffer.concat(rest));
}

/** A line or a record has no end within the limit. */
export function lineWithoutEnd(): CorruptInputError {
  return new CorruptInputError("A line or record is longer than 1 GiB, which is the limit.");
}

/** Why a part of this text cannot be used. */
export function getProblem(text: string): string | undefined {
  if (text.includes(notUtf8Mark)) return "not_utf8";
  return text.includes(tooLongMark) ? "line_too_long" : undefined;
}

/** The text without marks, for display. */
export function withoutMarks(text: string): string {
  return text.replaceAll(notUtf8Mark, "\uFFFD").replaceAll(tooLongMark, "");
}

/** The text of a block, with marks. */
export function toDisplayString(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const found = bytes.indexOf(newline, at);
    const end = found === -1 ? bytes.length : found + 1;
    const line = bytes.subarray(at, end);
    lines.push(markedString(line));
    at = end;
  }
  return lines.join("");
}

function markedString(line: Buffer): string {
  const text = line.toString("utf8");
  if (isUtf8(line)) return text;
  const isTooLong = line.subarray(0, tooLongLine.length).equals(tooLongLine);
  return isTooLong ? tooLongMark + text.slice(tooLongLine.length) : text.replaceAll("\uFFFD", notUtf8Mark);
}
