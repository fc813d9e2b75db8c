/**
 * Evaluates the flags of one request.
 *
 * Pure: same set and request, same result. No store, no clock, no randomness. Never throws for bad flag data: invalid
 * parts do not match, and flags that cannot be computed are reported as failed. Source: contract, flag-evaluation 5 to
 * 14.
 */

import { holdoutPosition, isWithin, variantAt } from "./bucketing.ts";
import { type ConditionResult, evaluateCondition, getIdentity, matchesAll } from "./conditions.ts";
import type {
  CompiledCondition,
  CompiledFlag,
  ConditionTrace,
  EvaluationRequest,
  FlagResult,
  FlagSet,
  FlagTrace,
  FlagValue,
  Identity,
  Resolution,
} from "./model.ts";
import { Failure, getReason, type Reason, type ReasonCode, reasonScores } from "./reasons.ts";
import { Run } from "./request.ts";
import { selectFlags } from "./selection.ts";

/** The result of one request. */
export class Evaluation {
  private byKey: ReadonlyMap<string, FlagResult> | undefined;

  constructor(
    /** One result per flag, dependencies before dependents. */
    readonly list: readonly FlagResult[],
    /** True when a result is missing or a guess; clients then keep the values they have. */
    readonly errorsWhileComputing: boolean,
  ) {}

  /** The results by flag key, in the same order; created lazily, because most responses need only the list. */
  get results(): ReadonlyMap<string, FlagResult> {
    this.byKey ??= new Map(this.list.map((result) => [result.key, result]));
    return this.byKey;
  }
}

/**
 * Computes the selected flags of a set. Inactive flags have no result.
 *
 * @param before an earlier result without a failure for the same set, request and stored properties of the person:
 *               flags that depend on no clock, group, list or other flag are not computed again.
 */
export function evaluate(set: FlagSet, request: EvaluationRequest, before?: Evaluation): Evaluation {
  const run = new Run(set, request);
  let errorsWhileComputing = request.hashKeyOverridesFailed === true;
  const results: FlagResult[] = [];
  for (const [position, flag] of selectFlags(set, request.selection).entries()) {
    const known = before?.list[position];
    const result =
      known !== undefined && flag.isRepeatable ? noted(flag, known, run) : evaluateFlag(flag, run);
    if (result.failed || getResolution(flag, set) === "cycle") errorsWhileComputing = true;
    results.push(result);
  }
  return new Evaluation(results, errorsWhileComputing);
}

/** The value clients see: the variant, else on or off. */
export function clientValue(result: FlagResult): boolean | string {
  return result.enabled ? (result.variant ?? true) : false;
}

/**
 * Computes one flag and records its value for dependent flags.
 *
 * Its dependencies must have been computed in the same run before.
 */
