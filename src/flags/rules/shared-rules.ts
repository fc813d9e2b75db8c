/** Rules that the console and the CLI need too. No imports: the page loads this file. */

/** Valid characters of a flag's key. */

export const keyCharacters = /^[a-zA-Z0-9_-]+$/;

export const keyCharactersMessage = "letters, digits, - and _";

/** The tag of flags that projects may protect. The console asks for confirmation before it changes them. */
export const criticalTag = "critical";

/** Steps of a gradual rollout. */
export const rolloutStepsMax = 20;

/** Percentages in a text, such as "5, 25, 100": each higher than the one before; undefined if it is not that. */
export function parsePercentages(text: string): number[] | undefined {
  const parts = text.split(/[\s,;%→]+/).filter((part) => part !== "");
  const found = parts.map(Number);
  const isRising = found.every(
    (percentage, index) => percentage > (found[index - 1] ?? 0) && percentage <= 100,
  );
  return found.length > 0 && found.length <= rolloutStepsMax && isRising ? found : undefined;
}

/** The steps with their times, `intervalMs` apart. */
export function getRolloutSteps(
  percentages: readonly number[],
  start: Date,
  intervalMs: number,
): { percentage: number; at: Date }[] {
  return percentages.map((percentage, index) => ({
    percentage,
    at: new Date(start.getTime() + index * intervalMs),
  }));
}
