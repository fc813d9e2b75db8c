/**
 * Reads distinct IDs from an uploaded CSV file for a static cohort. Loaded with the first upload: its parser would delay
 * the start.
 */

import Papa from "papaparse";
import { InvalidFieldError } from "../lib/errors.ts";

/**
 * The unique distinct IDs in a CSV file: the column with a heading such as `distinct_id`, delimited by comma, semicolon
 * or tab; without a heading, the first comma-separated cell of each line. Cells are trimmed.
 * @throws {InvalidFieldError} the file contains only person IDs, or an unclosed quote
 */
export function distinctIdsOfCsv(csv: string): string[] {
  const text = csv
    .replace(/^\uFEFF/, "")
    .replace(/\r\n?/g, "\n")
    .replace(/^\s*\n/, "")
    // Hand-written files have spaces before an opening quote, which CSV parsers reject.
    .replace(/"[^"]*"|(?<![^,;\t\n]) +(?=")/g, (found) => (found.startsWith(" ") ? "" : found));
  const heading = getHeading(text);
  const { delimiter, column } = heading ?? { delimiter: ",", column: 0 };
  const rows = getRows(text, delimiter);
  const cells = (heading === undefined ? rows : rows.slice(1)).map((row) => row[column]?.trim() ?? "");
  return [...new Set(cells.filter((cell) => cell !== ""))];
}

const delimiters = [",", ";", "\t"];
const distinctIdHeading = /^(distinct|user)[_ -]?ids?$/i;
const personIdHeading = /^person[_ -]?(ids?|uuids?)$/i;

/** The column of the distinct IDs; only the heading determines the delimiter. */
function getHeading(text: string): { delimiter: string; column: number } | undefined {
  const readings = delimiters.map((delimiter) => {
    const [row = []] = Papa.parse<string[]>(text, { delimiter, newline: "\n", preview: 1 }).data;
    return { delimiter, cells: row.map((cell) => cell.replace(/^ +| +$/g, "")) };
  });
  for (const { delimiter, cells } of readings) {
    const column = cells.findIndex((cell) => distinctIdHeading.test(cell));
    if (column >= 0) return { delimiter, column };
  }
  if (readings.some(({ cells }) => cells.some((cell) => personIdHeading.test(cell)))) {
    const detail = "The file contains person ids. Expected a column `distinct_id`.";
    throw new InvalidFieldError("csv", "invalid_input", detail);
  }
  return undefined;
}

function getRows(text: string, delimiter: string): string[][] {
  const { data, errors } = Papa.parse<string[]>(text, { delimiter, newline: "\n", skipEmptyLines: "greedy" });
  const open = errors.find(({ code }) => code === "MissingQuotes");
  if (open === undefined) return data;
  throw new InvalidFieldError("csv", "invalid_input", `Row ${open.row! + 1} has an unclosed quote.`);
}
