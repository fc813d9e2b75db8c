/** Reads the distinct ids in a file that is to fill a static cohort. */

import Papa from "papaparse";
import { InvalidField } from "../lib/errors.ts";

/**
 * The distinct ids in a comma-separated file, each once: the column under a heading such as `distinct_id`, with commas,
 * semicolons or tabs between the columns; of a file without one the first cell of each line. Cells are trimmed.
 *
 * @throws {InvalidField} the only ids in it are those of persons, or a quote that is opened is never closed.
 */
export function distinctIdsOfCsv(csv: string): string[] {
  const text = csv
    .replace(/^\uFEFF/, "")
    .replace(/\r\n?/g, "\n")
    .replace(/^\s*\n/, "")
    // As people write it, and no reader of CSV takes it: spaces before a quote that opens a cell.
    .replace(/"[^"]*"|(?<![^,;\t\n]) +(?=")/g, (found) => (found.startsWith(" ") ? "" : found));
  const heading = headingOf(text);
  const { delimiter, column } = heading ?? { delimiter: ",", column: 0 };
  const rows = rowsOf(text, delimiter);
  const cells = (heading === undefined ? rows : rows.slice(1)).map((row) => row[column]?.trim() ?? "");
  return [...new Set(cells.filter((cell) => cell !== ""))];
}

const delimiters = [",", ";", "\t"];
const distinctIdHeading = /^(distinct|user)[_ -]?ids?$/i;
const personIdHeading = /^person[_ -]?(ids?|uuids?)$/i;

/** Where the distinct ids stand, when the first row says it; nothing else decides what stands between the columns. */
function headingOf(text: string): { delimiter: string; column: number } | undefined {
  const readings = delimiters.map((delimiter) => {
    const [row = []] = Papa.parse<string[]>(text, { delimiter, newline: "\n", preview: 1 }).data;
    return { delimiter, cells: row.map((cell) => cell.replace(/^ +| +$/g, "")) };
  });
  for (const { delimiter, cells } of readings) {
    const column = cells.findIndex((cell) => distinctIdHeading.test(cell));
    if (column >= 0) return { delimiter, column };
  }
  if (readings.some(({ cells }) => cells.some((cell) => personIdHeading.test(cell)))) {
    const detail = "The file holds ids of persons; a column `distinct_id` is needed.";
    throw new InvalidField("csv", "invalid_input", detail);
  }
  return undefined;
}

function rowsOf(text: string, delimiter: string): string[][] {
  const { data, errors } = Papa.parse<string[]>(text, { delimiter, newline: "\n", skipEmptyLines: "greedy" });
  const open = errors.find(({ code }) => code === "MissingQuotes");
  if (open === undefined) return data;
  throw new InvalidField(
    "csv",
    "invalid_input",
    `The quote that begins row ${open.row! + 1} is never closed.`,
  );
}
