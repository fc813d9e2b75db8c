/** Cuts text into the rows of a table, each character once or twice however broken the quotes are. Pure. */

export interface CsvForm {
  /** One character. */
  delimiter: string;
  /** Old Macs end rows with `\r`; with `\n` a `\r` before it is not part of the row. */
  newline: "\n" | "\r";
}

/** A header with more columns is not one. */
export const columnsMax = 10_000;
/** Further cells of a row are left out: a line of commas would become more cells than fit into memory. */
const cellsMax = columnsMax + 1;

export interface CsvRow {
  /** At most one more than `columnsMax`. */
  cells: string[];
  /** Which cells stood in quotes; undefined where none did. */
  quoted: Set<number> | undefined;
  /** Where the next row begins. */
  end: number;
  /** Lines that it takes. */
  lines: number;
}

/** The row has no end in the text, or its quotes are wrong. */
export type CsvFault = "incomplete" | "broken";

/** Delimiters that are looked for in the header; of two that are there as often, the first. */
const delimiters = [",", "\t", "|", ";", "\x1e", "\x1f"];
const [quote, space, carriageReturn] = ['"', 0x20, 0x0d];

/** Tells the form by the beginning of a file: the header alone decides, numbers in rows may have commas of their own. */
export function csvFormOf(beginning: string): CsvForm {
  const counts = new Map(delimiters.map((delimiter) => [delimiter, 0]));
  let newline: CsvForm["newline"] = "\n";
  let isQuoted = false;
  let isCellStart = true;
  for (let at = 0; at < beginning.length; at++) {
    const character = beginning[at]!;
    if (isQuoted) {
      // The second of a pair opens the cell again.
      isQuoted = character !== quote;
      isCellStart = !isQuoted;
      continue;
    }
    if (character === quote && isCellStart) isQuoted = true;
    isCellStart = counts.has(character);
    if (isCellStart) counts.set(character, counts.get(character)! + 1);
    if (character === "\r" && beginning[at + 1] !== "\n") newline = "\r";
    if (character === "\n" || newline === "\r") break;
  }
  const [delimiter] = [...counts].reduce((best, each) => (each[1] > best[1] ? each : best));
  return { delimiter, newline };
}

/** Reads rows of one text, in order. */
export class CsvRows {
  private readonly quotes: Finder;
  private readonly delimiters: Finder;
  private readonly newlines: Finder;

  constructor(
    private readonly text: string,
    private readonly form: CsvForm,
  ) {
    this.quotes = new Finder(text, quote);
    this.delimiters = new Finder(text, form.delimiter);
    this.newlines = new Finder(text, form.newline);
  }

  /** @param isLast whether the text goes to the end of the file. */
  rowAt(start: number, isLast: boolean): CsvRow | CsvFault {
    const { text, form } = this;
    const lineEnd = this.newlines.from(start);
    if (lineEnd === text.length && !isLast) return "incomplete";
    if (this.quotes.from(start) < lineEnd) return this.quotedRowAt(start, isLast);
    const cells = text.slice(start, withoutReturn(text, start, lineEnd)).split(form.delimiter, cellsMax);
    return { cells, quoted: undefined, end: lineEnd + 1, lines: 1 };
  }

  private quotedRowAt(start: number, isLast: boolean): CsvRow | CsvFault {
    const { text } = this;
    const { delimiter, newline } = this.form;
    const cells: string[] = [];
    const quoted = new Set<number>();
    let lines = 1;
    for (let at = start; ; ) {
      let end: number;
      if (text[at] === quote) {
        const close = this.closeOf(at, isLast);
        if (typeof close === "string") return close;
        const inner = text.slice(at + 1, close.at);
        if (cells.length < cellsMax) {
          quoted.add(cells.length);
          cells.push(close.hasPairs ? inner.replaceAll('""', quote) : inner);
        }
        for (let next = inner.indexOf(newline); next !== -1; next = inner.indexOf(newline, next + 1))
          lines += 1;
        end = close.end;
      } else {
        const lineEnd = this.newlines.from(at);
        if (lineEnd === text.length && !isLast) return "incomplete";
        end = Math.min(this.delimiters.from(at), lineEnd);
        if (cells.length < cellsMax)
          cells.push(text.slice(at, end < lineEnd ? end : withoutReturn(text, at, end)));
      }
      if (text[end] !== delimiter) return { cells, quoted, end: end + 1, lines };
      at = end + 1;
    }
  }

  /** Where the quoted cell that begins at `open` is closed, and where the delimiter or line end behind it is. */
  private closeOf(open: number, isLast: boolean): { at: number; end: number; hasPairs: boolean } | CsvFault {
    const { text } = this;
    const { delimiter, newline } = this.form;
    let hasPairs = false;
    for (let from = open + 1; ; ) {
      const at = text.indexOf(quote, from);
      if (at === -1) return isLast ? "broken" : "incomplete";
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

/** Finds a character again and again from rising places, and looks at no character twice. */
class Finder {
  private asked = 0;
  private found = -1;

  constructor(
    private readonly text: string,
    private readonly wanted: string,
  ) {}

  /** @returns the first place of it, or the end of the text. */
  from(start: number): number {
    // Behind a broken row it goes on before what was looked at last.
    if (start > this.found || start < this.asked) {
      const found = this.text.indexOf(this.wanted, start);
      this.found = found === -1 ? this.text.length : found;
      this.asked = start;
    }
    return this.found;
  }
}

function withoutReturn(text: string, start: number, end: number): number {
  return end > start && text.charCodeAt(end - 1) === carriageReturn ? end - 1 : end;
}
