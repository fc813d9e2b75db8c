/**
 * Reads CSV as a stream. Its first line names the columns; delimiter and line ends are found out, and lines may end in one way
 * here and in another there.
 *
 * A broken row costs one row: where quotes are wrong, its first line is given back as a problem and reading goes on
 * at the line after it, so that a quote that is never closed does not swallow the rest of the file.
 */

import Papa from "papaparse";
import type { Json } from "../../lib/json.ts";
import { FileUnreadable } from "./input.ts";
import { objectFrom } from "./json-text.ts";
import type { ReadRecord } from "./record.ts";
import { lineBytesMax, problemOf, withoutMarks } from "./text-blocks.ts";

/** A row that is longer has a quote that was never closed. */
const rowLengthMax = lineBytesMax;
const guessLength = 64 * 1024;
/** Rows that are parsed at once behind a broken row; doubled until all goes well. */
const rowsAfterProblem = 16;

interface Parsed {
  data: string[][];
  errors: { row?: number }[];
  meta: { cursor: number; truncated: boolean };
}

/** @throws {FileUnreadable} the first line is no header. */
export async function* readCsv(blocks: AsyncIterable<string>): AsyncGenerator<ReadRecord> {
  let reader: CsvReader | undefined;
  for await (const block of blocks) {
    reader ??= new CsvReader(block.slice(0, guessLength));
    yield* reader.take(block, false);
  }
  if (reader !== undefined) yield* reader.take("", true);
}

class CsvReader {
  private readonly delimiter: string;
  private readonly newline: "\n" | "\r";
  private columns: string[] | undefined;
  private text = "";
  /** Of the text is parsed nothing before it is so long: a long row must not be parsed again with every block. */
  private enough = 0;
  /** Of the first row in `text`. */
  private line = 1;
  /** 0: no limit. */
  private rowsAtOnce = 0;

  constructor(beginning: string) {
    const { linebreak } = Papa.parse(beginning, { preview: 20 }).meta;
    // What Windows writes before it is taken off each row.
    this.newline = linebreak === "\r" ? "\r" : "\n";
    // The header alone decides: numbers in the rows may have commas of their own.
    this.delimiter = Papa.parse(beginning.split(this.newline, 1)[0]!).meta.delimiter;
  }

  *take(block: string, isLast: boolean): Generator<ReadRecord> {
    this.text += block;
    if (this.text.length < this.enough && !isLast) return;
    this.enough = 0;
    while (this.text !== "") {
      const { delimiter, newline, rowsAtOnce: preview } = this;
      const parser = new Papa.Parser({ delimiter, newline, preview } as never);
      const { data, errors, meta } = parser.parse(this.text, 0, !isLast) as Parsed;
      const broken = errors.find(({ row }) => row !== undefined)?.row;
      let passed = 0;
      for (const row of broken === undefined ? data : data.slice(0, broken)) {
        const lines = this.linesOf(row);
        const record = this.recordOf(row, this.line + passed);
        if (record !== undefined) yield record;
        passed += lines;
      }
      this.line += passed;
      if (broken !== undefined) {
        this.skipLines(passed);
        yield this.brokenLine();
        this.rowsAtOnce = rowsAfterProblem;
        continue;
      }
      // The rest of the file may be one row that a quote has opened.
      const isStuck = data.length === 0 && this.text.length > rowLengthMax;
      if (isStuck) {
        yield this.brokenLine();
        continue;
      }
      if (data.length === 0) this.enough = Math.min(2 * this.text.length, rowLengthMax);
      const isWhole = !meta.truncated;
      if (isWhole) this.rowsAtOnce = 0;
      else this.rowsAtOnce *= 2;
      this.text =
        isWhole && isLast ? "" : this.text.slice(meta.truncated ? this.offsetOf(passed) : meta.cursor);
      if (isWhole) return;
    }
  }

  private recordOf(row: string[], line: number): ReadRecord | undefined {
    row.push(row.pop()!.replace(/\r$/, ""));
    if (row.length === 1 && row[0]!.trim() === "") return undefined;
    if (this.columns === undefined) {
      this.columns = headerOf(row);
      return undefined;
    }
    const { columns } = this;
    const problem = problemOf(row.join("\n"));
    if (problem !== undefined) return { line, problem, text: withoutMarks(row.join(this.delimiter)) };
    if (row.length !== columns.length) {
      return { line, problem: "wrong_column_count", text: row.join(this.delimiter) };
    }
    const cells: [string, Json][] = [];
    // An empty cell is no value.
    for (let at = 0; at < row.length; at++) if (row[at] !== "") cells.push([columns[at]!, row[at]!]);
    return { line, record: objectFrom(cells) };
  }

  /** Takes the first line away. */
  private brokenLine(): ReadRecord {
    const end = this.text.indexOf(this.newline);
    const text = (end === -1 ? this.text : this.text.slice(0, end)).replace(/\r$/, "");
    this.skipLines(1);
    return { line: this.line++, problem: problemOf(text) ?? "broken_quotes", text: withoutMarks(text) };
  }

  private skipLines(count: number): void {
    this.text = this.text.slice(this.offsetOf(count));
  }

  private offsetOf(lines: number): number {
    let at = 0;
    for (let passed = 0; passed < lines; passed++) {
      const found = this.text.indexOf(this.newline, at);
      if (found === -1) return this.text.length;
      at = found + this.newline.length;
    }
    return at;
  }

  private linesOf(row: readonly string[]): number {
    let lines = 1;
    for (const cell of row) {
      for (let at = cell.indexOf(this.newline); at !== -1; at = cell.indexOf(this.newline, at + 1))
        lines += 1;
    }
    return lines;
  }
}

function headerOf(row: readonly string[]): string[] {
  const names = row.map((name) => name.trim());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined || names.includes("") || problemOf(names.join()) !== undefined) {
    throw new FileUnreadable(
      twice === undefined || twice === ""
        ? "The first line of the file has to name every column."
        : `The first line of the file names the column ${withoutMarks(twice)} twice.`,
    );
  }
  return names;
}
