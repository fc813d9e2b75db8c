/** Files for whoever works with something else: rows for spreadsheets. */

import { valueText } from "./format.ts";

/** What the rows of a statement can be taken along as. */
export type FileForm = "csv" | "parquet";

/** A spreadsheet would run what begins like a formula. */
const formulaStart = /^"?[=+\-@\t\r]/;
/** In CSV as the server writes it: quotes stand around a whole cell, or within one that has them. */
const cells = /(?:"[^"]*")+|[^",\n]+/g;

/** CSV of rows, with a line of names. */
export function toCsv(columns: readonly string[], rows: readonly Record<string, unknown>[]): Blob {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return new Blob([harmless(lines.map((line) => `${line.map(cell).join(",")}\n`).join(""))]);
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = valueText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Passes the server's CSV on with `'` before what a spreadsheet would run; numbers stay numbers. The server's own answer is
 * exact, for programs that read it back: people open what they take from the console in a spreadsheet.
 */
export function withoutFormulas(): TransformStream<string, string> {
  let rest = "";
  return new TransformStream({
    transform(chunk, out) {
      const text = rest + chunk;
      const last = text.lastIndexOf("\n") + 1;
      // A line break within quotes ends no row.
      const end = text.slice(0, last).split('"').length % 2 === 1 ? last : 0;
      rest = text.slice(end);
      out.enqueue(harmless(text.slice(0, end)));
    },
    flush(out) {
      out.enqueue(harmless(rest));
    },
  });
}

/** @param rows whole ones. */
function harmless(rows: string): string {
  return rows.replace(cells, (found) =>
    formulaStart.test(found) && Number.isNaN(Number(found)) ? found.replace(/^"?/, "$&'") : found,
  );
}

/** Hands something to the browser as a file. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
