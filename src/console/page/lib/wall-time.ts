/** Instants as wall times: on the axis of a chart, and in fields. */

import { project } from "./session.ts";

/** An instant as the wall clock of the project, for comparison with others. */
export function wallTime(at: string): string {
  const parts = new Intl.DateTimeFormat("sv-SE", {
    timeZone: project.value?.timezone ?? "UTC",
    ...({ year: "numeric", month: "2-digit", day: "2-digit" } as const),
    ...({ hour: "2-digit", minute: "2-digit", second: "2-digit" } as const),
  });
  return parts.format(new Date(at));
}

/** Index of the bucket that contains an instant; -1 before the first. @param buckets starts, as days or wall times */
export function bucketAt(at: string, buckets: readonly string[]): number {
  const time = wallTime(at);
  return buckets.findLastIndex((bucket) => bucket <= time.slice(0, Math.max(10, bucket.length)));
}

/** An instant within a day of the project, such as `2026-03-04`. */
export function withinDay(day: string): string {
  const noon = `${day}T12:00:00Z`;
  // East of +12:00, noon in UTC is the next day.
  return wallTime(noon).startsWith(day) ? noon : `${day}T00:00:00Z`;
}

/** A time as the value of a `datetime-local` field, in the user's time zone. */
export function toLocalField(at: string | Date): string {
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
