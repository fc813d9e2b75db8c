/** Detects the dialect of a table from its first lines. Pure. */

import { parseInstant } from "../../lib/timestamp.ts";
import type { CsvForm } from "./csv-rows.ts";

/** Candidate delimiters in the header; with equal counts the first one is chosen. */
const delimiters = [",", "\t", "|", ";", "\x1e", "\x1f"];
const quote = '"';

/** Without separators: a header may begin with `#` too. */
const commentForm = /^(?:#[^,;\t|\n]*|[ \t\r]*)(?:\r?\n|$)/;
const ruledCommentForm = /^(?:#.*|[ \t\r]*)(?:\r?\n|$)/;

/** The length of comments before a table: lines that begin with `#`, as in reports of GA4, and blank ones. */
export function commentLength(text: string): number {
  if (!text.startsWith("#")) return 0;
  const form = /^# ?-{3}/.test(text) ? ruledCommentForm : commentForm;
  let length = 0;
  for (let rest = text; rest !== ""; rest = text.slice(length)) {
    const line = form.exec(rest)?.[0] ?? "";
    if (line === "") break;
    length += line.length;
  }
  return length;
}

/** Only the header decides about the delimiter: numbers in rows may contain commas. */
export function getCsvForm(beginning: string): CsvForm {
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
  return { delimiter, newline, ...getWriter(delimiter, beginning) };
}

/** The writer's rules for quotes and backslashes. Source: contract, import 1.4 T3. */
function getWriter(delimiter: string, beginning: string): Pick<CsvForm, "escapes" | "quotes"> {
  if (delimiter === "\t") return { escapes: "all", quotes: arePaired(beginning) ? "paired" : "never" };
  if (delimiter === "|")
    return { escapes: areOfRedshift(beginning) ? "separators" : "none", quotes: "always" };
  return { escapes: areOfMySql(delimiter, beginning) ? "all" : "none", quotes: "always" };
}

/**
 * Whether equally many cells of tab-separated text begin and end with a quote; not so in text that merely contains
 * quotes.
 */
function arePaired(beginning: string): boolean {
  const count = (form: RegExp) => beginning.match(form)?.length ?? 0;
  const starts = count(/(?:^|[\t\n])"/g);
  const ends = count(/"(?=[\t\r\n]|$)/g);
  return starts >= ends - 1 && starts <= ends + 1;
}

/** Whether every backslash is one that `UNLOAD … ESCAPE` writes, and every quote has one. */
function areOfRedshift(beginning: string): boolean {
  const rest = beginning.replace(/\\(?:[|"'\\\n\r]|N(?=[|\r\n]|$))/g, "");
  return !rest.includes("\\") && !/[^|\n\r]"[^|\n\r]/.test(rest);
}

/** Whether quotes inside of cells are escaped by a backslash instead of doubled. */
function areOfMySql(delimiter: string, beginning: string): boolean {
  if (!beginning.includes('\\"')) return false;
  let isBackslashed = false;
  const rest = beginning.replace(/\\[\s\S]/g, (pair: string, at: number) => {
    // `"C:\dir\",` ends with a literal backslash.
    const next = beginning[at + 2];
    isBackslashed ||= pair === '\\"' && ![delimiter, "\r", "\n", undefined].includes(next);
    return "\\";
  });
  return isBackslashed && !/[^,;\n\r"]""|""[^,;\n\r"]/.test(rest);
}

/** Columns of Snowplow's enriched events: older versions have fewer. */
const snowplowMin = 108;
const snowplowMax = 131;
const timeColumn = 3;
const uuidColumn = 6;
const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Whether the first line is an enriched event of Snowplow, whose tables have no header. Source: contract, import 2.10.
 */
export function isSnowplowLine(line: string): boolean {
  const cells = line.replace(/\r$/, "").split("\t", snowplowMax + 1);
  if (cells.length < snowplowMin || cells.length > snowplowMax) return false;
  return uuidForm.test(cells[uuidColumn]!) && parseInstant(cells[timeColumn]!) !== undefined;
}

/** Its text is literal: neither quotes nor backslashes have a meaning. */
export const snowplowForm: CsvForm = { delimiter: "\t", newline: "\n", escapes: "none", quotes: "never" };
