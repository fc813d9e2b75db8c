/**
 * Explains a flag's value for a user: runs the evaluation with a trace and stored data, and returns the steps as JSON.
 * Read-only: no override is stored.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { clientValue, evaluateFlag } from "../evaluate/evaluate.ts";
import { planHashKeyOverrides } from "../evaluate/hash-key-overrides.ts";
import type {
  ConditionTrace,
  EvaluationRequest,
  FilterTrace,
  FlagResult,
  FlagSet,
  FlagTrace,
  RolloutTrace,
} from "../evaluate/model.ts";
import { Run } from "../evaluate/request.ts";
import { type Exclusion, getExclusion, selectFlags } from "../evaluate/selection.ts";
import type {
  ExplainedCondition,
  ExplainedFilter,
  ExplainedRollout,
  ExplanationBody,
} from "./explanation-shape.ts";
import { ContextReader } from "./stored-context.ts";

/** The user and the flag; the optional parts are what a client could send. */
export interface ExplainRequest {
  projectId: number;
  /** IANA name. */
  timezone: string;
  flagKey: string;
  distinctId: string;
  groups?: JsonObject;
  personProperties?: JsonObject;
  groupProperties?: JsonObject;
  deviceId?: string;
  now: Date;
}

/** Explains the current value of a flag. An unknown or inactive flag is a result, not an error. */
export async function explainFlag(
  persons: PersonReader,
  set: FlagSet,
  question: ExplainRequest,
): Promise<ExplanationBody> {
  const { projectId, distinctId, groups, personProperties, groupProperties } = question;
  const now = question.now.getTime();
  const subject = { projectId, distinctId, groups, personProperties, groupProperties, now };
  const stored = await new ContextReader(persons).read(set, subject);
  const explanation = explain(
    set,
    {
      distinctId,
      deviceId: question.deviceId,
      groups,
      person: stored.person,
      personPropertyOverrides: personProperties,
      groupProperties: stored.groupProperties,
      groupPropertyOverrides: groupProperties,
      hashKeyOverrides: planHashKeyOverrides(set, stored.overridden, undefined).effective,
      now,
      timezone: question.timezone,
    },
    question.flagKey,
  );
  const person = distinctId === "" ? undefined : await persons.personByDistinctId(projectId, distinctId);
  return {
    ...getBody(explanation),
    flag_id: set.byKey.get(question.flagKey)?.id ?? null,
    distinct_id: distinctId,
    person: person ? { uuid: person.uuid } : null,
  };
}

function getBody({ flagKey, status, result, dependencies, steps }: Explanation) {
  return {
    flag_key: flagKey,
    status,
    value: result === null || result.failed ? null : clientValue(result),
    payload: result?.payload ?? null,
    reason: result && {
      code: result.reason.code,
      condition_index: result.reason.conditionIndex,
      description: result.reason.description,
    },
    failed: result?.failed ?? false,
    dependencies,
    ...getSteps(steps),
  };
}

function getSteps(steps: FlagTrace | null) {
  return {
    enrollment: steps?.enrollment
      ? {
          key: steps.enrollment.key,
          found: steps.enrollment.found ?? null,
          is_decisive: steps.enrollment.isDecisive,
        }
      : null,
    super_condition: steps?.superCondition ? getCondition(steps.superCondition) : null,
    holdouts: (steps?.holdouts ?? []).map(({ variant, rollout }) => ({
      variant,
      rollout: getRollout(rollout),
    })),
    conditions: (steps?.conditions ?? []).map(getCondition),
    variant: steps?.variant
      ? {
          chosen: steps.variant.chosen,
          is_forced: steps.variant.isForced,
          hashed: steps.variant.hashed,
          place: steps.variant.place,
          shares: steps.variant.shares,
        }
      : null,
  };
}

function getCondition({ index, outcome, identity, filters, rollout }: ConditionTrace): ExplainedCondition {
  return {
    index,
    outcome,
    identity: identity && { kind: identity.kind, id: identity.id },
    filters: filters.map(getFilter),
    rollout: rollout && getRollout(rollout),
  };
}

function getFilter({
  type,
  key,
  operator,
  wanted,
  found,
  source,
  result,
  note,
}: FilterTrace): ExplainedFilter {
  return { type, key, operator, value: wanted, found: found ?? null, source, result, note: note ?? null };
}

function getRollout({ percentage, hashed, place, isIn }: RolloutTrace): ExplainedRollout {
  // JSON has no NaN; an invalid percentage includes no user.
  return { percentage: Number.isNaN(percentage) ? 0 : percentage, hashed, place, is_in: isIn };
}

/*
 * Explains the value of one flag for one request, step by step.
 *
 * The steps come from the trace of the evaluation itself; nothing is computed a second way.
 */

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
