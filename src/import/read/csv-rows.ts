/** Splits text into table rows, in linear time even with broken quotes. Pure. */

export interface CsvForm {
  /** One character. */
  delimiter: string;
  /** Old Macs end rows with `\r`; with `\n` a `\r` before it is not part of the row. */
  newline: "\n" | "\r";
  /** Characters that a backslash escapes: those of `escaped`, or the separators of cells and rows. */
  escapes: "none" | "all" | "separators";
  /** Whether a cell that begins with a quote ends with one; in tables where it need not, such a quote is text. */
  quotes: "always" | "paired" | "never";
}

/** Cells that are null in every table. Source: contract, import 1.4 T1. */
export const noValue = "\\N";

/** A line with more columns is not a header. */
export const columnsMax = 10_000;
/** Further cells of a row are dropped: a line of commas would become more cells than fit into memory. */
const cellsMax = columnsMax + 1;

export interface CsvRow {
  /** At most one more than `columnsMax`. */
  cells: string[];
  /** Cells that are strings whatever they contain: they were quoted, or their escapes were processed. */
  quoted: Set<number> | undefined;
  /** Start of the next row. */
  end: number;
  /** Number of lines. */
  lines: number;
}

/** The row has no end in the text, its quotes are invalid, or the file ends inside of them. */
export type CsvProblem = "incomplete" | "broken" | "unclosed";

const quote = '"';
const space = 0x20;
const carriageReturn = 0x0d;
/** Literal after a backslash. */
const plain = new Set(["\\", "'", quote, "\n", "\r", "/"]);
/** Escapes of ClickHouse, MySQL and Postgres; a backslash before any other character is literal. */
const escaped: Readonly<Record<string, string>> = {
  t: "\t",
  n: "\n",
  r: "\r",
  b: "\b",
  f: "\f",
  "0": "\0",
  v: "\v",
  a: "\x07",
  Z: "\x1a",
};

/** Reads rows of one text, in order. */
export class CsvRows {
  private readonly quotes: Finder;
  private readonly delimiters: Finder;
  private readonly newlines: Finder;
  private readonly backslashes: Finder;
  /** Ends or escapes something in an unquoted cell. */
  private readonly special: RegExp;

  /** @param nulls unquoted cells that are null. */
  constructor(
    private readonly text: string,
    private readonly form: CsvForm,
    private readonly nulls: ReadonlySet<string> = new Set([noValue]),
  ) {
    this.quotes = new Finder(text, quote);
    this.delimiters = new Finder(text, form.delimiter);
    this.newlines = new Finder(text, form.newline);
    this.backslashes = new Finder(text, "\\");
    this.special = new RegExp(`[\\\\${form.delimiter === "|" ? "\\|" : form.delimiter}${form.newline}]`, "g");
  }

  /** @param isLast whether the text extends to the end of the file. */
  rowAt(start: number, isLast: boolean): CsvRow | CsvProblem {
    const { text, form } = this;
    const lineEnd = this.newlines.from(start);
    if (lineEnd === text.length && !isLast) return "incomplete";
    if (form.escapes !== "none" && this.backslashes.from(start) < lineEnd)
      return this.splitRowAt(start, isLast);
    if (form.quotes !== "never" && this.quotes.from(start) < lineEnd) return this.splitRowAt(start, isLast);
    const cells = text.slice(start, withoutReturn(text, start, lineEnd)).split(form.delimiter, cellsMax);
    return { cells, quoted: undefined, end: lineEnd + 1, lines: 1 };
  }

  /** A row with quotes or escapes. */
  private splitRowAt(start: number, isLast: boolean): CsvRow | CsvProblem {
    const { text } = this;
    const { delimiter, newline, escapes, quotes } = this.form;
    const cells: string[] = [];
    const quoted = new Set<number>();
    let lines = 1;
    const add = (cell: string, raw: string, isText: boolean) => {
      for (let next = raw.indexOf(newline); next !== -1; next = raw.indexOf(newline, next + 1)) lines += 1;
      if (cells.length >= cellsMax) return;
      if (isText) quoted.add(cells.length);
      cells.push(cell);
    };
    for (let at = start; ; ) {
      const close = text[at] === quote && quotes !== "never" ? this.findClose(at, isLast) : "broken";
      if (close === "incomplete") return close;
      if (typeof close === "string" && text[at] === quote && quotes === "always") return close;
      let end: number;
      if (typeof close !== "string") {
        const inner = text.slice(at + 1, close.at);
        // With doubled quotes, backslashes are literal: the writer has no escapes.
        if (close.hasPairs) add(inner.replaceAll('""', quote), inner, true);
        else add(escapes === "none" ? inner : this.unescaped(inner), inner, true);
        end = close.end;
      } else {
        const found = escapes === "none" ? this.plainEnd(at, isLast) : this.escapedEnd(at, isLast);
        if (found === undefined) return "incomplete";
        end = found;
        const raw = text.slice(at, text[end] === delimiter ? end : withoutReturn(text, at, end));
        const isNull = this.nulls.has(raw);
        if (isNull) add("", "", false);
        else if (escapes === "none") add(raw, "", false);
        else add(this.unescaped(raw), raw, raw.includes("\\"));
      }
      if (text[end] !== delimiter) return { cells, quoted, end: end + 1, lines };
      at = end + 1;
    }
  }

