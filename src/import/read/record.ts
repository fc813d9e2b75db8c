/** A record as it was read, of whatever shape of file. */

import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { NestedTooDeep, parseJsonText } from "./json-text.ts";
import { problemOf, withoutMarks } from "./text-blocks.ts";

/** The uuid of a copied event stands behind `{"uuid":"`. */
const [uuidAt, uuidLength] = [9, 36];

/** An event that was copied from the bytes of its record, as it is sent. */
export class CopiedEvent {
  constructor(
    /** UTF-8: of this event, and with commas between them of those around it. */
    readonly texts: Buffer,
    readonly start: number,
    readonly end: number,
    private readonly source: Buffer,
    private readonly sourceStart: number,
    private readonly sourceEnd: number,
    /** Members of the record that the event does not carry. */
    readonly notTaken: readonly string[],
  ) {}

  /** In bytes. */
  get length(): number {
    return this.end - this.start;
  }

  get uuid(): string {
    const start = this.start + uuidAt;
    return this.texts.toString("latin1", start, start + uuidLength);
  }

  /** The record as it was written. */
  get record(): string {
    return this.source.toString("utf8", this.sourceStart, this.sourceEnd);
  }
}

/** One record, or why it is none. */
export interface ReadRecord {
  /** Counted from 1; in Parquet and in JSON that is no file of lines the number of the record. */
  line: number;
  /** A usual record has this alone. */
  copied?: CopiedEvent;
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
    return isJsonObject(record) ? { line, record } : { line, problem: "not_an_object", text };
  } catch (error) {
    return { line, problem: error instanceof NestedTooDeep ? "nested_too_deep" : "not_json", text };
  }
}
