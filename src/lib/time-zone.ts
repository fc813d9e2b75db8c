/**
 * Wall clock times of time zones, from the runtime's zone data.
 *
 * A wall time is represented by the UTC milliseconds since 1970 of the same clock reading.
 */

import { dayMs } from "./time.ts";

interface Zone {
  /** Undefined for names that are not a zone. */
  format: Intl.DateTimeFormat | undefined;
  /** Offsets by minute since 1970, since a call of the format takes 2 µs. */
  offsets: Map<number, number>;
}

const zones = new Map<string, Zone>();
const zonesMax = 1_000;
const offsetsMax = 1_000;
const minuteMs = 60_000;
/** Since 1973, every zone changes its offset at a full minute (Goose Bay at 00:01). */
const wholeMinutesFrom = Date.UTC(1973, 0, 1);
const formatOffset = /GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/;

/** The canonical spelling of an IANA zone name in any letter case; undefined for offsets and unknown names. */
export function zoneName(text: string): string | undefined {
  // The runtime accepts "+02:00" as a zone.
  if (!/^[a-z]/i.test(text)) return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

/** The wall time of a zone at an instant. Unknown zones count as UTC. */
export function wallTimeAt(instantMs: number, timezone: string): number {
  return instantMs + offsetMsAt(instantMs, timezone);
}

/**
 * The instant at which a zone's clock shows a wall time.
 *
 * An ambiguous time, when clocks go back, is the earlier one; a skipped time, when clocks go forward, is undefined.
 * Source: contract, flag-evaluation 12.2.
 */
export function instantOfWallTime(wallMs: number, timezone: string): number | undefined {
  if (isUtc(timezone)) return wallMs;
  // A zone never changes its offset twice within two days, so the two neighboring days give every candidate.
  const before = offsetMsAt(wallMs - dayMs, timezone);
  const after = offsetMsAt(wallMs + dayMs, timezone);
  const candidates = [wallMs - Math.max(before, after), wallMs - Math.min(before, after)];
  return candidates.find((instant) => wallTimeAt(instant, timezone) === wallMs);
}

/** An offset of a zone, and the instant at which it ends. */
export interface OffsetPeriod {
  offsetMs: number;
  untilMs: number;
}

/** The successive offsets of a zone, from one instant (of 1973 or later) to another, which ends the last one. */
export function offsetsBetween(fromMs: number, toMs: number, timezone: string): OffsetPeriod[] {
  const periods: OffsetPeriod[] = [];
  let offsetMs = offsetMsAt(fromMs, timezone);
  // A zone never changes its offset twice within two days.
  for (let at = fromMs; at < toMs; at += dayMs) {
    const next = offsetMsAt(at + dayMs, timezone);
    if (next === offsetMs) continue;
    let before = Math.floor(at / minuteMs);
    let after = Math.ceil((at + dayMs) / minuteMs);
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
  const zone = getZone(timezone);
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
  const found = formatOffset.exec(format.format(instantMs));
  if (found?.[1] === undefined) return 0;
  const seconds = Number(found[2]) * 3600 + Number(found[3]) * 60 + Number(found[4] ?? 0);
  return (found[1] === "-" ? -seconds : seconds) * 1000;
}

function isUtc(timezone: string): boolean {
  return timezone === "UTC" || timezone === "";
}

function getZone(timezone: string): Zone {
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
    return undefined; // not a zone; projects are validated, imported data is not
  }
}
