/** Tells by its beginning how a table is written. Pure. */

import { parseInstant } from "../../lib/timestamp.ts";
import type { CsvForm } from "./csv-rows.ts";

/** Delimiters that are looked for in the header; of two that are there as often, the first. */
const delimiters = [",", "\t", "|", ";", "\x1e", "\x1f"];
const quote = '"';

/** The header alone decides about the delimiter: numbers in rows may have commas of their own. */
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
  return { delimiter, newline, ...writerOf(delimiter, beginning) };
}

/** How the writer handles quotes and backslashes. Source: contract, import 1.4 T3. */
function writerOf(delimiter: string, beginning: string): Pick<CsvForm, "escapes" | "quotes"> {
  if (delimiter === "\t") return { escapes: "all", quotes: arePaired(beginning) ? "paired" : "never" };
  if (delimiter === "|")
    return { escapes: areOfRedshift(beginning) ? "separators" : "none", quotes: "always" };
  return { escapes: areOfMySql(delimiter, beginning) ? "all" : "none", quotes: "always" };
}

/** Whether as many cells of tab-separated text begin with a quote as end with one; not so in text that only has quotes. */
function arePaired(beginning: string): boolean {
  const count = (form: RegExp) => beginning.match(form)?.length ?? 0;
  const [starts, ends] = [count(/(?:^|[\t\n])"/g), count(/"(?=[\t\r\n]|$)/g)];
  return starts >= ends - 1 && starts <= ends + 1;
}

/** Whether every backslash is one that `UNLOAD … ESCAPE` writes, and no quote is without. */
function areOfRedshift(beginning: string): boolean {
  const rest = beginning.replace(/\\(?:[|"'\\\n\r]|N(?=[|\r\n]|$))/g, "");
  return !rest.includes("\\") && !/[^|\n\r]"[^|\n\r]/.test(rest);
}

/** Whether quotes inside of cells stand behind a backslash, and not twice. */
function areOfMySql(delimiter: string, beginning: string): boolean {
  if (!beginning.includes('\\"')) return false;
  let isBackslashed = false;
  const rest = beginning.replace(/\\[\s\S]/g, (pair: string, at: number) => {
    // `"C:\dir\",` ends with a backslash, as it stands.
    const next = beginning[at + 2];
    isBackslashed ||= pair === '\\"' && ![delimiter, "\r", "\n", undefined].includes(next);
    return "\\";
  });
  return isBackslashed && !/[^,;\n\r"]""|""[^,;\n\r"]/.test(rest);
}

/** Columns of Snowplow's enriched events: older versions have fewer. */
const [snowplowMin, snowplowMax] = [108, 131];
const [timeColumn, uuidColumn] = [3, 6];
const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether the first line is an enriched event of Snowplow, whose tables have no header. Source: contract, import 2.10. */
export function isSnowplowLine(line: string): boolean {
  const cells = line.replace(/\r$/, "").split("\t", snowplowMax + 1);
  if (cells.length < snowplowMin || cells.length > snowplowMax) return false;
  return uuidForm.test(cells[uuidColumn]!) && parseInstant(cells[timeColumn]!) !== undefined;
}

/** Its text is written as it is: neither quotes nor backslashes have a meaning. */
export const snowplowForm: CsvForm = { delimiter: "\t", newline: "\n", escapes: "none", quotes: "never" };
