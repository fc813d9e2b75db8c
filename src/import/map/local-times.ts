/** Detects that a Mixpanel project recorded local times (contract, import 1.5 Z2). Pure. */

import { formatNumber } from "../../lib/json/exact.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import { toObject } from "./lenient-json.ts";
import { toTime } from "./time.ts";

/** Number of records to compare. */
export const comparedRecordsMax = 1_000;
const minuteMicros = 60_000_000;
const quarterMicros = 15 * minuteMicros;
/** Time zones differ from UTC by at most 14 hours. */
const quartersMax = 14 * 4;
/** An event is processed some time after it happened. */
const delayMicrosMax = 5 * minuteMicros;

export class LocalTimes {
  private seen = 0;
  private compared = 0;
  /** The common difference of all records, in quarters of an hour; null when they disagree. */
  private quarters: number | undefined | null;

  constructor(private readonly nowMicros: number) {}

  /** Compares the time of a record with the UTC times that Mixpanel itself added. */
  add(record: JsonObject | undefined): void {
    if (this.seen >= comparedRecordsMax || this.quarters === null || record === undefined) return;
    this.seen += 1;
    const properties = toObject(record.properties);
    const time = toTime(properties.time, this.nowMicros);
    const reference = toMilliseconds(properties.$mp_api_timestamp_ms ?? properties.mp_processing_time_ms);
    if (typeof time !== "number" || reference === undefined) return;
    this.compared += 1;
    const difference = time - reference * 1_000;
    const quarters = Math.round(difference / quarterMicros);
    const isZone =
      quarters !== 0 &&
      Math.abs(quarters) <= quartersMax &&
      Math.abs(difference - quarters * quarterMicros) <= delayMicrosMax;
    this.quarters = isZone && (this.quarters ?? quarters) === quarters ? quarters : null;
  }

  /** The warning and the number of compared records; undefined when there is nothing to warn about. */
  get warning(): [warning: string, records: number] | undefined {
    if (typeof this.quarters !== "number") return undefined;
    const minutes = Math.abs(this.quarters) * 15;
    const [hours, rest] = [Math.floor(minutes / 60), minutes % 60].map((n) => String(n).padStart(2, "0"));
    return [`mixpanel_local_time ${this.quarters < 0 ? "-" : "+"}${hours}:${rest}`, this.compared];
  }
}

function toMilliseconds(value: Json | undefined): number | undefined {
  const number = Number(formatNumber(value) ?? value ?? Number.NaN);
  return Number.isFinite(number) && number > 0 ? number : undefined;
}
