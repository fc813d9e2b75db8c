/** CSV files for spreadsheets. */

import { formatValue } from "./format.ts";

/** Download formats of query results. */
export type FileForm = "csv" | "parquet";

/** Spreadsheets run cells that begin like a formula. */
const formulaStart = /^"?[=+\-@\t\r]/;
/** Cells in the server's CSV: quoted as a whole (inner quotes doubled), or not at all. */
const cells = /(?:"[^"]*")+|[^",\n]+/g;

/** CSV of rows, with a header line. */
export function toCsv(columns: readonly string[], rows: readonly Record<string, unknown>[]): Blob {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return new Blob([harmless(lines.map((line) => `${line.map(cell).join(",")}\n`).join(""))]);
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = formatValue(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Prefixes cells that a spreadsheet would run with `'`; numbers stay numbers. The server's own CSV is exact, for
 * programs that read it back: files from the console are opened in spreadsheets.
 */
export function withoutFormulas(): TransformStream<string, string> {
  let rest = "";
  return new TransformStream({
    transform(chunk, out) {
      const text = rest + chunk;
      const last = text.lastIndexOf("\n") + 1;
      // A line break within quotes does not end a row.
      const end = text.slice(0, last).split('"').length % 2 === 1 ? last : 0;
      rest = text.slice(end);
      out.enqueue(harmless(text.slice(0, end)));
    },
    flush(out) {
      out.enqueue(harmless(rest));
    },
  });
}

/** @param rows complete rows. */
function harmless(rows: string): string {
  return rows.replace(cells, (found) =>
    formulaStart.test(found) && Number.isNaN(Number(found)) ? found.replace(/^"?/, "$&'") : found,
  );
}

/** Saves content as a file through the browser. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
