/** Files for whoever works with something else: rows for spreadsheets. */

import { valueText } from "./format.ts";

/** What the rows of a statement can be taken along as. */
export type FileForm = "csv" | "parquet";

/** A spreadsheet would run what begins like a formula. */
const formulaStart = /^[=+\-@\t\r]/;

/** CSV of rows, with a line of names. */
export function toCsv(columns: readonly string[], rows: readonly Record<string, unknown>[]): Blob {
  const lines = rows.map((row) => columns.map((column) => cell(row[column])).join(","));
  return new Blob([`${[columns.map(cell).join(","), ...lines].join("\r\n")}\r\n`], { type: "text/csv" });
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = valueText(value);
  const safe = typeof value === "string" && formulaStart.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
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
