/** Unsaved flags: explains a draft's value for users, and counts its blast radius. */

import type { Static } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import { unavailable } from "../../http/error-mapping.ts";
import type { Route } from "../../http/route.ts";
import {
  bool,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  record,
  string,
} from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { checkingAsSaving, explainDraft, explainStored } from "../evaluation-context/draft.ts";
import { parseBlastRadius } from "../rules/blast-radius.ts";
import { getGroups, getGroupType, getVariants } from "../rules/types.ts";
import { findFlag } from "../store/flag.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import type { BlastRadiusCounter } from "./blast-radius.ts";
import { ExplanationSchema, exampleExplanation } from "./explain-route.ts";

export type DraftDeps = FlagWriteDeps & {
  flagSets: FlagSets;
  persons: PersonReader;
  personCounter: BlastRadiusCounter;
};

const subjectsMax = 20;
const exampleFilters = {
  groups: [
    {
      properties: [{ key: "plan", type: "person", operator: "exact", value: "pro" }],
      rollout_percentage: 40,
    },
  ],
};

const SubjectInput = object({
  distinct_id: string({ max: 400 }),
  groups: optional(record({ description: "Group keys by type." })),
  person_properties: optional(record({ description: "Override the stored properties." })),
  group_properties: optional(record({ description: "Group properties by type." })),
  device_id: optional(string({ max: 400 })),
});

const Population = object({
  group_type_index: nullable(int(), { description: "Null: persons." }),
  total: int(),
  matching: int({ description: "Match at least one condition set." }),
  reached: int({ description: "Match at least one condition set within its rollout." }),
});
const BlastRadiusResponse = named(
  "FlagReach",
  object({
    populations: list(Population, {
      description: "Persons and each group type used by condition sets.",
    }),
    sets: list(
      object({
        index: int(),
        group_type_index: nullable(int()),
        total: int(),
        matching: int({ description: "Number matching its conditions." }),
        reached: int({ description: "Number also within its rollout." }),
        variant: nullable(string(), { description: "Variant forced by the condition set." }),
      }),
    ),
    variants: list(
      object({
        key: string(),
        rollout_percentage: num(),
        reached: int({
          description: "Expected by percentages; forced users count for the forced variant.",
        }),
      }),
    ),
  }),
);

/** `POST /feature_flags/explain` and `POST /feature_flags/reach`. */
export function flagDraftRoutes(deps: DraftDeps): Route[] {
  return [
    projectRoute("POST", "/feature_flags/explain", "feature_flag:read", {
      summary: "Explain a flag draft for persons",
      description:
        "Validated like a save, without storing. With `id` the draft is based on that flag: omitted fields are as saved, and `saved` has its current value. Up to 20 subjects.",
      tag: "Flag evaluation",
      body: object({
        id: optional(nullable(int())),
        key: optional(string({ max: 400 })),
        filters: optional(record()),
        rollout_percentage: optional(nullable(int({ minimum: 0, maximum: 100 }))),
        active: optional(bool()),
        ensure_experience_continuity: optional(nullable(bool())),
        is_remote_configuration: optional(nullable(bool())),
        bucketing_identifier: optional(nullable(string({ max: 400 }))),
        subjects: list(SubjectInput),
      }),
      bodyExample: { key: "one-click-pay", filters: exampleFilters, subjects: [{ distinct_id: "user-1" }] },
      answers: {
        200: {
          description: "One result per subject, in request order.",
          schema: object({
            results: list(object({ draft: ExplanationSchema, saved: nullable(ExplanationSchema) })),
          }),
          example: { results: [{ draft: exampleExplanation, saved: null }] },
        },
        404: { description: "The flag does not exist." },
      },
      handle: async ({ body, project, now }) => {
        const { subjects } = body;
        if (subjects.length === 0 || subjects.length > subjectsMax) {
          throw new InvalidFieldError("subjects", "invalid_input", `Send 1 to ${subjectsMax} subjects.`);
        }
        const before =
          body.id === undefined || body.id === null
            ? undefined
            : findFlag(deps.metadata.db, project.id, body.id);
        if (before === undefined && typeof body.id === "number") {
          throw new InvalidFieldError(
            "id",
            "does_not_exist",
            `Invalid pk "${body.id}" - object does not exist.`,
          );
        }
        const key = body.key ?? before?.key;
        if (key === undefined) throw new InvalidFieldError("key", "required", "This field is required.");
        const questions = subjects.map((subject) => ({
          projectId: project.id,
          timezone: project.timezone,
          distinctId: subject.distinct_id,
          groups: subject.groups as JsonObject | undefined,
          personProperties: subject.person_properties as JsonObject | undefined,
          groupProperties: subject.group_properties as JsonObject | undefined,
          deviceId: subject.device_id,
          now,
        }));
        const fields = {
          key,
          filters: body.filters as JsonObject | undefined,
          rolloutPercentage: body.rollout_percentage ?? undefined,
          active: body.active,
          ensureExperienceContinuity: body.ensure_experience_continuity ?? undefined,
          isRemoteConfiguration: body.is_remote_configuration ?? undefined,
          bucketingIdentifier: body.bucketing_identifier ?? undefined,
        };
        const drafts = await explainDraft(deps, { projectId: project.id, before, fields }, questions);
        const saved = before && (await explainStored(deps, before, questions));
        return { results: drafts.map((draft, index) => ({ draft, saved: saved?.[index] ?? null })) };
      },
    }),
    projectRoute("POST", "/feature_flags/reach", "feature_flag:read", {
      summary: "Compute the blast radius",
      description:
        "For each condition set of `filters` and in total, with rollouts and variant distribution. Changes nothing. Validated like a save.",
      tag: "Feature flags",
      body: object({
        filters: record({ description: "Same as in a flag." }),
        key: optional(string({ blank: true, max: 400, description: "Flag key, which is part of the hash." })),
      }),
      bodyExample: { key: "one-click-pay", filters: exampleFilters },
      answers: {
        200: {
          description: "The counts.",
          schema: BlastRadiusResponse,
          example: {
            populations: [{ group_type_index: null, total: 40_000, matching: 13_000, reached: 5_310 }],
            sets: [
              ...[
                {
                  index: 0,
                  group_type_index: null,
                  total: 40_000,
                  matching: 13_000,
                  reached: 5_310,
                  variant: null,
                },
              ],
            ],
            variants: [],
          },
        },
        ...unavailable,
      },
      handle: async ({ body, project }) =>
        await getExtent(deps, project.id, body.filters as JsonObject, body.key ?? ""),
    }),
  ];
}

