/** Steps of a gradual rollout. Pure. */

const hourMs = 3_600_000;
const stepsMax = 20;

/** Percentages in a text, such as "5, 25, 100": each higher than the one before; undefined if it is not that. */
export function parsePercentages(text: string): number[] | undefined {
  const parts = text.split(/[\s,;%→]+/).filter((part) => part !== "");
  const found = parts.map(Number);
  const isRising = found.every(
    (percentage, index) => percentage > (found[index - 1] ?? 0) && percentage <= 100,
  );
  return found.length > 0 && found.length <= stepsMax && isRising ? found : undefined;
}

/** @param intervalHours between two steps. */
export function getSteps(
  percentages: readonly number[],
  start: Date,
  intervalHours: number,
): { percentage: number; at: Date }[] {
  return percentages.map((percentage, index) => ({
    percentage,
    at: new Date(start.getTime() + index * intervalHours * hourMs),
  }));
}

/** A time as the value of a local time field. */
export function toLocalField(at: string | Date): string {
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
