/** Unsaved flags: explains a draft's value for users, and counts its blast radius. */

import type { Static } from "@sinclair/typebox";
import type { Project } from "../../accounts/project-directory.ts";
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
import type { Json, JsonObject } from "../../lib/json/value.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { checkingAsSaving, explainDraft, explainStored } from "../evaluation-context/draft.ts";
import { parseBlastRadius } from "../rules/blast-radius.ts";
import { getGroups, getGroupType, getVariants } from "../rules/types.ts";
import { findFlag } from "../store/flag.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import type { BlastRadiusCounter } from "./blast-radius.ts";

export type DraftDeps = FlagWriteDeps & {
  flagSets: FlagSets;
  persons: PersonReader;
  personCounter: BlastRadiusCounter;
};

const subjectsMax = 20;
export const exampleFilters = {
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
export const DraftBlastRadius = named(
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

export const DraftInput = object({
  id: optional(nullable(int())),
  key: optional(string({ max: 400 })),
  filters: optional(record()),
  rollout_percentage: optional(nullable(int({ minimum: 0, maximum: 100 }))),
  active: optional(bool()),
  ensure_experience_continuity: optional(nullable(bool())),
  is_remote_configuration: optional(nullable(bool())),
  bucketing_identifier: optional(nullable(string({ max: 400 }))),
  subjects: list(SubjectInput),
});

/** One result per subject. @throws {InvalidFieldError} @throws {InvalidFlagError} the draft cannot be saved */
export async function explainDraftFor(
  deps: Omit<DraftDeps, "personCounter">,
  { project, now }: { project: Project; now: Date },
  body: Static<typeof DraftInput>,
) {
  const { subjects } = body;
  if (subjects.length === 0 || subjects.length > subjectsMax) {
    throw new InvalidFieldError("subjects", "invalid_input", `Send 1 to ${subjectsMax} subjects.`);
  }
  const before =
    body.id === undefined || body.id === null ? undefined : findFlag(deps.metadata.db, project.id, body.id);
  if (before === undefined && typeof body.id === "number") {
    throw new InvalidFieldError("id", "does_not_exist", `Invalid pk "${body.id}" - object does not exist.`);
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
}

export const BlastRadiusOfDraft = object({
  filters: record({ description: "Same as in a flag." }),
  key: optional(string({ blank: true, max: 400, description: "Flag key, which is part of the hash." })),
});
export const exampleBlastRadiusOfDraft = {
  populations: [{ group_type_index: null, total: 40_000, matching: 13_000, reached: 5_310 }],
  sets: [
    {
      index: 0,
      group_type_index: null,
      total: 40_000,
      matching: 13_000,
      reached: 5_310,
      variant: null,
    },
  ],
  variants: [],
};

/** Sets about persons and about each group type are counted separately: they share no subjects. */
export async function getBlastRadius(
  deps: FlagWriteDeps & { personCounter: BlastRadiusCounter },
  projectId: number,
  sent: JsonObject,
  key: string,
): Promise<Static<typeof DraftBlastRadius>> {
  const filters = checkingAsSaving(deps, projectId)(sent, key);
  const groups = getGroups(filters);
  const getType = (group: JsonObject) => getGroupType(group, filters);
  const populations: Static<typeof DraftBlastRadius>["populations"] = [];
  const sets: Static<typeof DraftBlastRadius>["sets"] = [];
  for (const type of new Set(groups.length === 0 ? [null] : groups.map(getType))) {
    const own = groups
      .map((group, index) => ({ group, index }))
      .filter(({ group }) => getType(group) === type);
    const part = { ...filters, groups: own.map(({ group }) => group as Json) };
    const question = parseBlastRadius({ filters: part, key, group_type_index: type }, (item) => item);
    const {
      total,
      matching,
      reached,
      sets: counted,
    } = await deps.personCounter.blastRadius(projectId, question);
    populations.push({ group_type_index: type, total, matching, reached });
    for (const [position, { group, index }] of own.entries()) {
      const variant = typeof group.variant === "string" ? group.variant : null;
      sets.push({ index, group_type_index: type, total, ...counted[position]!, variant });
    }
  }
  sets.sort((a, b) => a.index - b.index);
  return { populations, sets, variants: countVariants(filters, populations, sets) };
}

function countVariants(
  filters: JsonObject,
  populations: Static<typeof DraftBlastRadius>["populations"],
  sets: Static<typeof DraftBlastRadius>["sets"],
): Static<typeof DraftBlastRadius>["variants"] {
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
