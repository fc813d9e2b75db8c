/**
 * Relative dates such as `-7d`: a time span before now, on the wall clock of the team's time zone.
 *
 * Source: contract, flag-evaluation 12.2.
 */

import { instantOfWallTime, wallTimeAt } from "../time-zone.ts";

export interface RelativeDate {
  amount: number;
  unit: "h" | "d" | "w" | "m" | "y";
}

const pattern = /^-?(\d+)([hdwmy])$/;
const amountEnd = 10_000;
const hourMs = 3_600_000;
const stepMs = { h: hourMs, d: 24 * hourMs, w: 7 * 24 * hourMs };

/** Parses `3d` or `-3d`, which are equivalent. Amounts of 10,000 and more are rejected, like upstream. */
export function parseRelativeDate(text: string): RelativeDate | undefined {
  const found = pattern.exec(text);
  if (found === null) return undefined;
  const amount = Number(found[1]);
  return amount < amountEnd ? { amount, unit: found[2] as RelativeDate["unit"] } : undefined;
}

/** The instant of a relative date, in milliseconds; undefined when the clock skipped that hour. */
export function instantBefore(now: number, date: RelativeDate, timezone: string): number | undefined {
  const wall = wallTimeAt(now, timezone);
  const earlier =
    date.unit === "m" || date.unit === "y"
      ? stepMonths(wall, date.amount, date.unit === "y" ? 12 : 1)
      : wall - date.amount * stepMs[date.unit];
  return instantOfWallTime(earlier, timezone);
}

/**
 * Steps back month by month and clamps the day to the length of each month: two months before 31 March is 29 January in
 * a leap year, because the intermediate date is 29 February.
 */
function stepMonths(wall: number, steps: number, monthsPerStep: number): number {
  const date = new Date(wall);
  let day = date.getUTCDate();
  let month = date.getUTCFullYear() * 12 + date.getUTCMonth();
  for (let i = 0; i < steps; i++) {
    month -= monthsPerStep;
    day = Math.min(day, daysIn(month));
  }
  const timeOfDay = wall - Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
  return dayStart(month, day) + timeOfDay;
}

/** @param month months since year 0, so that January 2024 is 2024 * 12. */
function daysIn(month: number): number {
  return new Date(dayStart(month + 1, 0)).getUTCDate();
}

function dayStart(month: number, day: number): number {
  // Date.UTC reads the years 0 to 99 as 1900 to 1999; setUTCFullYear does not.
  return new Date(0).setUTCFullYear(Math.floor(month / 12), ((month % 12) + 12) % 12, day);
}
