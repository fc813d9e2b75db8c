/** Placeholders for breakdown values, also used by the console's page. */

/** For events without the property. */
export const noValue = "$$_posthog_breakdown_null_$$";

/** For the combined values after the first ones. */
export const otherValues = "$$_posthog_breakdown_other_$$";
