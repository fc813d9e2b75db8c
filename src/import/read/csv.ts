/**
 * Reads CSV as a stream. The first line names the columns; the delimiter and line ends are detected, and line ends may
 * be mixed.
 *
 * A broken row costs one row: with invalid quotes, its first line is reported as a problem and reading continues at the
 * next line, so that an unclosed quote does not swallow the rest of the file. The time is linear in the size of the
 * file, however broken it is (contract, import 1.10).
 *
 * A last row without a line break and with too few cells, or with an open quote, is no record: the rest is missing.
 * If the file ends with a line break, an open quote may also be a broken one: that depends on the lines after it.
 */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import {
  type CsvForm,
  type CsvProblem,
  type CsvRow,
  CsvRows,
  columnsMax,
  isEscaped,
  noValue,
} from "./csv-rows.ts";
import { CorruptInputError, UnreadableFileError } from "./input.ts";
import { objectFrom } from "./json-text.ts";
import type { ReadRecord } from "./record.ts";
import { commentLength, getCsvForm, isSnowplowLine, snowplowForm } from "./table-form.ts";
import { getProblem, lineBytesMax, withoutMarks } from "./text-blocks.ts";

/** A longer row has an unclosed quote. */
const rowLengthMax = lineBytesMax;
const guessLength = 64 * 1024;

/** Maximum length of a null marker. */
const nullLengthMax = 100;
/** Valid values of `--null`, for an error message. */
export const nullForm = `1 to ${nullLengthMax} characters without a line break`;

/** Whether a cell can consist of exactly this text. */
export function isNullMarker(text: string): boolean {
  return text.length >= 1 && text.length <= nullLengthMax && !/[\r\n]/.test(text);
}

export interface CsvOptions {
  /** Unquoted cells that are null, in addition to `\\N` and empty ones. */
  nulls?: readonly string[];
  /** Converts a row of Snowplow, whose tables have no header, to a record. */
  snowplowRow?: (values: string[]) => JsonObject;
}

/**
 * @throws {UnreadableFileError} the first line is not a header, or names too many columns.
 * @throws {CorruptInputError} after the other records, if the last row has no end.
 */
export async function* readCsv(
  name: string,
  blocks: AsyncIterable<string>,
  options: CsvOptions = {},
): AsyncGenerator<ReadRecord> {
  let reader: CsvReader | undefined;
  for await (const block of blocks) {
    if (reader === undefined) {
      const length = commentLength(block);
      const rest = block.slice(length);
      reader = getReader(rest, block.slice(0, length).split("\n").length, options);
      yield* reader.take(rest, false);
    } else yield* reader.take(block, false);
  }
  if (reader === undefined) return;
  const cutLine = yield* reader.take("", true);
  if (cutLine !== undefined) throw new CorruptInputError(`${name} is cut off: line ${cutLine} has no end.`);
}

/** @param line number of the header. */
function getReader(block: string, line: number, { nulls = [], snowplowRow }: CsvOptions): CsvReader {
  const lineEnd = block.indexOf("\n");
  const isSnowplow =
    snowplowRow !== undefined && isSnowplowLine(block.slice(0, lineEnd === -1 ? undefined : lineEnd));
  const allNulls = new Set([noValue, ...nulls]);
  return isSnowplow
    ? new CsvReader(snowplowForm, allNulls, line, snowplowRow)
    : new CsvReader(getCsvForm(block.slice(0, guessLength)), allNulls, line, undefined);
}

class CsvReader {
  private columns: string[] | undefined;
  private text = "";
  /** Minimum text length before the next attempt: a long row must not be read again with every block. */
  private enough = 0;
  /** Cells of the first row, if the table has no header. */
  private width = 0;
  /** NUL bytes were found, with which ClickHouse fills a FixedString. */
  private hasNul = false;

  constructor(
    private readonly form: CsvForm,
    private readonly nulls: ReadonlySet<string>,
    /** Line number of the next row. */
    private line: number,
    private readonly rowWithoutHeader: CsvOptions["snowplowRow"],
  ) {
    this.hasNul = form.escapes === "all";
  }

  /** @returns the line of the last row, if the rest of the file is missing. */
  *take(block: string, isLast: boolean): Generator<ReadRecord, number | undefined> {
    this.text += block;
    this.hasNul ||= block.includes("\0");
    if (this.text.length < this.enough && !isLast) return undefined;
    const { text } = this;
    const rows = new CsvRows(text, this.form, this.nulls);
    const hasEnd = text.endsWith(this.form.newline);
    /** Rows that may be the beginning of the last one. */
    const tail: ReadRecord[] = [];
    let at = 0;
    while (at < text.length) {
      const row = rows.rowAt(at, isLast);
      // A quote may have opened one row that extends over the rest of the file.
      if (row === "incomplete" && text.length - at <= rowLengthMax) break;
      let read: ReadRecord | undefined;
      if (typeof row === "string") {
        const end = this.lineEnd(at);
        read = this.brokenLine(text.slice(at, end));
        at = end + 1;
      } else {
        read = this.toRecord(row, this.line);
        this.line += row.lines;
        at = row.end;
      }
      if (read === undefined) continue;
      // A row after it shows that the quote belongs to one broken row.
      if (read.record !== undefined) yield* tail.splice(0);
      const isOpen = row === "unclosed" || (at > text.length && this.isShort(row));
      if (isOpen || tail.length > 0) tail.push(read);
      else yield read;
    }
    this.text = text.slice(at);
    this.enough = Math.min(2 * this.text.length, rowLengthMax);
    if (tail.length > 0 && (!hasEnd || !tail.every(({ text }) => this.isFull(text!)))) return tail[0]!.line;
    yield* tail;
    return undefined;
  }

