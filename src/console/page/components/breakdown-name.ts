/** Names of breakdown values. */

import { noValue, otherValues } from "../../../events/insights/breakdown-values.ts";
import { lazyMessages } from "../messages/later.ts";

const w = lazyMessages.explore;

/** Whether a series is for events without the breakdown's property. */
export const isNone = (value: unknown): boolean => value === noValue || value === null;

/** The name of a value, or of the values of several properties. */
export function breakdownName(value: unknown): string {
  if (Array.isArray(value)) {
    return value.every((item) => item === otherValues) ? w.otherValues : value.map(breakdownName).join(" · ");
  }
  if (value === otherValues) return w.otherValues;
  return isNone(value) ? w.noValue : String(value);
}
