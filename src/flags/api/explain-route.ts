/** Why a flag has its value for somebody, over the management API. */

import { projectRoute } from "../../accounts/api/routes.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import type { Route } from "../../http/route.ts";
import { anyJson, bool, int, list, named, nullable, num, object, optional, text } from "../../http/shapes.ts";
import { InvalidField, NotFound } from "../../lib/errors.ts";
import { parseExactJson } from "../../lib/exact-json.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import type { PeopleDb } from "../../people/open.ts";
import { findFlag, findFlagByKey } from "../store/flag.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import { explainFlag } from "../subject/explanation.ts";

export interface ExplainDependencies {
  metadata: Metadata;
  flagSets: FlagSets;
  /** Opened for reading. */
  people: PeopleDb;
}

const RolloutBody = object({
  percentage: num(),
  hashed: text({ description: "The text that was hashed." }),
  place: num({ description: "Its hash from 0 to 1; in the rollout up to percentage / 100." }),
  is_in: bool(),
});

const ConditionBody = object({
  index: int(),
  outcome: text({ description: "A reason code, or `failed`." }),
  identity: nullable(object({ kind: text(), id: text({ blank: true }) })),
  filters: list(
    object({
      type: text({ blank: true }),
      key: nullable(text({ blank: true })),
      operator: text(),
      value: anyJson({ description: "What the filter wants." }),
      found: anyJson({ description: "What the property is; null when `source` is `missing`." }),
      source: text({
        description: "`stored`, `override`, `request`, `derived`, `cohort`, `flag`, `missing`.",
      }),
      result: text({ description: "`match`, `mismatch`, `error`, `failed`." }),
      note: nullable(text()),
    }),
  ),
  rollout: nullable(RolloutBody),
});

export const ExplanationSchema = named(
  "FlagExplanation",
  object({
    flag_key: text(),
    flag_id: nullable(int()),
    distinct_id: text({ blank: true }),
    person: nullable(object({ uuid: text() }), { description: "Null when nobody is stored under this id." }),
    status: text({ description: "`evaluated`, or `inactive` for a flag that is switched off." }),
    value: anyJson({
      description: "The variant, or true or false; null when the flag could not be computed.",
    }),
    payload: nullable(text()),
    reason: nullable(
      object({ code: text(), condition_index: nullable(int()), description: text({ blank: true }) }),
    ),
    failed: bool(),
    dependencies: list(object({ id: nullable(int()), key: nullable(text()), value: anyJson() })),
    enrollment: nullable(object({ key: text(), found: anyJson(), is_decisive: bool() })),
    super_condition: nullable(ConditionBody),
    holdouts: list(object({ variant: text(), rollout: RolloutBody })),
    conditions: list(ConditionBody),
    variant: nullable(
      object({
        chosen: nullable(text()),
        is_forced: bool(),
        hashed: text(),
        place: num(),
        shares: list(object({ key: text(), from: num(), below: num() })),
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

/** `GET /feature_flags/:id/explain`, by id or key. */
export function explainRoutes({ metadata, flagSets, people }: ExplainDependencies): Route[] {
  const json = (description: string) => optional(text({ description }));
  return [
    projectRoute("GET", "/feature_flags/:id/explain", "feature_flag:read", {
      summary: "Explain a flag's value for a person",
      description:
        "By id or key. Says of every condition set which property was compared with what, where the hash falls, and what decided. Changes nothing.",
      tag: "Flag evaluation",
      query: object({
        distinct_id: text({ description: "Whose value is asked for." }),
        groups: json('Group keys by type as JSON, such as `{"company":"acme"}`.'),
        person_properties: json("Properties that count before the stored ones, as a JSON object."),
        group_properties: json("The same for groups: by type, as a JSON object of objects."),
        device_id: optional(text({ description: "For flags that are rolled out by device." })),
      }),
      answers: {
        200: { description: "The steps.", schema: ExplanationSchema, example: exampleExplanation },
        400: { description: "No `distinct_id`, or a parameter that is not a JSON object." },
        404: { description: "No such flag." },
      },
      handle: ({ project, params, query, now }) => {
        const distinctId = query.get("distinct_id");
        if (distinctId === null || distinctId === "") {
          throw new InvalidField("distinct_id", "required", "This field is required.");
        }
        const flag = namedFlag(metadata, project.id, params.id ?? "");
        if (flag === undefined || flag.deleted) throw new NotFound();
        return explainFlag(people, flagSets.of(project.id).set, {
          projectId: project.id,
          timezone: project.timezone,
          flagKey: flag.key,
          distinctId,
          groups: objectOf(query, "groups"),
          personProperties: objectOf(query, "person_properties"),
          groupProperties: objectOf(query, "group_properties"),
          deviceId: query.get("device_id") ?? undefined,
          now,
        });
      },
    }),
  ];
}

/** Keys may look like numbers; the id is meant then, unless there is none such. */
function namedFlag({ db }: Metadata, projectId: number, name: string) {
  const byId = /^\d{1,15}$/.test(name) ? findFlag(db, projectId, Number(name)) : undefined;
  return byId ?? findFlagByKey(db, projectId, name);
}

/** @throws {InvalidField} not a JSON object. */
function objectOf(query: URLSearchParams, name: string): JsonObject | undefined {
  const given = query.get(name);
  if (given === null || given === "") return undefined;
  let value: unknown;
  try {
    value = parseExactJson(given);
  } catch {
    throw new InvalidField(name, "invalid_input", `${name} must be valid JSON`);
  }
  if (isJsonObject(value)) return value;
  throw new InvalidField(name, "invalid_input", `${name} must be a JSON object`);
}
