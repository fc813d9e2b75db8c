/** Iterations: a survey that asks the same persons again at an interval of days (contract: experiments 1.5). */

import { InvalidFieldError } from "../lib/errors.ts";
import { dayMs } from "../lib/time.ts";

export const iterationsMax = 500;
export const frequencyDaysMax = 3_650;

export interface Iterated {
  startDate: Date | null;
  endDate: Date | null;
  iterationCount: number | null;
  iterationFrequencyDays: number | null;
  currentIteration: number | null;
  currentIterationStartDate: Date | null;
}

/** The iteration at a time, from 1 on; null without iterations. A stopped survey stays in its last one. */
export function iterationAt(
  survey: Iterated,
  now: Date,
): Pick<Iterated, "currentIteration" | "currentIterationStartDate"> {
  const { startDate, endDate, iterationCount: count, iterationFrequencyDays: days } = survey;
  if (startDate === null || !count || !days)
    return { currentIteration: null, currentIterationStartDate: null };
  const elapsed = Math.max(0, (endDate ?? now).getTime() - startDate.getTime());
  const current = Math.min(count, Math.floor(elapsed / (days * dayMs)) + 1);
  const startedAt = new Date(startDate.getTime() + (current - 1) * days * dayMs);
  return { currentIteration: current, currentIterationStartDate: startedAt };
}

/** PostHog's console sends 0 for no iterations. @throws {InvalidFieldError} one without the other */
export function assertIterations({ iterationCount: count, iterationFrequencyDays: days }: Iterated): void {
  if (Boolean(count) === Boolean(days)) return;
  const [field, other] = count
    ? ["iteration_frequency_days", "iteration_count"]
    : ["iteration_count", "iteration_frequency_days"];
  throw new InvalidFieldError(field!, "invalid_input", `\`${other}\` requires \`${field}\`.`);
}
