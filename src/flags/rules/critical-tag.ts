/** The tag of flags that projects may protect. The console asks for confirmation before it changes them. */
export const criticalTag = "critical";
