/** Converts local times of a zone to instants. Pure. Source: contract, import 1.5 Z1. */

const microsPerMinute = 60_000_000;
const microsPerDay = 1_440 * microsPerMinute;
const offsetForm = /^([+-])(\d\d):?(\d\d)$/;
const minutesMax = 14 * 60;
/** Cached offsets, one per quarter of an hour. */
const offsetsMax = 100_000;

/** From a local time to the instant, both in epoch microseconds. */
export type Zone = (localMicros: number) => number;

/** Valid values of `--timezone`, for an error message. */
export const zoneForm = "a name such as Europe/Berlin, or an offset such as +05:30";

/** @returns undefined for an unknown zone. */
export function getZone(text: string): Zone | undefined {
  const offset = offsetForm.exec(text);
  if (offset !== null) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    if (minutes > minutesMax || Number(offset[3]) > 59) return undefined;
    const shift = (offset[1] === "-" ? -minutes : minutes) * microsPerMinute;
    return (localMicros) => localMicros - shift;
  }
  if (!/^[A-Za-z]/.test(text)) return undefined;
  try {
    return namedZone(text);
  } catch {
    return undefined;
  }
}

/** A local time that occurs twice is the first one; a skipped one is shifted by the gap. @throws {RangeError} */
function namedZone(timeZone: string): Zone {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    era: "short",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const known = new Map<number, number>();
  const offsetAt = (micros: number): number => {
    const quarter = Math.floor(micros / (15 * microsPerMinute));
    let offset = known.get(quarter);
    if (offset === undefined) {
      const seconds = quarter * 900;
      offset = (localSeconds(format, seconds) - seconds) * 1_000_000;
      if (known.size >= offsetsMax) known.clear();
      known.set(quarter, offset);
    }
    return offset;
  };
  return (localMicros) => {
    const before = offsetAt(localMicros - microsPerDay);
    const after = offsetAt(localMicros + microsPerDay);
    if (before === after || offsetAt(localMicros - before) === before) return localMicros - before;
    return offsetAt(localMicros - after) === after ? localMicros - after : localMicros - before;
  };
}

function localSeconds(format: Intl.DateTimeFormat, seconds: number): number {
  const parts = new Map(format.formatToParts(seconds * 1_000).map(({ type, value }) => [type, value]));
  const part = (name: Intl.DateTimeFormatPartTypes) => Number(parts.get(name));
  const year = parts.get("era") === "BC" ? 1 - part("year") : part("year");
  const date = new Date(0);
  date.setUTCFullYear(year, part("month") - 1, part("day"));
  date.setUTCHours(part("hour"), part("minute"), part("second"));
  return date.getTime() / 1_000;
}
