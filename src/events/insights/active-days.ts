/** How many days the measures `weekly_active` and `monthly_active` count. Also used by the console. */

const measures: Record<string, { days: number; longIntervals: readonly string[] }> = {
  weekly_active: { days: 7, longIntervals: ["week", "month"] },
  monthly_active: { days: 30, longIntervals: ["month"] },
};

/** Whether a measure counts active users. */
export const isActiveUsers = (math: string): boolean => Object.hasOwn(measures, math);

/**
 * How many days a measure of active users counts; undefined for other measures, and for intervals at least as long,
 * whose buckets are counted like unique users, as in PostHog.
 */
export function getActiveDays(math: string, interval: string): number | undefined {
  if (!isActiveUsers(math)) return undefined;
  const { days, longIntervals } = measures[math]!;
  return longIntervals.includes(interval) ? undefined : days;
}
