/** Detects the file type from the first bytes. Pure. */

import { isUtf8 } from "node:buffer";
import { isJsonObject } from "../../lib/json/value.ts";
import { UnreadableFileError } from "./input.ts";
import { parseJsonString } from "./json-text.ts";
import { commentLength } from "./table-form.ts";

/** Layout of records in a file. */
export type FileType =
  | { kind: "lines" | "csv" | "parquet" }
  /** One or several JSON values over many lines: a list of records, records, or an object with a list as a member. */
  | {
      kind: "document";
      member: string | undefined;
      /** If the list contains rows: names of their cells. */
      columns?: string[];
    };

/** Known unsupported types, by their first bytes. */
const others: readonly (readonly [bytes: string, name: string])[] = [
  ["425a68", "packed with bzip2"],
  ["fd377a585a00", "packed with xz"],
  ["377abcaf271c", "a 7z archive"],
  ["526172211a07", "a RAR archive"],
  ["4f626a01", "an Avro file"],
  ["4f5243", "an ORC file"],
  ["53514c69746520666f726d6174203300", "an SQLite database"],
  ["25504446", "a PDF document"],
  ["d0cf11e0a1b11ae1", "an old Excel file"],
  ["fffe", "text in UTF-16"],
  ["feff", "text in UTF-16"],
];

/** The beginning of a dump: a comment or a statement. */
const sqlForm = new RegExp(
  [
    /^(?:--(?=[\s-])|\/\*)/,
    /^(?:insert\s+into|drop\s+(?:table|database|schema)|create\s+(?:table|database|schema|extension))\s/,
    /^(?:copy\s[^,;\t|]+\sfrom\s|set\s+(?:names\s|\S+\s*(?:=|to\s))|begin(?:\s+transaction)?\s*;|pragma\s|lock\s+tables\s|use\s\S+;)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "i",
);

/** Members that contain lists of records in API responses and requests. */
const listMembers = new Set(["results", "batch", "data", "events"]);
/** An object with one of these is a record, whatever else it contains. */
const recordMembers = new Set(["event", "event_type", "event_name", "distinct_id", "type", "userId"]);

/**
 * @param head the first bytes, or all.
 * @throws {UnreadableFileError} the file cannot contain events.
 */
export function detectFileType(name: string, head: Buffer): FileType {
  if (head.toString("latin1", 0, 4) === "PAR1") return { kind: "parquet" };
  const hex = head.toString("hex", 0, 16);
  const other = others.find(([bytes]) => hex.startsWith(bytes));
  if (other !== undefined) throw new UnreadableFileError(`${name} is ${other[1]}: turn it into text first.`);
  if (head.includes(0) && !isTable(head)) throw new UnreadableFileError(`${name} is no text.`);
  const whole = head
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trimStart();
  const text = whole.slice(commentLength(whole));
  if (sqlForm.test(text))
    throw new UnreadableFileError(`${name} is an SQL dump: export the table as CSV or JSON instead.`);
  if (text.startsWith("<")) throw new UnreadableFileError(`${name} is HTML or XML, not a list of records.`);
  if (/^\[\s*(?:[{\]]|$)/.test(text)) return { kind: "document", member: undefined };
  const lines = text.split("\n", 4).map((line) => line.trim());
  if (text.startsWith("{")) return jsonShape(text, lines);
  if (text.startsWith("[")) return { kind: "lines" };
  // A file that was split may begin in the middle of a line.
  if (lines.slice(1, 3).some((line) => line.startsWith("{"))) return { kind: "lines" };
  return { kind: /[,;\t|]/.test(lines[0]!) ? "csv" : "lines" };
}

/** Whether the first line is a header: the rows of a table may contain NUL bytes. Source: contract, import 1.4 T6. */
function isTable(head: Buffer): boolean {
  const end = head.indexOf("\n");
  const header = head.subarray(0, end === -1 ? 0 : end);
  return !header.includes(0) && isUtf8(header) && /^\uFEFF?["\w$].*[,;\t|]/.test(header.toString("utf8"));
}

function jsonShape(text: string, [first, second]: string[]): FileType {
  const member = listIn(text);
  const isWhole = isJsonObjectText(first!);
  if (member !== undefined) return { kind: "document", member };
  const columns = columnsIn(text);
  if (columns !== undefined) return { kind: "document", member: "results", columns };
  // Formatted JSON: the second line continues the value.
  const goesOn = second !== undefined && /^["}\]]/.test(second);
  return !isWhole && goesOn ? { kind: "document", member: undefined } : { kind: "lines" };
}

function isJsonObjectText(text: string): boolean {
  try {
    return isJsonObject(parseJsonString(text));
  } catch {
    return false;
  }
}

/** The columns of `{"columns":[…],"results":[[…]]}`. */
function columnsIn(text: string): string[] | undefined {
  const [, list] =
    /"columns"\s*:\s*(\[\s*"(?:[^"\\]|\\.)*"(?:\s*,\s*"(?:[^"\\]|\\.)*")*\s*\])/.exec(text) ?? [];
  if (list === undefined || !/"results"\s*:\s*\[\s*\[/.test(text)) return undefined;
  try {
    return parseJsonString(list) as string[];
  } catch {
    return undefined;
  }
}

/** Members of the first object and the start of their values, up to the end of the text. */
const memberForm = /"((?:[^"\\]|\\.)*)"\s*:\s*(\[\s*[{\]]?)?/y;

/** The member of the first object that contains a list of objects, unless the object is a record itself. */
function listIn(text: string): string | undefined {
  let depth = 0;
  let found: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const code = text[at]!;
    if (code === "{" || code === "[") depth += 1;
    else if (code === "}" || code === "]") {
      depth -= 1;
      if (depth <= 0) break;
    } else if (code === '"') {
      memberForm.lastIndex = at;
      const member = depth === 1 ? memberForm.exec(text) : null;
      if (member === null) {
        at = endOfString(text, at);
        continue;
      }
      const [, key, list] = member;
      if (recordMembers.has(key!)) return undefined;
      if (listMembers.has(key!) && list !== undefined && list.length > 1) found ??= key;
      // Continue with the member's value.
      at = endOfString(text, at);
    }
  }
  return found;
}

function endOfString(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next++) {
    if (text[next] === "\\") next += 1;
    else if (text[next] === '"') return next;
  }
  return text.length;
}
