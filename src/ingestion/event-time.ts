/** Determines the time of an event. Pure. Source: contract, ingestion 7.4; for history, decisions 1 and 2. */

import { isDateOfDigits, isRepresentable, parseInstant, parseNumericTime } from "../lib/timestamp.ts";

const microsPerMillisecond = 1_000;
const hourMicros = 3600 * 1_000_000;
const futureMicrosMax = 23 * hourMicros;
/** A historical time further ahead than this causes a warning. */
const historicalFutureMicros = hourMicros;
/**
 * A slow delivery looks like a clock that is wrong by this much; correcting it would reorder the events of a device.
 */
const skewMicrosMin = 60 * 1_000_000;
/** A numeric send time is valid only after this instant, 2021-01-01. */
const sendTimeEarliestMicros = 1_609_459_200_000_000;

/** An instant in epoch microseconds, and warnings about the client's claims. */
export interface EventTime {
  readonly micros: number;
  readonly warning?:
    | "ignored_invalid_timestamp"
    | "event_timestamp_in_future"
    | "guessed_timestamp"
    | "historical_event_without_timestamp";
}

/**
 * The time of an event of a historical migration: its own, never corrected by the send time of the request, because the
 * clock of the sending computer is not the clock that recorded the event.
 *
 * @param timestamp timestamp of the item, of any type.
 * @param nowMicros when the request arrived; used for an event without a valid time.
 */
export function historicalEventTime(timestamp: unknown, nowMicros: number): EventTime {
  if (timestamp === undefined || timestamp === null) {
    return { micros: nowMicros, warning: "historical_event_without_timestamp" };
  }
  const micros = toTimestamp(timestamp);
  if (micros === undefined || !isRepresentable(micros)) {
    return { micros: nowMicros, warning: "ignored_invalid_timestamp" };
  }
  if (micros > nowMicros + historicalFutureMicros) return { micros, warning: "event_timestamp_in_future" };
  return isDateOfDigits(timestamp) ? { micros, warning: "guessed_timestamp" } : { micros };
}

/**
 * The time of a realtime event.
 *
 * @param timestamp    timestamp of the item, of any type.
 * @param offset       milliseconds between the event and the request, of any type; overrides the timestamp.
 * @param nowMicros    when the request arrived.
 * @param sentAtMicros the client's send time: corrects a client clock that is wrong by more than a minute.
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
  const claimed = toTimestamp(timestamp);
  if (claimed === undefined) return { micros: nowMicros, warning: "ignored_invalid_timestamp" };
  const time = bounded(claimed - clockSkew(sentAtMicros, nowMicros), nowMicros);
  return time.warning === undefined && isDateOfDigits(timestamp)
    ? { ...time, warning: "guessed_timestamp" }
    : time;
}

/**
 * How far a client's clock is ahead, in microseconds; 0 for up to a minute in either direction, so that event times
 * stay unchanged. Source: contract, ingestion 7.4.
 */
export function clockSkew(sentAtMicros: number | undefined, nowMicros: number): number {
  const skew = sentAtMicros === undefined ? 0 : sentAtMicros - nowMicros;
  return Math.abs(skew) > skewMicrosMin ? skew : 0;
}

/**
 * The client's send time.
 *
 * @param claims in order of preference; invalid ones are skipped.
 */
export function sendTime(claims: readonly unknown[]): number | undefined {
  for (const claim of claims) {
    const isNumber =
      typeof claim === "number" || (typeof claim === "string" && /^\d+(?:\.\d+)?$/.test(claim));
    const micros = isDateOfDigits(claim) ? undefined : toTimestamp(claim);
    // A zero or a counter must not count as a clock.
    const earliest = isNumber ? sendTimeEarliestMicros : Number.NEGATIVE_INFINITY;
    if (micros !== undefined && micros >= earliest && isRepresentable(micros)) return micros;
  }
  return undefined;
}

export function isTime(claim: unknown): boolean {
  return toTimestamp(claim) !== undefined;
}

function toTimestamp(claim: unknown): number | undefined {
  if (typeof claim === "string") return parseInstant(claim);
  return typeof claim === "number" ? parseNumericTime(claim) : undefined;
}

function bounded(micros: number, nowMicros: number): EventTime {
  if (micros > nowMicros + futureMicrosMax)
    return { micros: nowMicros, warning: "event_timestamp_in_future" };
  return isRepresentable(micros) ? { micros } : { micros: nowMicros, warning: "ignored_invalid_timestamp" };
}
