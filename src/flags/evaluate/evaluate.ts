/**
 * Decides the values of flags for one request.
 *
 * Pure: same set and request, same answer. No store, no clock, no randomness. Never throws for bad flag data:
 * what cannot be used does not match, what cannot be computed is reported as failed.
 * Source: contract, flag-evaluation 5 to 14.
 */

import { holdoutPlace, isWithin, variantAt } from "./bucketing.ts";
import { type ConditionOutcome, evaluateCondition, identityOf, matchesAll } from "./conditions.ts";
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
import { Failure, type Reason, type ReasonCode, reasonOf, reasonScores } from "./reasons.ts";
import { Run } from "./request.ts";
import { selectFlags } from "./selection.ts";

/** What came out of one request. */
export class Evaluation {
  private byKey: ReadonlyMap<string, FlagResult> | undefined;

  constructor(
    /** One result per flag, dependencies before dependants. */
    readonly list: readonly FlagResult[],
    /** True when some answer is missing or a guess; clients then keep what they know of the missing ones. */
    readonly errorsWhileComputing: boolean,
  ) {}

  /** The results by flag key, in the same order; made when first asked for, because most answers need the list only. */
  get results(): ReadonlyMap<string, FlagResult> {
    this.byKey ??= new Map(this.list.map((result) => [result.key, result]));
    return this.byKey;
  }
}

/**
 * Computes the selected flags of a set. Inactive flags have no result.
 *
 * @param before what came out, without a failure, for the same set, request and stored properties of the person at
 *               another time: flags that look at no clock, group, list or other flag are not computed again.
 */
export function evaluate(set: FlagSet, request: EvaluationRequest, before?: Evaluation): Evaluation {
  const run = new Run(set, request);
  let errorsWhileComputing = request.hashKeyOverridesFailed === true;
  const results: FlagResult[] = [];
  for (const [place, flag] of selectFlags(set, request.selection).entries()) {
    const known = before?.list[place];
    const result =
      known !== undefined && flag.isRepeatable ? noted(flag, known, run) : evaluateFlag(flag, run);
    if (result.failed || resolutionOf(flag, set) === "cycle") errorsWhileComputing = true;
    results.push(result);
  }
  return new Evaluation(results, errorsWhileComputing);
}

/** The value clients see: the variant, else on or off. */
export function clientValue(result: FlagResult): boolean | string {
  return result.enabled ? (result.variant ?? true) : false;
}

/**
 * Computes one flag and notes its value for the flags that depend on it.
 *
 * The flags it depends on must have been computed in the same run before.
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

/** A result that is not failed, noted for the flags that depend on it. */
function noted(flag: CompiledFlag, result: FlagResult, run: Run): FlagResult {
  if (run.set.hasDependencies) run.values.set(flag.id, clientValue(result));
  return result;
}

/** Most sets have no dependencies at all, and then nothing has to be looked up. */
function resolutionOf(flag: CompiledFlag, set: FlagSet): Resolution | undefined {
  return set.hasDependencies ? set.resolutions.get(flag.id) : "ok";
}

/** The steps in their order; the first one that decides ends it. */
function decide(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | Failure {
  if (resolutionOf(flag, run.set) !== "ok") return off(flag, "missing_dependency", null);
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
  return resultOf(flag, enabled, null, reasonOf("super_condition_value", 0));
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
  const outcome = finishTrace(steps, evaluateCondition(flag, condition, run, steps));
  if (trace && steps) trace.superCondition = steps;
  if (outcome instanceof Failure) return outcome;
  const enabled = outcome.code === "condition_match";
  return resultOf(flag, enabled, null, reasonOf("super_condition_value", 0));
}

function decideByHoldout(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | Failure | undefined {
  if (flag.holdouts.length === 0) return undefined;
  const identity = identityOf(flag, flag.groupTypeIndex, run);
  if (identity === undefined) return undefined;
  const place = holdoutPlace(identity.id);
  for (const { variant, percentage, filters } of flag.holdouts) {
    const isIn = isWithin(percentage, place);
    const hashed = `holdout-${identity.id}`;
    trace?.holdouts.push({ variant, rollout: { percentage: percentage ?? 100, hashed, place, isIn } });
    if (!isIn) continue;
    const isMatching = matchesAll(filters, run);
    if (isMatching instanceof Failure) return isMatching;
    if (isMatching) return resultOf(flag, true, variant, reasonOf("holdout_condition_value", null));
  }
  return undefined;
}

function decideByConditions(flag: CompiledFlag, run: Run, trace?: FlagTrace): FlagResult | Failure {
  // A flag without conditions reports what a flag without matching ones does; upstream says `no_group_type` here.
  let best: ReasonCode = flag.conditions.length === 0 ? "no_condition_match" : "no_group_type";
  let bestIndex: number | null = null;
  let hasSkippedGroups = false;
  for (const condition of flag.conditions) {
    const steps = trace && startTrace(condition);
    const outcome = finishTrace(steps, evaluateCondition(flag, condition, run, steps));
    if (trace && steps) trace.conditions.push(steps);
    if (outcome instanceof Failure) return outcome;
    if (outcome.code === "condition_match") {
      const variant = chooseVariant(flag, condition, outcome.identity, run, trace);
      return resultOf(flag, true, variant, reasonOf("condition_match", condition.index));
    }
    if (outcome.code === "out_of_rollout_bound" && flag.endsAtFirstRolloutMiss) {
      return off(flag, "out_of_rollout_bound", condition.index);
    }
    hasSkippedGroups ||= outcome.code === "no_group_type";
    if (reasonScores[outcome.code] >= reasonScores[best]) {
      best = outcome.code;
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
  const place = run.variantPlace(flag, identity.id);
  const chosen = condition.variant ?? variantAt(place, flag.variants);
  if (trace !== undefined) {
    let below = 0;
    const shares = flag.variants.map(({ key, rolloutPercentage }) => {
      const from = below;
      below += rolloutPercentage / 100;
      return { key, from, below };
    });
    const hashed = `${flag.key}.${identity.id}variant`;
    trace.variant = { chosen, isForced: condition.variant !== null, hashed, place, shares };
  }
  // An empty key, which only imported data has, would read as "off" on the wire.
  return chosen || null;
}

function off(
  flag: CompiledFlag,
  code: ReasonCode,
  conditionIndex: number | null,
  hasSkippedGroups = false,
): FlagResult {
  return resultOf(flag, false, null, reasonOf(code, conditionIndex, hasSkippedGroups));
}

/** More outcomes than this are made anew each time; only an absurd number of conditions and variants comes here. */
const outcomesMax = 200;

/** Results are made once: a flag has few outcomes, and whoever writes answers can keep the text of each. */
function resultOf(flag: CompiledFlag, enabled: boolean, variant: string | null, reason: Reason): FlagResult {
  for (const known of flag.outcomes) {
    if (known.reason === reason && known.variant === variant && known.enabled === enabled) return known;
  }
  const payload = enabled ? (flag.payloads.get(variant ?? "true") ?? null) : null;
  const { id, key, version } = flag;
  const result = Object.freeze({ id, key, version, enabled, variant, reason, payload, failed: false });
  if (flag.outcomes.length < outcomesMax) flag.outcomes.push(result);
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

function finishTrace(trace: ConditionTrace | undefined, outcome: ConditionOutcome): ConditionOutcome {
  if (trace !== undefined) trace.outcome = outcome instanceof Failure ? "failed" : outcome.code;
  return outcome;
}