export function evaluateFlag(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult {
  const decision = decide(flag, run, trace);
  const result = decision instanceof Failure ? failedResult(flag, decision) : decision;
  if (run.set.hasDependencies) {
    const value: FlagValue = decision instanceof Failure ? decision : clientValue(result);
    run.values.set(flag.id, value);
  }
  return result;
}

/** Records a successful result for dependent flags. */
function noted(flag: CompiledFlag, result: FlagResult, run: Run): FlagResult {
  if (run.set.hasDependencies) run.values.set(flag.id, clientValue(result));
  return result;
}

/** Most sets have no dependencies, and need no lookup. */
function getResolution(flag: CompiledFlag, set: FlagSet): Resolution | undefined {
  return set.hasDependencies ? set.resolutions.get(flag.id) : "ok";
}

/** The evaluation steps in order; the first decisive one ends it. */
function decide(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | Failure {
  if (getResolution(flag, run.set) !== "ok") return off(flag, "missing_dependency", null);
  return (
    decideByEnrollment(flag, run, trace) ??
    decideBySuperCondition(flag, run, trace) ??
    decideByHoldout(flag, run, trace) ??
    decideByConditions(flag, run, trace)
  );
}

function decideByEnrollment(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | undefined {
  if (flag.enrollmentKey === null) return undefined;
  const found = run.person.get(flag.enrollmentKey);
  if (trace) trace.enrollment = { key: flag.enrollmentKey, found, isDecisive: found !== undefined };
  if (found === undefined) return undefined;
  const enabled = found === true || found === "true";
  return getResult(flag, enabled, null, getReason("super_condition_value", 0));
}

function decideBySuperCondition(
  flag: CompiledFlag,
  run: Run,
  trace?: FlagTrace,
): FlagResult | Failure | undefined {
  const condition = flag.superCondition;
  if (condition === null) return undefined;
  const isConcerned = condition.filters.some(
    (filter) => filter.kind === "person" && run.person.get(filter.key) !== undefined,
  );
  if (!isConcerned) return undefined;
  const steps = trace && startTrace(condition);
  const result = finishTrace(steps, evaluateCondition(flag, condition, run, steps));
  if (trace && steps) trace.superCondition = steps;
  if (result instanceof Failure) return result;
  const enabled = result.code === "condition_match";
  return getResult(flag, enabled, null, getReason("super_condition_value", 0));
}

function decideByHoldout(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | Failure | undefined {
  if (flag.holdouts.length === 0) return undefined;
  const identity = getIdentity(flag, flag.groupTypeIndex, run);
  if (identity === undefined) return undefined;
  const position = holdoutPosition(identity.id);
  for (const { variant, percentage, filters } of flag.holdouts) {
    const isIn = isWithin(percentage, position);
    const hashed = `holdout-${identity.id}`;
    trace?.holdouts.push({
      variant,
      rollout: { percentage: percentage ?? 100, hashed, place: position, isIn },
    });
    if (!isIn) continue;
    const isMatching = matchesAll(filters, run);
    if (isMatching instanceof Failure) return isMatching;
    if (isMatching) return getResult(flag, true, variant, getReason("holdout_condition_value", null));
  }
  return undefined;
}

function decideByConditions(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | Failure {
  // A flag without conditions has the reason of a flag without matching ones; upstream returns `no_group_type` here.
  let best: ReasonCode = flag.conditions.length === 0 ? "no_condition_match" : "no_group_type";
  let bestIndex: number | null = null;
  let hasSkippedGroups = false;
  for (const condition of flag.conditions) {
    const steps = trace && startTrace(condition);
    const result = finishTrace(steps, evaluateCondition(flag, condition, run, steps));
    if (trace && steps) trace.conditions.push(steps);
    if (result instanceof Failure) return result;
    if (result.code === "condition_match") {
      const variant = chooseVariant(flag, condition, result.identity, run, trace);
      return getResult(flag, true, variant, getReason("condition_match", condition.index));
    }
    if (result.code === "out_of_rollout_bound" && flag.endsAtFirstRolloutMiss) {
      return off(flag, "out_of_rollout_bound", condition.index);
    }
    hasSkippedGroups ||= result.code === "no_group_type";
    if (reasonScores[result.code] >= reasonScores[best]) {
      best = result.code;
      bestIndex = condition.index;
    }
  }
  return off(flag, best, bestIndex, hasSkippedGroups);
}

function chooseVariant(
  flag: CompiledFlag,
  condition: CompiledCondition,
  identity: Identity,
  run: Run,
  trace: FlagTrace | undefined,
): string | null {
  if (flag.variants.length === 0) return null;
  if (trace === undefined && condition.variant !== null) return condition.variant;
  const position = run.variantPosition(flag, identity.id);
  const chosen = condition.variant ?? variantAt(position, flag.variants);
  if (trace !== undefined) {
    let below = 0;
    const shares = flag.variants.map(({ key, rolloutPercentage }) => {
      const from = below;
      below += rolloutPercentage / 100;
      return { key, from, below };
    });
    const hashed = `${flag.key}.${identity.id}variant`;
    trace.variant = { chosen, isForced: condition.variant !== null, hashed, place: position, shares };
  }
  // An empty key, which only imported data has, would mean "off" in the response.
  return chosen || null;
}

function off(
  flag: CompiledFlag,
  code: ReasonCode,
  conditionIndex: number | null,
  hasSkippedGroups = false,
): FlagResult {
  return getResult(flag, false, null, getReason(code, conditionIndex, hasSkippedGroups));
}

/** Further outcomes are not cached; only an extreme number of conditions and variants exceeds this. */
const cachedResultsMax = 200;

/** Results are reused: a flag has few outcomes, and response writers can cache the text of each. */
function getResult(flag: CompiledFlag, enabled: boolean, variant: string | null, reason: Reason): FlagResult {
  for (const known of flag.cachedResults) {
    if (known.reason === reason && known.variant === variant && known.enabled === enabled) return known;
  }
  const payload = enabled ? (flag.payloads.get(variant ?? "true") ?? null) : null;
  const { id, key, version } = flag;
  const result = Object.freeze({ id, key, version, enabled, variant, reason, payload, failed: false });
  if (flag.cachedResults.length < cachedResultsMax) flag.cachedResults.push(result);
  return result;
}

function failedResult(flag: CompiledFlag, { code, description }: Failure): FlagResult {
  const reason: Reason = { code, conditionIndex: null, description };
  return {
    id: flag.id,
    key: flag.key,
    version: flag.version,
    enabled: false,
    variant: null,
    reason,
    payload: null,
    failed: true,
  };
}

function startTrace(condition: CompiledCondition): ConditionTrace {
  return {
    index: condition.index,
    identity: null,
    filters: [],
    rollout: null,
    outcome: "no_condition_match",
  };
}

function finishTrace(trace: ConditionTrace | undefined, result: ConditionResult): ConditionResult {
  if (trace !== undefined) trace.outcome = result instanceof Failure ? "failed" : result.code;
  return result;
}
