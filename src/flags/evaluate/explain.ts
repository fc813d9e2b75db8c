/**
 * Explains the value of one flag for one request, step by step.
 *
 * The steps come from the trace of the evaluation itself; nothing is computed a second way.
 */

import { clientValue, evaluateFlag } from "./evaluate.ts";
import type { EvaluationRequest, FlagResult, FlagSet, FlagTrace } from "./model.ts";
import { Run } from "./request.ts";
import { type Exclusion, getExclusion, selectFlags } from "./selection.ts";

export interface Explanation {
  flagKey: string;
  /** Only `evaluated` has a result and steps. */
  status: "evaluated" | "unknown_flag" | "inactive" | "left_out";
  /** The part of the selection that excluded the flag. */
  leftOutBy: Exclusion | null;
  result: FlagResult | null;
  /** Flags that this one depends on, with their values in this request; null for a value that cannot be computed. */
  dependencies: { id: number | null; key: string | null; value: boolean | string | null }[];
  steps: FlagTrace | null;
}

/** Explains the value of one flag; unknown and inactive flags are results, not errors. */
export function explain(set: FlagSet, request: EvaluationRequest, flagKey: string): Explanation {
  const flag = set.byKey.get(flagKey);
  const nothing = { flagKey, leftOutBy: null, result: null, dependencies: [], steps: null };
  if (flag === undefined) return { ...nothing, status: "unknown_flag" };
  if (!flag.active) return { ...nothing, status: "inactive" };
  const leftOutBy = getExclusion(set, flag, request.selection);
  if (leftOutBy !== undefined) return { ...nothing, status: "left_out", leftOutBy };

  const run = new Run(set, request);
  const steps = { enrollment: null, superCondition: null, holdouts: [], conditions: [], variant: null };
  const results = new Map<number, FlagResult>();
  // The flags before this one are evaluated normally: it may depend on them.
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
  if (result === undefined) return false; // inactive, or excluded by the selection
  return result.failed ? null : clientValue(result);
}