/** Sets about persons and about each group type are counted separately: they share no subjects. */
async function getExtent(
  deps: DraftDeps,
  projectId: number,
  sent: JsonObject,
  key: string,
): Promise<Static<typeof BlastRadiusResponse>> {
  const filters = checkingAsSaving(deps, projectId)(sent, key);
  const groups = getGroups(filters);
  const typeOf = (group: JsonObject) => getGroupType(group, filters);
  const populations: Static<typeof BlastRadiusResponse>["populations"] = [];
  const sets: Static<typeof BlastRadiusResponse>["sets"] = [];
  for (const type of new Set(groups.length === 0 ? [null] : groups.map(typeOf))) {
    const own = groups
      .map((group, index) => ({ group, index }))
      .filter(({ group }) => typeOf(group) === type);
    const part = { ...filters, groups: own.map(({ group }) => group as Json) };
    const question = parseBlastRadius({ filters: part, key, group_type_index: type }, (one) => one);
    const { total, matching, reached, sets: counted } = await deps.personCounter.reach(projectId, question);
    populations.push({ group_type_index: type, total, matching, reached });
    for (const [position, { group, index }] of own.entries()) {
      const variant = typeof group.variant === "string" ? group.variant : null;
      sets.push({ index, group_type_index: type, total, ...counted[position]!, variant });
    }
  }
  sets.sort((one, other) => one.index - other.index);
  return { populations, sets, variants: variantsReached(filters, populations, sets) };
}

function variantsReached(
  filters: JsonObject,
  populations: Static<typeof BlastRadiusResponse>["populations"],
  sets: Static<typeof BlastRadiusResponse>["sets"],
): Static<typeof BlastRadiusResponse>["variants"] {
  const variants = getVariants(filters);
  let free = populations.reduce((sum, { reached }) => sum + reached, 0);
  const forced = new Map<string, number>();
  for (const { variant, reached } of sets) {
    if (variant === null || !variants.some(({ key }) => key === variant)) continue;
    const own = Math.min(reached, free);
    forced.set(variant, (forced.get(variant) ?? 0) + own);
    free -= own;
  }
  return variants.map((variant) => {
    const key = String(variant.key);
    const share = Number(variant.rollout_percentage ?? 0);
    return {
      key,
      rollout_percentage: share,
      reached: (forced.get(key) ?? 0) + Math.round((free * share) / 100),
    };
  });
}
