/**
 * Why a flag has its value for somebody: asks the evaluation for its steps, with what the stores know, and writes
 * them down as JSON. Changes nothing: no override is stored.
 */

import { clientValue } from "../flags/evaluation/evaluate.ts";
import type { Explanation } from "../flags/evaluation/explain.ts";
import { explain } from "../flags/evaluation/explain.ts";
import type { FlagSet } from "../flags/evaluation/flag-set.ts";
import { planHashKeyOverrides } from "../flags/evaluation/hash-key-overrides.ts";
import type { ConditionTrace, FilterTrace, FlagTrace, RolloutTrace } from "../flags/evaluation/trace.ts";
import type { Json, JsonObject } from "../flags/json.ts";
import type { PeopleDb } from "../people/open.ts";
import { personByDistinctId } from "../people/reader.ts";
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

export interface ExplainedRollout extends JsonObject {
  /** 0 to 100. */
  percentage: number;
  /** The text that was hashed. */
  hashed: string;
  /** Its place from 0 to 1. */
  place: number;
  is_in: boolean;
}

export interface ExplainedFilter extends JsonObject {
  type: string;
  key: string | null;
  operator: string;
  /** What the filter wants. */
  value: Json;
  /** What was found; null when nothing was, see `source`. */
  found: Json;
  /** `stored`, `override`, `request`, `geoip`, `derived`, `cohort`, `flag`, or `missing`. */
  source: string;
  /** `match`, `mismatch`, `error` (the two can not be compared) or `failed`. */
  result: string;
  note: string | null;
}

export interface ExplainedCondition extends JsonObject {
  index: number;
  /** A reason code, or `failed`. */
  outcome: string;
  /** Whom the condition is about; null when the request does not name such a group or device. */
  identity: { kind: string; id: string } | null;
  filters: ExplainedFilter[];
  rollout: ExplainedRollout | null;
}

/** The whole explanation, as the API returns it and the command line prints it. */
export interface ExplanationBody extends JsonObject {
  flag_key: string;
  flag_id: number | null;
  distinct_id: string;
  person: { uuid: string } | null;
  /** `evaluated`, `inactive`, `left_out` or `unknown_flag`. */
  status: string;
  /** The variant, or on or off; null when the flag was not computed. */
  value: Json;
  payload: string | null;
  reason: { code: string; condition_index: number | null; description: string } | null;
  failed: boolean;
  dependencies: { id: number | null; key: string | null; value: Json }[];
  enrollment: { key: string; found: Json; is_decisive: boolean } | null;
  super_condition: ExplainedCondition | null;
  holdouts: { variant: string; rollout: ExplainedRollout }[];
  conditions: ExplainedCondition[];
  variant: {
    chosen: string | null;
    is_forced: boolean;
    hashed: string;
    place: number;
    shares: { key: string; from: number; below: number }[];
  } | null;
}

/** Explains the value that one flag has now. A flag that is unknown or switched off is an answer, too. */
export function explainFlag(people: PeopleDb, set: FlagSet, question: Question): ExplanationBody {
  const { projectId, distinctId, groups, personProperties, groupProperties } = question;
  const subject = { projectId, distinctId, groups, personProperties, groupProperties };
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
      now: question.now.getTime(),
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
