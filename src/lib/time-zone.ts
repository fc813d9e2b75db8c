/**
 * Wall clocks of time zones, by the zone data built into the runtime.
 *
 * A wall time is written as the milliseconds since 1970 that the same clock face would have in UTC.
 */

import { dayMs } from "./time.ts";

interface Zone {
  /** Undefined for names that are no zone. */
  format: Intl.DateTimeFormat | undefined;
  /** Offsets by minute since 1970, since asking the format takes 2 µs. */
  offsets: Map<number, number>;
}

const zones = new Map<string, Zone>();
const zonesMax = 1_000;
const offsetsMax = 1_000;
const minuteMs = 60_000;
/** From 1973 on, every zone changes its offset at a full minute (Goose Bay at 00:01). */
const wholeMinutesFrom = Date.UTC(1973, 0, 1);
const offsetText = /GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/;

/** The spelling of a zone's IANA name, whatever its letter case; undefined for offsets and for what is no zone. */
export function zoneName(text: string): string | undefined {
  // The runtime takes "+02:00" for a zone.
  if (!/^[a-z]/i.test(text)) return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

/** What the clock on the wall shows at an instant. Unknown zones count as UTC. */
export function wallTimeAt(instantMs: number, timezone: string): number {
  return instantMs + offsetMsAt(instantMs, timezone);
}

/**
 * The instant at which a zone's clock shows a wall time.
 *
 * A time that occurs twice, when clocks go back, is the earlier one; a time that never occurs, when
 * clocks go forward, is undefined. Source: contract, flag-evaluation 12.2.
 */
export function instantOfWallTime(wallMs: number, timezone: string): number | undefined {
  if (isUtc(timezone)) return wallMs;
  // A zone never changes its offset twice within two days, so the two neighbours know every candidate.
  const before = offsetMsAt(wallMs - dayMs, timezone);
  const after = offsetMsAt(wallMs + dayMs, timezone);
  const candidates = [wallMs - Math.max(before, after), wallMs - Math.min(before, after)];
  return candidates.find((instant) => wallTimeAt(instant, timezone) === wallMs);
}

/** One offset of a zone, and the instant from which on it is another one. */
export interface OffsetPeriod {
  offsetMs: number;
  untilMs: number;
}

/** The offsets of a zone one after the other, from one instant (of 1973 or later) to another, which ends the last one. */
export function offsetsBetween(fromMs: number, toMs: number, timezone: string): OffsetPeriod[] {
  const periods: OffsetPeriod[] = [];
  let offsetMs = offsetMsAt(fromMs, timezone);
  // A zone never changes its offset twice within two days.
  for (let at = fromMs; at < toMs; at += dayMs) {
    const next = offsetMsAt(at + dayMs, timezone);
    if (next === offsetMs) continue;
    let [before, after] = [Math.floor(at / minuteMs), Math.ceil((at + dayMs) / minuteMs)];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (offsetMsAt(middle * minuteMs, timezone) === offsetMs) before = middle;
      else after = middle;
    }
    periods.push({ offsetMs, untilMs: after * minuteMs });
    offsetMs = next;
  }
  return [...periods, { offsetMs, untilMs: toMs }];
}

function offsetMsAt(instantMs: number, timezone: string): number {
  if (isUtc(timezone) || !Number.isFinite(instantMs) || Math.abs(instantMs) > 8.64e15) return 0;
  const zone = zoneOf(timezone);
  if (zone.format === undefined) return 0;
  if (instantMs < wholeMinutesFrom) return readOffset(zone.format, instantMs);
  const minute = Math.floor(instantMs / minuteMs);
  const known = zone.offsets.get(minute);
  if (known !== undefined) return known;
  const offset = readOffset(zone.format, instantMs);
  if (zone.offsets.size >= offsetsMax) zone.offsets.clear();
  zone.offsets.set(minute, offset);
  return offset;
}

function readOffset(format: Intl.DateTimeFormat, instantMs: number): number {
  const found = offsetText.exec(format.format(instantMs));
  if (found?.[1] === undefined) return 0;
  const seconds = Number(found[2]) * 3600 + Number(found[3]) * 60 + Number(found[4] ?? 0);
  return (found[1] === "-" ? -seconds : seconds) * 1000;
}

function isUtc(timezone: string): boolean {
  return timezone === "UTC" || timezone === "";
}

function zoneOf(timezone: string): Zone {
  const known = zones.get(timezone);
  if (known !== undefined) return known;
  if (zones.size >= zonesMax) zones.clear();
  const zone = { format: makeFormat(timezone), offsets: new Map<number, number>() };
  zones.set(timezone, zone);
  return zone;
}

function makeFormat(timezone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
  } catch {
    return undefined; // not a zone; projects are validated, imported data may hold anything
  }
}
