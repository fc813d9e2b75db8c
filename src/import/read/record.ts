/** A record of any file type. */

import { NestingTooDeepError } from "../../lib/json/limits.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { parseJsonString } from "./json-text.ts";
import { getProblem, withoutMarks } from "./text-blocks.ts";

/** The UUID of a copied event follows `{"uuid":"`. */
const uuidAt = 9;
const uuidLength = 36;
/** Around the next strings, none of which has an escape, with the quotes before and after. */
const beforeName = '","event":"';
const beforeId = '","distinct_id":"';
const beforeTime = '","timestamp":"';
const quote = 0x22;

/** An event copied from the bytes of its record, as it is sent. */
export class CopiedEvent {
  constructor(
    /** UTF-8: this event and its neighbors, separated by commas. */
    readonly texts: Buffer,
    readonly start: number,
    readonly end: number,
    private readonly source: Buffer,
    private readonly sourceStart: number,
    private readonly sourceEnd: number,
    /** Members of the record that the event does not carry. */
    readonly omitted: readonly string[],
  ) {}

  /** In bytes. */
  get length(): number {
    return this.end - this.start;
  }

  get uuid(): string {
    const start = this.start + uuidAt;
    return this.texts.toString("latin1", start, start + uuidLength);
  }

  /** The distinct ID and the time, which follow UUID and name: `,"event":"…","distinct_id":"…","timestamp":"…"`. */
  get about(): { distinctId: string; timestamp: string } {
    const { texts } = this;
    const nameEnd = texts.indexOf(quote, this.start + uuidAt + uuidLength + beforeName.length);
    const idAt = nameEnd + beforeId.length;
    const idEnd = texts.indexOf(quote, idAt);
    const timeAt = idEnd + beforeTime.length;
    const timeEnd = texts.indexOf(quote, timeAt);
    return {
      distinctId: texts.toString("utf8", idAt, idEnd),
      timestamp: texts.toString("latin1", timeAt, timeEnd),
    };
  }

  /** The record as it was written. */
  get record(): string {
    return this.source.toString("utf8", this.sourceStart, this.sourceEnd);
  }
}

/** One record, or why it is invalid. */
export interface ReadRecord {
  /** From 1; the record number in Parquet and in JSON that is not line-delimited. */
  line: number;
  /** The only member of a typical record. */
  copied?: CopiedEvent;
  record?: JsonObject;
  problem?: string;
  /** The text in place of a record. */
  text?: string;
}

/** A line of JSON as a record. */
export function parsedLine(text: string, line: number): ReadRecord {
  const marked = getProblem(text);
  if (marked !== undefined) return { line, problem: marked, text: withoutMarks(text) };
  try {
    const record = parseJsonString(text);
    return isJsonObject(record) ? { line, record } : { line, problem: "not_an_object", text };
  } catch (error) {
    return { line, problem: error instanceof NestingTooDeepError ? "nested_too_deep" : "not_json", text };
  }
}