  private plainEnd(at: number, isLast: boolean): number | undefined {
    const lineEnd = this.newlines.from(at);
    if (lineEnd === this.text.length && !isLast) return undefined;
    return Math.min(this.delimiters.from(at), lineEnd);
  }

  /** The end of a cell in which a backslash escapes the next character. */
  private escapedEnd(start: number, isLast: boolean): number | undefined {
    const { text, special } = this;
    special.lastIndex = start;
    for (let found = special.exec(text); found !== null; found = special.exec(text)) {
      const { index } = found;
      if (text[index] !== "\\") return index;
      const isBeforeReturn = text.startsWith("\r\n", index + 1);
      special.lastIndex = index + (isBeforeReturn ? 3 : 2);
    }
    return isLast ? text.length : undefined;
  }

  private unescaped(cell: string): string {
    // Escapes in a ClickHouse array belong to its elements: they are processed with the list.
    if (!cell.includes("\\") || cell.startsWith("['")) return cell;
    const { escapes, delimiter } = this.form;
    return cell.replace(/\\(\r\n|[\s\S])/g, (all, character: string) => {
      if (character === "\r\n") return "\n";
      if (character === delimiter || plain.has(character)) return character;
      return escapes === "all" ? (escaped[character] ?? all) : all;
    });
  }

  /** Position of the closing quote of the cell that opens at `open`, and of the delimiter or line end after it. */
  private findClose(
    open: number,
    isLast: boolean,
  ): { at: number; end: number; hasPairs: boolean } | CsvProblem {
    const { text } = this;
    const { delimiter, newline, escapes } = this.form;
    let hasPairs = false;
    for (let from = open + 1; ; ) {
      const at = text.indexOf(quote, from);
      if (at === -1) return isLast ? "unclosed" : "incomplete";
      if (escapes !== "none" && isEscaped(text, open + 1, at)) {
        from = at + 1;
        continue;
      }
      if (text[at + 1] === quote) {
        hasPairs = true;
        from = at + 2;
        continue;
      }
      let end = at + 1;
      // Some programs pad cells.
      while (text.charCodeAt(end) === space && delimiter !== " ") end += 1;
      if (text.charCodeAt(end) === carriageReturn && newline === "\n") end += 1;
      if (end >= text.length) return isLast ? { at, end: text.length, hasPairs } : "incomplete";
      if (text[end] === newline) return { at, end, hasPairs };
      return text[end] === delimiter && text.charCodeAt(end - 1) !== carriageReturn
        ? { at, end, hasPairs }
        : "broken";
    }
  }
}

/** Finds a character repeatedly from rising positions, and reads no character twice. */
class Finder {
  private requested = 0;
  private found = -1;

  constructor(
    private readonly text: string,
    private readonly wanted: string,
  ) {}

  /** @returns its first position, or the end of the text. */
  from(start: number): number {
    // After a broken row, reading continues before the last position.
    if (start > this.found || start < this.requested) {
      const found = this.text.indexOf(this.wanted, start);
      this.found = found === -1 ? this.text.length : found;
      this.requested = start;
    }
    return this.found;
  }
}

function withoutReturn(text: string, start: number, end: number): number {
  return end > start && text.charCodeAt(end - 1) === carriageReturn ? end - 1 : end;
}

/** Whether an odd number of backslashes precedes `at`, counting back to `start`. */
export function isEscaped(text: string, start: number, at: number): boolean {
  let first = at;
  while (first > start && text[first - 1] === "\\") first -= 1;
  return (at - first) % 2 === 1;
}
