/** Guardrails: metrics that must not get worse by more than their tolerance. */

import type { Goal } from "./bayesian.ts";
import { sequentialTest } from "./frequentist.ts";
import type { Sample } from "./samples.ts";

/** Level of the always-valid interval of guardrails. */
const guardrailAlpha = 0.01;

export interface GuardrailCheck {
  interval: [number, number];
  isViolated: boolean;
}

/**
 * A guardrail is violated when the interval lies entirely on the bad side of the tolerance.
 *
 * @param tolerance relative: 0.05 allows 5 %
 * @returns undefined without variance or without a relative effect
 */
export function checkGuardrail(
  baseline: Sample,
  variant: Sample,
  goal: Goal,
  tolerance: number,
  alpha = guardrailAlpha,
): GuardrailCheck | undefined {
  const result = sequentialTest(baseline, variant, alpha);
  if (result === undefined || result.difference !== "relative") return undefined;
  const [low, high] = result.interval;
  return { interval: result.interval, isViolated: goal === "increase" ? high < -tolerance : low > tolerance };
}
