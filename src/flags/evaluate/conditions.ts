/**
 * Evaluates one condition set for one request: its subject, filters and rollout.
 *
 * Source: contract, flag-evaluation 7.1, 7.2, 11 and 13.
 */

import type { Json } from "../../lib/json/value.ts";
import type { MatchResult } from "../operators/matchers.ts";
import { isWithin, rolloutPosition } from "./bucketing.ts";
import { isMember } from "./cohorts.ts";
import type {
  CompiledCondition,
  CompiledFilter,
  CompiledFlag,
  ConditionTrace,
  FilterTrace,
  FlagValue,
  Identity,
  RolloutTrace,
} from "./model.ts";
import { Failure, type ReasonCode } from "./reasons.ts";
import type { Run } from "./request.ts";

export type ConditionResult =
  | { code: "condition_match"; identity: Identity }
  | { code: Exclude<ReasonCode, "condition_match"> }
  | Failure;

// Shared, because most conditions of most flags end here.
const noGroupType: ConditionResult = { code: "no_group_type" };
const noMatch: ConditionResult = { code: "no_condition_match" };
const outOfRollout: ConditionResult = { code: "out_of_rollout_bound" };

/** The subject whose ID a flag or a condition hashes; undefined when the request does not name the group or device. */
export function getIdentity(
  flag: CompiledFlag,
  groupTypeIndex: number | null,
  run: Run,
): Identity | undefined {
  return groupTypeIndex === null ? run.personIdentity(flag) : run.groupIdentity(groupTypeIndex);
}

/** Evaluates one condition; records identity, filters and rollout in a trace, if given. */
export function evaluateCondition(
  flag: CompiledFlag,
  condition: CompiledCondition,
  run: Run,
  trace?: ConditionTrace,
): ConditionResult {
  const identity = getIdentity(flag, condition.groupTypeIndex, run);
  if (trace !== undefined) trace.identity = identity ?? null;
  // An unknown group gives no result; an unknown device is never within a rollout.
  if (identity === undefined) return condition.groupTypeIndex === null ? outOfRollout : noGroupType;
  const isMatching = matchesAll(condition.filters, run, trace?.filters);
  const { rolloutPercentage } = condition;
  if (trace !== undefined) trace.rollout = traceRollout(flag, rolloutPercentage, identity);
  if (isMatching instanceof Failure) return isMatching;
  if (!isMatching) return noMatch;
  const isIn =
    rolloutPercentage === null ||
    rolloutPercentage === 100 ||
    isWithin(rolloutPercentage, run.rolloutPosition(flag, identity.id));
  return isIn ? { code: "condition_match", identity } : outOfRollout;
}

/** Whether all filters match. The first one that does not decides the result, including a failure. */
export function matchesAll(
  filters: readonly CompiledFilter[],
  run: Run,
  trace?: FilterTrace[],
): boolean | Failure {
  let result: boolean | Failure = true;
  for (const filter of filters) {
    const match = testFilter(filter, run);
    trace?.push(traceFilter(filter, match, run));
    if (result !== true || match === true) continue;
    result = match instanceof Failure ? match : false;
    if (trace === undefined) break;
  }
  return result;
}

function testFilter(filter: CompiledFilter, run: Run): MatchResult | Failure {
  switch (filter.kind) {
    case "person":
      return run.personResult(filter);
    case "group":
      return filter.test(run.group(filter.groupTypeIndex).get(filter.key), run.clock);
    case "cohort": {
      const { cohort } = filter;
      if (cohort instanceof Failure) return cohort;
      return isMember(cohort, run.set.cohorts, run.cohortSubject) !== filter.isInverted;
    }
    case "flag": {
      const value = flagValue(filter.flagId, run);
      return value instanceof Failure ? value : evaluatesTo(value, filter.wanted);
    }
    case "unusable":
      return "error";
  }
}

function flagValue(flagId: number | undefined, run: Run): FlagValue {
  const value = flagId === undefined ? undefined : run.values.get(flagId);
  if (value instanceof Failure) {
    return new Failure(
      "dependency_not_found_flag",
      `Flag ${flagId}, which this flag depends on, has no value`,
    );
  }
  // Flags that are inactive, or excluded by the request, count as off.
  return value ?? false;
}

function evaluatesTo(value: boolean | string, wanted: Json | undefined): boolean {
  if (wanted === true) return value !== false && value !== "";
  if (wanted === false) return value === false;
  return typeof wanted === "string" && wanted !== "" && value === wanted;
}

function traceRollout(flag: CompiledFlag, percentage: number | null, identity: Identity): RolloutTrace {
  const position = rolloutPosition(flag.key, identity.id);
  return {
    percentage: percentage ?? 100,
    hashed: `${flag.key}.${identity.id}`,
    place: position,
    isIn: isWithin(percentage, position),
  };
}

function traceFilter(filter: CompiledFilter, result: MatchResult | Failure, run: Run): FilterTrace {
  const { written } = filter;
  const common = {
    type: typeof written.type === "string" ? written.type : filter.kind,
    key: typeof written.key === "string" ? written.key : null,
    operator: typeof written.operator === "string" ? written.operator : defaultOperator(filter),
    wanted: written.value ?? null,
    result: getResult(result),
    ...(result instanceof Failure ? { note: result.description } : {}),
  };
  switch (filter.kind) {
    case "person":
      return { ...common, found: run.person.get(filter.key), source: run.person.findSource(filter.key) };
    case "group": {
      const group = run.group(filter.groupTypeIndex);
      return { ...common, found: group.get(filter.key), source: group.findSource(filter.key) };
    }
    case "cohort": {
      const isIn = result instanceof Failure ? undefined : (result === true) !== filter.isInverted;
      const name = filter.cohort instanceof Failure ? undefined : `Cohort “${filter.cohort.name}”`;
      return { ...common, found: isIn, source: "cohort", note: common.note ?? name };
    }
    case "flag": {
      const value = flagValue(filter.flagId, run);
      const key = filter.flagId === undefined ? undefined : run.set.byId.get(filter.flagId)?.key;
      const note = common.note ?? (key === undefined ? "No such flag" : `Flag “${key}”`);
      return { ...common, found: value instanceof Failure ? undefined : value, source: "flag", note };
    }
    case "unusable":
      return {
        ...common,
        found: undefined,
        source: "missing",
        note: "This type of filter has no such operator",
      };
  }
}

function defaultOperator(filter: CompiledFilter): string {
  return filter.kind === "cohort" ? "in" : "exact";
}

function getResult(result: MatchResult | Failure): FilterTrace["result"] {
  if (result instanceof Failure) return "failed";
  if (result === "error") return "error";
  return result ? "match" : "mismatch";
}
