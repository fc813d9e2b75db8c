/** Numbers in flag conditions: JSON numbers and numeric strings. */

import { formatNumber } from "../exact-json.ts";
import type { Json } from "../json.ts";

// Unambiguous alternatives: a long run of digits must not be tried in every split.
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const special = /^([+-]?)(?:(inf|infinity)|nan)$/i;

/**
 * The number of a value, if it is one.
 *
 * Strings are parsed strictly (no spaces, no hexadecimal), but `NaN` and `inf` are numbers, like upstream.
 */
export function toNumber(value: Json | undefined): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") {
    const digits = formatNumber(value);
    return digits === undefined ? undefined : Number(digits);
  }
  if (decimal.test(value)) return Number(value);
  const found = special.exec(value);
  if (found === null) return undefined;
  if (found[2] === undefined) return Number.NaN;
  return found[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
