/** What a breakdown shows in place of values. The console's page reads answers by it. */

/** Of events that lack the property. */
export const noValue = "$$_posthog_breakdown_null_$$";

/** Of the values behind the first, which are one line together. */
export const otherValues = "$$_posthog_breakdown_other_$$";