  private isShort(row: CsvRow | CsvProblem): boolean {
    return typeof row !== "string" && row.cells.length < this.cellCount;
  }

  /** Whether the text of a row without a record has all cells, apart from its quotes. */
  private isFull(text: string): boolean {
    return text.split(this.form.delimiter, columnsMax + 1).length >= this.cellCount;
  }

  private get cellCount(): number {
    return this.columns?.length ?? this.width;
  }

  private toRecord(read: CsvRow, line: number): ReadRecord | undefined {
    if (read.cells.length === 1 && read.cells[0]!.trim() === "") return undefined;
    const { cells: row, quoted } = this.joined(read);
    if (this.rowWithoutHeader !== undefined) return this.headerless(row, line, this.rowWithoutHeader);
    if (this.columns === undefined) {
      this.columns = getHeader(row);
      return undefined;
    }
    const { columns } = this;
    const { delimiter } = this.form;
    const problem = getProblem(row.join("\n"));
    if (problem !== undefined) return { line, problem, text: withoutMarks(row.join(delimiter)) };
    if (row.length !== columns.length) {
      return { line, problem: "wrong_column_count", text: row.join(delimiter) };
    }
    const cells: [string, Json][] = [];
    // An empty cell is null.
    for (let at = 0; at < row.length; at++) {
      let cell = row[at]!;
      if (cell === "" || (this.nulls.has(cell) && !quoted?.has(at))) continue;
      if (this.hasNul) cell = withoutFilling(cell);
      if (cell !== "") cells.push([columns[at]!, cell]);
    }
    return { line, record: objectFrom(cells) };
  }

  private headerless(
    row: string[],
    line: number,
    toRecord: NonNullable<CsvOptions["snowplowRow"]>,
  ): ReadRecord {
    const text = row.join(this.form.delimiter);
    const problem = getProblem(text);
    if (problem !== undefined) return { line, problem, text: withoutMarks(text) };
    if (!isSnowplowLine(text)) return { line, problem: "wrong_column_count", text };
    if (this.width === 0) this.width = row.length;
    return { line, record: toRecord(row.map((cell) => (this.nulls.has(cell) ? "" : cell))) };
  }

  /**
   * Snowflake may write a backslash before a delimiter that belongs to the text. Only for rows with too many cells: a
   * text may also end with a backslash.
   */
  private joined(row: CsvRow): CsvRow {
    const { columns, form } = this;
    if (form.escapes !== "none" || columns === undefined || row.cells.length <= columns.length) return row;
    if (row.cells.length > columnsMax) return row;
    const cells: string[] = [];
    const quoted = new Set<number>();
    let isOpen = false;
    for (const [at, cell] of row.cells.entries()) {
      const isQuoted = row.quoted?.has(at) === true;
      if (isOpen) cells.push(`${cells.pop()!.slice(0, -1)}${form.delimiter}${cell}`);
      else cells.push(cell);
      if (isQuoted) quoted.add(cells.length - 1);
      isOpen = !isQuoted && isEscaped(cell, 0, cell.length);
    }
    return cells.length === columns.length ? { ...row, cells, quoted } : row;
  }

  private brokenLine(line: string): ReadRecord {
    const text = line.replace(/\r$/, "");
    return { line: this.line++, problem: getProblem(text) ?? "broken_quotes", text: withoutMarks(text) };
  }

  private lineEnd(start: number): number {
    const found = this.text.indexOf(this.form.newline, start);
    return found === -1 ? this.text.length : found;
  }
}

function getHeader(row: readonly string[]): string[] {
  if (row.length > columnsMax) {
    const most = columnsMax.toLocaleString("en-US");
    throw new UnreadableFileError(
      `The first line of the file names more than ${most} columns, which is the limit.`,
    );
  }
  const names = row.map((name) => name.trim());
  const seen = new Set<string>();
  const twice = names.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined || seen.has("") || getProblem(names.join()) !== undefined) {
    throw new UnreadableFileError(
      twice === undefined || twice === ""
        ? "The first line of the file has to name every column."
        : `The first line of the file names the column ${withoutMarks(twice)} twice.`,
    );
  }
  return names;
}

/** ClickHouse fills a FixedString with NUL bytes; a cell of only NUL bytes is null. Source: contract, import 1.4 T6. */
function withoutFilling(cell: string): string {
  let end = cell.length;
  while (end > 0 && cell.charCodeAt(end - 1) === 0) end -= 1;
  return cell.slice(0, end);
}
