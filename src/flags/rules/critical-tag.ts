/** The tag of flags that projects may want to have looked after. The console's page asks before it changes them. */
export const criticalTag = "critical";
