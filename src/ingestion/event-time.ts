/** Decides when an event happened. Pure. Source: contract, ingestion 7.4; for history, decisions 1 and 2. */

import { isDateOfDigits, isRepresentable, parseInstant, parseNumericTime } from "../lib/timestamp.ts";

const microsPerMillisecond = 1_000;
const hourMicros = 3600 * 1_000_000;
const futureMicrosMax = 23 * hourMicros;
/** A time in the history that lies further ahead is said to the sender. */
const historicalFutureMicros = hourMicros;
/** A slow delivery looks like a clock that is wrong by so much; correcting it would reorder the events of a device. */
const skewMicrosMin = 60 * 1_000_000;
/** A send time given as a number is one only after this instant, 2021-01-01. */
const sendTimeEarliestMicros = 1_609_459_200_000_000;

/** An instant in epoch microseconds, and what was wrong with the claims. */
export interface EventTime {
  readonly micros: number;
  readonly warning?:
    | "ignored_invalid_timestamp"
    | "event_timestamp_in_future"
    | "guessed_timestamp"
    | "historical_event_without_timestamp";
}

/**
 * The time of an event of a historical migration: its own, never corrected by what a request says about when it was
 * sent, because the clock of the computer that sends history is not the clock that wrote it.
 *
 * @param timestamp what the item says, of any type.
 * @param nowMicros when the request arrived; the time of an event that has none that can be read.
 */
export function historicalEventTime(timestamp: unknown, nowMicros: number): EventTime {
  if (timestamp === undefined || timestamp === null) {
    return { micros: nowMicros, warning: "historical_event_without_timestamp" };
  }
  const micros = instantOf(timestamp);
  if (micros === undefined || !isRepresentable(micros)) {
    return { micros: nowMicros, warning: "ignored_invalid_timestamp" };
  }
  if (micros > nowMicros + historicalFutureMicros) return { micros, warning: "event_timestamp_in_future" };
  return isDateOfDigits(timestamp) ? { micros, warning: "guessed_timestamp" } : { micros };
}

/**
 * The time of a realtime event.
 *
 * @param timestamp    what the item says, of any type.
 * @param offset       milliseconds between the event and the request, of any type; wins over the timestamp.
 * @param nowMicros    when the request arrived.
 * @param sentAtMicros when the client says it sent the request: corrects a client clock that is wrong by more than a minute.
 */
export function eventTime(
  timestamp: unknown,
  offset: unknown,
  nowMicros: number,
  sentAtMicros: number | undefined,
): EventTime {
  if (typeof offset === "number" && Number.isFinite(offset)) {
    return bounded(nowMicros - Math.trunc(offset) * microsPerMillisecond, nowMicros);
  }
  if (timestamp === undefined || timestamp === null) return { micros: nowMicros };
  const claimed = instantOf(timestamp);
  if (claimed === undefined) return { micros: nowMicros, warning: "ignored_invalid_timestamp" };
  const time = bounded(claimed - clockSkew(sentAtMicros, nowMicros), nowMicros);
  return time.warning === undefined && isDateOfDigits(timestamp)
    ? { ...time, warning: "guessed_timestamp" }
    : time;
}

/**
 * How far a client's clock is ahead, in microseconds; 0 for up to a minute in either direction, so that the times of events
 * stay as they are. Source: contract, ingestion 7.4.
 */
export function clockSkew(sentAtMicros: number | undefined, nowMicros: number): number {
  const skew = sentAtMicros === undefined ? 0 : sentAtMicros - nowMicros;
  return Math.abs(skew) > skewMicrosMin ? skew : 0;
}

/**
 * When the client says it sent the request.
 *
 * @param claims in order of preference; what cannot be read gives way to the next.
 */
export function sendTime(claims: readonly unknown[]): number | undefined {
  for (const claim of claims) {
    const isNumber =
      typeof claim === "number" || (typeof claim === "string" && /^\d+(?:\.\d+)?$/.test(claim));
    const micros = isDateOfDigits(claim) ? undefined : instantOf(claim);
    // A zero or a counter must not be taken for a clock.
    const earliest = isNumber ? sendTimeEarliestMicros : Number.NEGATIVE_INFINITY;
    if (micros !== undefined && micros >= earliest && isRepresentable(micros)) return micros;
  }
  return undefined;
}

/** Whether a claim can be read as a time. */
export function isTime(claim: unknown): boolean {
  return instantOf(claim) !== undefined;
}

function instantOf(claim: unknown): number | undefined {
  if (typeof claim === "string") return parseInstant(claim);
  return typeof claim === "number" ? parseNumericTime(claim) : undefined;
}

function bounded(micros: number, nowMicros: number): EventTime {
  if (micros > nowMicros + futureMicrosMax)
    return { micros: nowMicros, warning: "event_timestamp_in_future" };
  return isRepresentable(micros) ? { micros } : { micros: nowMicros, warning: "ignored_invalid_timestamp" };
}
