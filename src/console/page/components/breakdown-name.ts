/** Names of breakdown values. */

import { noValue } from "../../../events/insights/breakdown-values.ts";

/** Whether a series is for events without the breakdown's property. */
export const isNone = (value: unknown): boolean => value === noValue || value === null;
