/** A record as it was read, of whatever shape of file. */

import type { JsonObject } from "../../lib/json.ts";
import { isObject, NestedTooDeep, parseJsonText } from "./json-text.ts";
import { problemOf, withoutMarks } from "./text-blocks.ts";

/** One record, or why it is none. */
export interface ReadRecord {
  /** Counted from 1; in Parquet and in JSON that is no file of lines the number of the record. */
  line: number;
  record?: JsonObject;
  problem?: string;
  /** What stands there instead of a record. */
  text?: string;
}

/** A line of JSON as a record. */
export function parsedLine(text: string, line: number): ReadRecord {
  const marked = problemOf(text);
  if (marked !== undefined) return { line, problem: marked, text: withoutMarks(text) };
  try {
    const record = parseJsonText(text);
    return isObject(record) ? { line, record } : { line, problem: "not_an_object", text };
  } catch (error) {
    return { line, problem: error instanceof NestedTooDeep ? "nested_too_deep" : "not_json", text };
  }
}
