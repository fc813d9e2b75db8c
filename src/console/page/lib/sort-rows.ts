/** Sorting of result rows by a column. */

import { formatValue } from "./format.ts";

/** Numbers by value, other values by their text; null is last in both directions. */
export function sortRows<Row extends Record<string, unknown>>(
  rows: readonly Row[],
  column: string,
  isDescending: boolean,
): Row[] {
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const a = one[column] ?? null;
    const b = other[column] ?? null;
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * formatValue(a).localeCompare(formatValue(b), "en", { numeric: true });
  });
}
