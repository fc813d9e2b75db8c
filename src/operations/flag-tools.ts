/**
 * The tools of MCP for flags. They name a flag by its key, and every member of `filters` is declared, so that a misspelled
 * one is an error (contract, management-api 8); the API checks the values.
 */

import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { ExplainQuery } from "../flags/api/explain-route.ts";
import { FlagQuery } from "../flags/api/flag-query.ts";
import { FlagEditInput, NewFlagInput } from "../flags/api/flag-schemas.ts";
import { keyOfReplaced } from "../flags/rules/key.ts";
import { anyJson, bool, list, nullable, optional, record, string } from "../http/schemas.ts";
import { strictObject } from "../lib/schema.ts";
import type { Members, Operation, ToolForm, ToolTarget } from "./operation.ts";

/**
 * A value that the API checks. Members that PostHog stores without effect on evaluation are accepted: the API itself keeps
 * unknown members, because PostHog clients send back what they read.
 */
const any = (description?: string) => optional(anyJson(description === undefined ? {} : { description }));
const listOf = (items: TSchema, description: string) => optional(nullable(list(items), { description }));

const Property = strictObject({
  key: Type.Union([Type.String(), Type.Number()], {
    description: "Name of the property, `id` for a cohort, id of a flag",
  }),
  type: any("person (default), group, cohort or flag"),
  operator: any("Operator, for example exact, is_not, icontains, regex, gt, lt, is_set, in, semver_gte"),
  value: any(),
  group_type_index: any(),
  negation: any(),
  cohort_name: any(),
  label: any(),
  group_key_names: any(),
});

const ConditionSet = strictObject({
  properties: listOf(Property, "All must match"),
  rollout_percentage: any("Rollout percentage of matching users, 0 to 100"),
  variant: any("Variant forced for all matching users"),
  aggregation_group_type_index: any("Index of the group type; null or absent: persons"),
  sort_key: any(),
  description: any(),
  users_affected: any(),
});

const Variant = strictObject({ key: any(), name: any(), rollout_percentage: any() });

const Filters = Type.Object(
  {
    groups: listOf(ConditionSet, "Condition sets; the first match applies"),
    multivariate: optional(
      nullable(strictObject({ variants: optional(nullable(list(Variant))) }), {
        description: "Variants; their percentages sum to 100",
      }),
    ),
    payloads: optional(nullable(record(), { description: "JSON by variant key, or under `true`" })),
    aggregation_group_type_index: any(),
    super_groups: optional(nullable(list(ConditionSet))),
    holdout_groups: optional(nullable(list(ConditionSet))),
    holdout: optional(nullable(strictObject({ id: any(), exclusion_percentage: any() }))),
    feature_enrollment: any(),
    early_exit: any(),
  },
  {
    additionalProperties: false,
    description: "Release conditions of the flag. On update, sent members replace the stored ones",
  },
);

export const keyArgument = string({ max: 400, description: "The flag's key" });
const key = keyArgument;

/** Fields of a flag that tools write. */
const fieldNames = [
  "name",
  "rollout_percentage",
  "active",
  "tags",
  "ensure_experience_continuity",
  "evaluation_runtime",
  "evaluation_contexts",
];

function pick(from: TProperties, names: readonly string[]): TProperties {
  return Object.fromEntries(names.map((name) => [name, from[name]!]));
}

/** The same for a change, which leaves absent members as they are. */
function pickForChange(names: readonly string[]): TProperties {
  const { properties } = FlagEditInput;
  return Object.fromEntries(
    Object.entries(pick(properties, names)).map(([name, { default: _, ...schema }]) => [
      name,
      schema as TSchema,
    ]),
  );
}

export const listFlagsTool: ToolForm = {
  name: "list_flags",
  description: "List feature flags of a project with their release conditions.",
  arguments: {
    ...pick(FlagQuery.properties, ["search"]),
    active: optional(bool({ description: "Only active or only inactive flags" })),
    // The API reads an empty list as no filter.
    tags: optional(list(Type.String(), { minItems: 1, description: "Only flags with any of these tags" })),
    deleted: optional(bool({ description: "List deleted flags, which restore_flag restores, instead" })),
  },
};

export const explainFlagTool: ToolForm = {
  name: "explain_flag",
  description: "Explain step by step why a flag has its value for a user. Changes nothing.",
  target: { argument: "key", member: "id" },
  arguments: {
    key,
    ...pick(ExplainQuery.properties, ["distinct_id"]),
    person_properties: optional(record({ description: "Override the stored properties" })),
    groups: optional(Type.Record(Type.String(), Type.String(), { description: "Group keys by type" })),
    group_properties: optional(
      Type.Record(Type.String(), record(), { description: "Group properties by type" }),
    ),
    ...pick(ExplainQuery.properties, ["device_id"]),
  },
};

export const createFlagTool: ToolForm = {
  name: "create_flag",
  description: "Create a feature flag. Without rollout_percentage or filters it is off for everyone.",
  arguments: { key, ...pick(NewFlagInput.properties, fieldNames), filters: optional(Filters) },
};

type Among = "flags" | "deleted flags";

/**
 * A flag by its exact key; of deleted flags with that key, the one changed last.
 *
 * @param among where to look, in order @param member that gets the flag's id
 */
export function byKey(
  flags: () => Operation,
  among: (given: Members) => readonly Among[] = () => ["flags"],
  member = "id",
): ToolTarget {
  return {
    argument: "key",
    member,
    lookup: {
      in: flags,
      searches: (given) =>
        among(given).map((each) => ({
          key: given.key,
          order: "-updated_at",
          ...(each === "deleted flags" ? { deleted: true } : {}),
        })),
      // The search ignores letter case.
      matches: ({ id, key: has }: { id: number; key: string }, { key: named }) =>
        has === named || has === keyOfReplaced(named as string, id),
      value: ({ id }: { id: number }) => id,
      missing: (given) =>
        `${among(given)[0] === "flags" ? "Flag" : "Deleted flag"} ${given.key} does not exist.`,
    },
  };
}

/** Tools that change a flag. @param flags the operation that lists them */
export const changeFlagTools = (flags: () => Operation): ToolForm[] => [
  {
    name: "update_flag",
    description: "Update a flag: state, rollout, release conditions, tags or description.",
    hints: { idempotentHint: true },
    target: byKey(flags, ({ deleted }) => (deleted === false ? ["flags", "deleted flags"] : ["flags"])),
    arguments: {
      key,
      ...pickForChange(fieldNames),
      filters: optional(Filters),
      deleted: optional(
        bool({ description: "true deletes the flag, as delete_flag does; false restores it" }),
      ),
      ...pickForChange(["note"]),
    },
  },
  {
    name: "delete_flag",
    description: "Delete a flag; restore_flag restores it.",
    hints: { destructiveHint: true },
    target: byKey(flags),
    arguments: { key },
    fixed: { deleted: true },
  },
  {
    name: "restore_flag",
    description: "Restore a deleted flag, under another key if its own is in use.",
    hints: { destructiveHint: false },
    target: byKey(flags, () => ["deleted flags"]),
    arguments: { key },
    fixed: { deleted: false },
  },
];
