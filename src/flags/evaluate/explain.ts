/**
 * Why one flag has its value for one request, step by step.
 *
 * The steps come from the evaluation itself, which fills a trace; nothing is computed a second way.
 */

import { clientValue, evaluateFlag } from "./evaluate.ts";
import type { EvaluationRequest, FlagResult, FlagSet, FlagTrace } from "./model.ts";
import { Run } from "./request.ts";
import { type Exclusion, exclusionOf, selectFlags } from "./selection.ts";

export interface Explanation {
  flagKey: string;
  /** What became of the question: only `evaluated` has a result and steps. */
  status: "evaluated" | "unknown_flag" | "inactive" | "left_out";
  /** Which part of the selection left the flag out. */
  leftOutBy: Exclusion | null;
  result: FlagResult | null;
  /** Flags that this one looks at, with their values in this request; null for a value that cannot be computed. */
  dependencies: { id: number | null; key: string | null; value: boolean | string | null }[];
  steps: FlagTrace | null;
}

/** Explains the value of one flag; unknown and inactive flags are answers, not errors. */
export function explain(set: FlagSet, request: EvaluationRequest, flagKey: string): Explanation {
  const flag = set.byKey.get(flagKey);
  const nothing = { flagKey, leftOutBy: null, result: null, dependencies: [], steps: null };
  if (flag === undefined) return { ...nothing, status: "unknown_flag" };
  if (!flag.active) return { ...nothing, status: "inactive" };
  const leftOutBy = exclusionOf(set, flag, request.selection);
  if (leftOutBy !== undefined) return { ...nothing, status: "left_out", leftOutBy };

  const run = new Run(set, request);
  const steps = { enrollment: null, superCondition: null, holdouts: [], conditions: [], variant: null };
  const results = new Map<number, FlagResult>();
  // The flags before this one are computed as always: they are what it may depend on.
  for (const other of selectFlags(set, request.selection)) {
    if (other === flag) {
      const result = evaluateFlag(flag, run, steps);
      const dependencies = [...new Set(flag.dependencies)].map((id) => ({
        id: id ?? null,
        key: id === undefined ? null : (set.byId.get(id)?.key ?? null),
        value: dependencyValue(set, results, id),
      }));
      return { flagKey, status: "evaluated", leftOutBy: null, result, dependencies, steps };
    }
    results.set(other.id, evaluateFlag(other, run));
  }
  return { ...nothing, status: "left_out" };
}

function dependencyValue(
  set: FlagSet,
  results: ReadonlyMap<number, FlagResult>,
  id: number | undefined,
): boolean | string | null {
  if (id === undefined || !set.byId.has(id)) return null;
  if ((set.resolutions.get(id) ?? "ok") !== "ok") return null;
  const result = results.get(id);
  if (result === undefined) return false; // switched off, or left out by the selection
  return result.failed ? null : clientValue(result);
}
