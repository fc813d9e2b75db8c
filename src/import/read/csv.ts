/**
 * Reads CSV as a stream. Its first line names the columns; delimiter and line ends are found out, and lines may end in one way
 * here and in another there.
 *
 * A broken row costs one row: where quotes are wrong, its first line is given back as a problem and reading goes on
 * at the line after it, so that a quote that is never closed does not swallow the rest of the file. The time that it
 * takes grows with the size of the file, whatever is broken (contract, import 1.10).
 */

import type { Json } from "../../lib/json.ts";
import { type CsvForm, type CsvRow, CsvRows, columnsMax, csvFormOf } from "./csv-rows.ts";
import { FileUnreadable } from "./input.ts";
import { objectFrom } from "./json-text.ts";
import type { ReadRecord } from "./record.ts";
import { lineBytesMax, problemOf, withoutMarks } from "./text-blocks.ts";

/** A row that is longer has a quote that was never closed. */
const rowLengthMax = lineBytesMax;
const guessLength = 64 * 1024;

/** @throws {FileUnreadable} the first line is no header, or names too many columns. */
export async function* readCsv(blocks: AsyncIterable<string>): AsyncGenerator<ReadRecord> {
  let reader: CsvReader | undefined;
  for await (const block of blocks) {
    reader ??= new CsvReader(csvFormOf(block.slice(0, guessLength)));
    yield* reader.take(block, false);
  }
  if (reader !== undefined) yield* reader.take("", true);
}

class CsvReader {
  private columns: string[] | undefined;
  private text = "";
  /** Of the text is read nothing before it is so long: a long row must not be read again with every block. */
  private enough = 0;
  /** Of the next row. */
  private line = 1;

  constructor(private readonly form: CsvForm) {}

  *take(block: string, isLast: boolean): Generator<ReadRecord> {
    this.text += block;
    if (this.text.length < this.enough && !isLast) return;
    const { text } = this;
    const rows = new CsvRows(text, this.form);
    let at = 0;
    while (at < text.length) {
      const row = rows.rowAt(at, isLast);
      // The rest of the file may be one row that a quote has opened.
      if (row === "incomplete" && text.length - at <= rowLengthMax) break;
      if (typeof row === "string") {
        const end = this.lineEnd(at);
        yield this.brokenLine(text.slice(at, end));
        at = end + 1;
        continue;
      }
      const record = this.recordOf(row, this.line);
      this.line += row.lines;
      at = row.end;
      if (record !== undefined) yield record;
    }
    this.text = text.slice(at);
    this.enough = Math.min(2 * this.text.length, rowLengthMax);
  }

  private recordOf({ cells: row }: CsvRow, line: number): ReadRecord | undefined {
    if (row.length === 1 && row[0]!.trim() === "") return undefined;
    if (this.columns === undefined) {
      this.columns = headerOf(row);
      return undefined;
    }
    const { columns } = this;
    const { delimiter } = this.form;
    const problem = problemOf(row.join("\n"));
    if (problem !== undefined) return { line, problem, text: withoutMarks(row.join(delimiter)) };
    if (row.length !== columns.length) {
      return { line, problem: "wrong_column_count", text: row.join(delimiter) };
    }
    const cells: [string, Json][] = [];
    // An empty cell is no value.
    for (let at = 0; at < row.length; at++) if (row[at] !== "") cells.push([columns[at]!, row[at]!]);
    return { line, record: objectFrom(cells) };
  }

  private brokenLine(line: string): ReadRecord {
    const text = line.replace(/\r$/, "");
    return { line: this.line++, problem: problemOf(text) ?? "broken_quotes", text: withoutMarks(text) };
  }

  private lineEnd(start: number): number {
    const found = this.text.indexOf(this.form.newline, start);
    return found === -1 ? this.text.length : found;
  }
}

function headerOf(row: readonly string[]): string[] {
  if (row.length > columnsMax) {
    const most = columnsMax.toLocaleString("en-US");
    throw new FileUnreadable(
      `The first line of the file names more than ${most} columns, which is the limit.`,
    );
  }
  const names = row.map((name) => name.trim());
  const seen = new Set<string>();
  const twice = names.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined || seen.has("") || problemOf(names.join()) !== undefined) {
    throw new FileUnreadable(
      twice === undefined || twice === ""
        ? "The first line of the file has to name every column."
        : `The first line of the file names the column ${withoutMarks(twice)} twice.`,
    );
  }
  return names;
}
