/** A flag that is still being written: what it would be for somebody, and how many it would reach. */

import type { Static } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import { unavailable } from "../../http/answers.ts";
import type { Route } from "../../http/route.ts";
import {
  bool,
  dictionary,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  text,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import type { PeopleDb } from "../../people/open.ts";
import { parseBlastRadius } from "../rules/blast-radius.ts";
import { groupsOf, groupTypeOf, variantsOf } from "../rules/types.ts";
import { findFlag } from "../store/flag.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import { checkingAsSaving, explainDraft, explainStored } from "../subject/draft.ts";
import { ExplanationSchema, exampleExplanation } from "./explain-route.ts";
import type { ReachCounter } from "./flag-reach.ts";

export type DraftDeps = FlagWriting & { flagSets: FlagSets; people: PeopleDb; personCounter: ReachCounter };

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
  distinct_id: text({ max: 400 }),
  groups: optional(dictionary({ description: "Group keys by type." })),
  person_properties: optional(dictionary({ description: "They count before the stored ones." })),
  group_properties: optional(dictionary({ description: "The same for groups, by type." })),
  device_id: optional(text({ max: 400 })),
});

const Population = object({
  group_type_index: nullable(int(), { description: "Null: persons." }),
  total: int(),
  matching: int({ description: "Match at least one condition set." }),
  reached: int({ description: "Match at least one within its rollout." }),
});
const ReachBody = named(
  "FlagReach",
  object({
    populations: list(Population, {
      description: "Persons, and each type of groups that condition sets are about.",
    }),
    sets: list(
      object({
        index: int(),
        group_type_index: nullable(int()),
        total: int(),
        matching: int({ description: "Match its conditions." }),
        reached: int({ description: "Within its rollout, too." }),
        variant: nullable(text(), { description: "What it forces." }),
      }),
    ),
    variants: list(
      object({
        key: text(),
        rollout_percentage: num(),
        reached: int({
          description: "By the shares, to be expected; who is forced counts for the forced one.",
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
        "Checked as saving would; nothing is stored. With `id` the draft changes that flag: fields that are not sent are as saved, and `saved` tells what it is now. Up to 20 subjects.",
      tag: "Flag evaluation",
      body: object({
        id: optional(nullable(int())),
        key: optional(text({ max: 400 })),
        filters: optional(dictionary()),
        rollout_percentage: optional(nullable(int({ minimum: 0, maximum: 100 }))),
        active: optional(bool()),
        ensure_experience_continuity: optional(nullable(bool())),
        is_remote_configuration: optional(nullable(bool())),
        bucketing_identifier: optional(nullable(text({ max: 400 }))),
        subjects: list(SubjectInput),
      }),
      bodyExample: { key: "one-click-pay", filters: exampleFilters, subjects: [{ distinct_id: "user-1" }] },
      answers: {
        200: {
          description: "One result for each subject, in their order.",
          schema: object({
            results: list(object({ draft: ExplanationSchema, saved: nullable(ExplanationSchema) })),
          }),
          example: { results: [{ draft: exampleExplanation, saved: null }] },
        },
        404: { description: "No flag has this id." },
      },
      handle: ({ body, project, now }) => {
        const { subjects } = body;
        if (subjects.length === 0 || subjects.length > subjectsMax) {
          throw new InvalidField("subjects", "invalid_input", `Send 1 to ${subjectsMax} subjects.`);
        }
        const before =
          body.id === undefined || body.id === null
            ? undefined
            : findFlag(deps.metadata.db, project.id, body.id);
        if (before === undefined && typeof body.id === "number") {
          throw new InvalidField("id", "does_not_exist", `Invalid pk "${body.id}" - object does not exist.`);
        }
        const key = body.key ?? before?.key;
        if (key === undefined) throw new InvalidField("key", "required", "This field is required.");
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
        const drafts = explainDraft(deps, { projectId: project.id, before, fields }, questions);
        const saved = before && explainStored(deps, before, questions);
        return { results: drafts.map((draft, index) => ({ draft, saved: saved?.[index] ?? null })) };
      },
    }),
    projectRoute("POST", "/feature_flags/reach", "feature_flag:read", {
      summary: "Compute the blast radius",
      description:
        "With all condition sets of `filters`: each by itself and all together, rollouts applied, and the split into variants. Changes nothing. Rejects what saving rejects.",
      tag: "Feature flags",
      body: object({
        filters: dictionary({ description: "As in a flag." }),
        key: optional(
          text({ blank: true, max: 400, description: "The flag's key, with which rollouts are hashed." }),
        ),
      }),
      bodyExample: { key: "one-click-pay", filters: exampleFilters },
      answers: {
        200: {
          description: "The counts.",
          schema: ReachBody,
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
        await reachOf(deps, project.id, body.filters as JsonObject, body.key ?? ""),
    }),
  ];
}

/** Sets about persons and about each type of groups are counted apart: nobody is both. */
async function reachOf(
  deps: DraftDeps,
  projectId: number,
  given: JsonObject,
  key: string,
): Promise<Static<typeof ReachBody>> {
  const filters = checkingAsSaving(deps, projectId)(given, key);
  const groups = groupsOf(filters);
  const typeOf = (group: JsonObject) => groupTypeOf(group, filters);
  const populations: Static<typeof ReachBody>["populations"] = [];
  const sets: Static<typeof ReachBody>["sets"] = [];
  for (const type of new Set(groups.length === 0 ? [null] : groups.map(typeOf))) {
    const own = groups
      .map((group, index) => ({ group, index }))
      .filter(({ group }) => typeOf(group) === type);
    const part = { ...filters, groups: own.map(({ group }) => group as Json) };
    const question = parseBlastRadius({ filters: part, key, group_type_index: type }, (one) => one);
    const { total, matching, reached, sets: counted } = await deps.personCounter.reach(projectId, question);
    populations.push({ group_type_index: type, total, matching, reached });
    for (const [place, { group, index }] of own.entries()) {
      const variant = typeof group.variant === "string" ? group.variant : null;
      sets.push({ index, group_type_index: type, total, ...counted[place]!, variant });
    }
  }
  sets.sort((one, other) => one.index - other.index);
  return { populations, sets, variants: variantsReached(filters, populations, sets) };
}

function variantsReached(
  filters: JsonObject,
  populations: Static<typeof ReachBody>["populations"],
  sets: Static<typeof ReachBody>["sets"],
): Static<typeof ReachBody>["variants"] {
  const variants = variantsOf(filters);
  let free = populations.reduce((sum, { reached }) => sum + reached, 0);
  const forced = new Map<string, number>();
  for (const { variant, reached } of sets) {
    if (variant === null || !variants.some(({ key }) => key === variant)) continue;
    const own = Math.min(reached, free);
    forced.set(variant, (forced.get(variant) ?? 0) + own);
    free -= own;
  }
  return variants.map((variant) => {
    const [key, share] = [String(variant.key), Number(variant.rollout_percentage ?? 0)];
    return {
      key,
      rollout_percentage: share,
      reached: (forced.get(key) ?? 0) + Math.round((free * share) / 100),
    };
  });
}
