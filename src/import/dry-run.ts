/** Additional results of a dry run (contract, import 1.8). */

import type { Json, JsonObject } from "../lib/json/value.ts";
import { addName } from "./counts.ts";
import { parseJsonString } from "./read/json-text.ts";

/** Records shown as the events that they would become. */
const shownRecordsMax = 3;

export interface TimeSpan {
  first: string;
  last: string;
}

export interface DryRunFigures {
  /** Rejected records by reason. */
  rejections: Record<string, number>;
  /** The events of the first records. */
  first_events: JsonObject[];
  /** Per format, the earliest and the latest time of its events. */
  time_spans: Record<string, TimeSpan>;
}

/** Collects the contents of the files of a dry run. */
export class DryRunReport {
  readonly figures: DryRunFigures = { rejections: {}, first_events: [], time_spans: {} };
  private shown = 0;
  private last: unknown;

  reject(reason: string): void {
    addName(this.figures.rejections, reason);
  }

  /**
   * Adds an event, in reading order.
   *
   * @param record distinguishes the event's record from the previous one.
   * @param text   JSON of the event.
   */
  add(format: string, record: unknown, text: string): void {
    const event = parseJsonString(text) as JsonObject;
    if (record !== this.last && this.shown < shownRecordsMax + 1) this.shown += 1;
    this.last = record;
    if (this.shown <= shownRecordsMax) this.figures.first_events.push(event);
    this.addTime(format, event.timestamp);
  }

  private addTime(format: string, time: Json | undefined): void {
    const ms = typeof time === "string" ? Date.parse(time) : Number.NaN;
    if (Number.isNaN(ms)) return;
    const at = new Date(ms).toISOString();
    const span = this.figures.time_spans[format];
    if (span === undefined) this.figures.time_spans[format] = { first: at, last: at };
    else if (ms < Date.parse(span.first)) span.first = at;
    else if (ms > Date.parse(span.last)) span.last = at;
  }
}
