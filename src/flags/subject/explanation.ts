/**
 * Why a flag has its value for somebody: asks the evaluation for its steps, with what the stores know, and writes
 * them down as JSON. Changes nothing: no override is stored.
 */

import type { JsonObject } from "../../lib/json.ts";
import type { PeopleDb } from "../../people/open.ts";
import { personByDistinctId } from "../../people/reader.ts";
import { clientValue } from "../evaluate/evaluate.ts";
import { type Explanation, explain } from "../evaluate/explain.ts";
import { planHashKeyOverrides } from "../evaluate/hash-key-overrides.ts";
import type { ConditionTrace, FilterTrace, FlagSet, FlagTrace, RolloutTrace } from "../evaluate/model.ts";
import type {
  ExplainedCondition,
  ExplainedFilter,
  ExplainedRollout,
  ExplanationBody,
} from "./explanation-shape.ts";
import { SubjectReader } from "./stored-subject.ts";

/** Who and which flag; the optional parts are what a client could send along. */
export interface Question {
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

/** Explains the value that one flag has now. A flag that is unknown or switched off is an answer, too. */
export function explainFlag(people: PeopleDb, set: FlagSet, question: Question): ExplanationBody {
  const { projectId, distinctId, groups, personProperties, groupProperties } = question;
  const now = question.now.getTime();
  const subject = { projectId, distinctId, groups, personProperties, groupProperties, now };
  const stored = new SubjectReader(people).read(set, subject);
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
  const person = distinctId === "" ? undefined : personByDistinctId(people, projectId, distinctId);
  return {
    ...bodyOf(explanation),
    flag_id: set.byKey.get(question.flagKey)?.id ?? null,
    distinct_id: distinctId,
    person: person ? { uuid: person.uuid } : null,
  };
}

function bodyOf({ flagKey, status, result, dependencies, steps }: Explanation) {
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
    ...stepsOf(steps),
  };
}

function stepsOf(steps: FlagTrace | null) {
  return {
    enrollment: steps?.enrollment
      ? {
          key: steps.enrollment.key,
          found: steps.enrollment.found ?? null,
          is_decisive: steps.enrollment.isDecisive,
        }
      : null,
    super_condition: steps?.superCondition ? conditionOf(steps.superCondition) : null,
    holdouts: (steps?.holdouts ?? []).map(({ variant, rollout }) => ({
      variant,
      rollout: rolloutOf(rollout),
    })),
    conditions: (steps?.conditions ?? []).map(conditionOf),
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

function conditionOf({ index, outcome, identity, filters, rollout }: ConditionTrace): ExplainedCondition {
  return {
    index,
    outcome,
    identity: identity && { kind: identity.kind, id: identity.id },
    filters: filters.map(filterOf),
    rollout: rollout && rolloutOf(rollout),
  };
}

function filterOf({
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

function rolloutOf({ percentage, hashed, place, isIn }: RolloutTrace): ExplainedRollout {
  // JSON has no NaN; an unusable percentage lets nobody in.
  return { percentage: Number.isNaN(percentage) ? 0 : percentage, hashed, place, is_in: isIn };
}
