/** What an import contained: the time span of its events, and their people. */

import { isoFromMicros } from "../lib/time.ts";
import { parseInstant } from "../lib/timestamp.ts";
import { SpilledCounts } from "./counts.ts";
import type { FinishedEvent } from "./map/to-events.ts";
import type { CopiedEvent } from "./read/record.ts";

/** Epoch microseconds. */
export interface Span {
  first: number;
  last: number;
}

/** Members of a summary. */
export interface ReceiptFigures {
  first_time: string | null;
  last_time: string | null;
  people: number;
}

/** @returns the span of both. */
export function joinSpans(a: Span | undefined, b: Span | undefined): Span | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return { first: Math.min(a.first, b.first), last: Math.max(a.last, b.last) };
}

/** A mapped event, or one that is copied from its record. */
interface ReceiptEvent {
  isGenerated: boolean;
  about?: FinishedEvent["about"] | CopiedEvent["about"] | undefined;
}

export class Receipt implements Disposable {
  private readonly people = new SpilledCounts();
  private span: Span | undefined;

  /** Adds events to the people, not to the span. @returns their span. */
  addEvents(events: readonly ReceiptEvent[]): Span | undefined {
    let span: Span | undefined;
    let first = "";
    let last = "";
    for (const { isGenerated, about } of events) {
      if (isGenerated || about === undefined) continue;
      this.people.add(about.distinctId);
      if ("micros" in about) {
        span = joinSpans(span, { first: about.micros, last: about.micros });
        continue;
      }
      const { timestamp } = about;
      // Few are parsed: UTC times of one form are ordered as strings.
      const isOrdered = timestamp.endsWith("Z") && timestamp.length === first.length;
      if (isOrdered && timestamp >= first && timestamp <= last) continue;
      span = joinSpans(span, toSpan(timestamp));
      if (!timestamp.endsWith("Z")) continue;
      if (!isOrdered || timestamp < first) first = timestamp;
      if (!isOrdered || timestamp > last) last = timestamp;
    }
    return span;
  }

  addSpan(span: Span | undefined): void {
    this.span = joinSpans(this.span, span);
  }

  get figures(): ReceiptFigures {
    const { span, people } = this;
    return {
      first_time: span === undefined ? null : isoFromMicros(span.first),
      last_time: span === undefined ? null : isoFromMicros(span.last),
      people: people.distinct,
    };
  }

  [Symbol.dispose](): void {
    this.people[Symbol.dispose]();
  }
}

function toSpan(timestamp: string): Span | undefined {
  const micros = parseInstant(timestamp);
  return micros === undefined ? undefined : { first: micros, last: micros };
}
