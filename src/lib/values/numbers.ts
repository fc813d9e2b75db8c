/** Numbers as flag conditions read them: JSON numbers and numeric text. */

import { numberText } from "../exact-json.ts";
import type { Json } from "../json.ts";

// No two parts may claim the same digits: a long run of them must not be tried in every split.
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const special = /^([+-]?)(?:(inf|infinity)|nan)$/i;

/**
 * The number of a value, or undefined when it is none.
 *
 * Text is read strictly (no blanks, no hexadecimal), but `NaN` and `inf` are numbers, as upstream reads them.
 */
export function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") {
    const digits = numberText(value);
    return digits === undefined ? undefined : Number(digits);
  }
  if (decimal.test(value)) return Number(value);
  const found = special.exec(value);
  if (found === null) return undefined;
  if (found[2] === undefined) return Number.NaN;
  return found[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
