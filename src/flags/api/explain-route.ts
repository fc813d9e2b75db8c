/** Explains a flag's value for a user, over the management API. */

import type { Metadata } from "../../accounts/metadata.ts";
import type { Project } from "../../accounts/project-directory.ts";
import {
  anyJson,
  bool,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  string,
} from "../../http/schemas.ts";
import { InvalidFieldError, NotFoundError } from "../../lib/errors.ts";
import { parseExactJson } from "../../lib/json/exact.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { explainFlag } from "../evaluation-context/explanation.ts";
import { findFlag, findFlagByKey } from "../store/flag.ts";
import type { FlagSets } from "../store/flag-sets.ts";

export interface ExplainDeps {
  metadata: Metadata;
  flagSets: FlagSets;
  persons: PersonReader;
}

const RolloutBody = object({
  percentage: num(),
  hashed: string({ description: "The hashed string." }),
  place: num({ description: "Hash position from 0 to 1; included below percentage / 100." }),
  is_in: bool(),
});

const ConditionBody = object({
  index: int(),
  outcome: string({ description: "A reason code, or `failed`." }),
  identity: nullable(object({ kind: string(), id: string({ blank: true }) })),
  filters: list(
    object({
      type: string({ blank: true }),
      key: nullable(string({ blank: true })),
      operator: string(),
      value: anyJson({ description: "Value of the filter." }),
      found: anyJson({ description: "Value of the property; null if `source` is `missing`." }),
      source: string({
        description: "`stored`, `override`, `request`, `derived`, `cohort`, `flag`, `missing`.",
      }),
      result: string({ description: "`match`, `mismatch`, `error`, `failed`." }),
      note: nullable(string()),
    }),
  ),
  rollout: nullable(RolloutBody),
});

export const ExplanationSchema = named(
  "FlagExplanation",
  object({
    flag_key: string(),
    flag_id: nullable(int()),
    distinct_id: string({ blank: true }),
    person: nullable(object({ uuid: string() }), {
      description: "Null if no person has this distinct id.",
    }),
    status: string({ description: "`evaluated`, or `inactive` for a disabled flag." }),
    value: anyJson({
      description: "The variant, or true or false; null if the evaluation failed.",
    }),
    payload: nullable(string()),
    reason: nullable(
      object({ code: string(), condition_index: nullable(int()), description: string({ blank: true }) }),
    ),
    failed: bool(),
    dependencies: list(object({ id: nullable(int()), key: nullable(string()), value: anyJson() })),
    enrollment: nullable(object({ key: string(), found: anyJson(), is_decisive: bool() })),
    super_condition: nullable(ConditionBody),
    holdouts: list(object({ variant: string(), rollout: RolloutBody })),
    conditions: list(ConditionBody),
    variant: nullable(
      object({
        chosen: nullable(string()),
        is_forced: bool(),
        hashed: string(),
        place: num(),
        shares: list(object({ key: string(), from: num(), below: num() })),
      }),
    ),
  }),
);

export const exampleExplanation = {
  flag_key: "one-click-pay",
  flag_id: 12,
  distinct_id: "user-1",
  person: { uuid: "01a1fb87-7da1-73f7-80e7-91982e7a2fa3" },
  status: "evaluated",
  value: false,
  payload: null,
  reason: { code: "out_of_rollout_bound", condition_index: 0, description: "Out of rollout bound" },
  failed: false,
  dependencies: [],
  enrollment: null,
  super_condition: null,
  holdouts: [],
  conditions: [
    {
      index: 0,
      outcome: "out_of_rollout_bound",
      identity: { kind: "distinct_id", id: "user-1" },
      filters: [
        {
          type: "person",
          key: "plan",
          operator: "exact",
          value: "pro",
          found: "pro",
          source: "stored",
          result: "match",
          note: null,
        },
      ],
      rollout: { percentage: 40, hashed: "one-click-pay.user-1", place: 0.8123, is_in: false },
    },
  ],
  variant: null,
};

const json = (description: string) => optional(string({ description }));

/** The query of `GET /feature_flags/:id/explain`. */
export const ExplainQuery = object({
  distinct_id: string({ description: "Distinct id of the person." }),
  groups: json('Group keys by type as JSON, such as `{"company":"acme"}`.'),
  person_properties: json("Properties that override the stored ones, as a JSON object."),
  group_properties: json("Group properties by type, as a JSON object of objects."),
  device_id: optional(string({ description: "For flags bucketed by device." })),
});

/** @throws {InvalidFieldError} the distinct ID is missing, or a parameter is not a JSON object. */
export function readExplainQuery(query: URLSearchParams) {
  const distinctId = query.get("distinct_id");
  if (distinctId === null || distinctId === "") {
    throw new InvalidFieldError("distinct_id", "required", "This field is required.");
  }
  return {
    distinctId,
    groups: toObject(query, "groups"),
    personProperties: toObject(query, "person_properties"),
    groupProperties: toObject(query, "group_properties"),
    deviceId: query.get("device_id") ?? undefined,
  };
}

/** Explains the flag with this ID or key. @throws {NotFoundError} */
export async function explainNamedFlag(
  { metadata, flagSets, persons }: ExplainDeps,
  project: Project,
  name: string,
  requested: ReturnType<typeof readExplainQuery> & { now: Date },
) {
  const flag = namedFlag(metadata, project.id, name);
  if (flag === undefined || flag.deleted) throw new NotFoundError();
  return await explainFlag(persons, flagSets.get(project.id).set, {
    projectId: project.id,
    timezone: project.timezone,
    flagKey: flag.key,
    ...requested,
  });
}

/** Keys may look like numbers: a number is the ID if such a flag exists, else the key. */
function namedFlag({ db }: Metadata, projectId: number, name: string) {
  const byId = /^\d{1,15}$/.test(name) ? findFlag(db, projectId, Number(name)) : undefined;
  return byId ?? findFlagByKey(db, projectId, name);
}

/** @throws {InvalidFieldError} not a JSON object. */
function toObject(query: URLSearchParams, name: string): JsonObject | undefined {
  const option = query.get(name);
  if (option === null || option === "") return undefined;
  let value: unknown;
  try {
    value = parseExactJson(option);
  } catch {
    throw new InvalidFieldError(name, "invalid_input", `${name} must be valid JSON`);
  }
  if (isJsonObject(value)) return value;
  throw new InvalidFieldError(name, "invalid_input", `${name} must be a JSON object`);
}
