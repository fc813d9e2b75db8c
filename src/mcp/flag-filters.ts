/**
 * Schema of a flag's `filters` for tools. Every member is named, so that a misspelled one is an error (contract,
 * management-api 8); the API checks the values. Members that PostHog stores without effect on evaluation are accepted:
 * the API itself keeps unknown members, because PostHog clients send back what they read.
 */

import { z } from "zod";

const anyValue = z.unknown().optional();

const property = z.strictObject({
  key: z.union([z.string(), z.number()]).describe("Name of the property, `id` for a cohort, id of a flag"),
  type: anyValue.describe("person (default), group, cohort or flag"),
  operator: anyValue.describe(
    "Operator, for example exact, is_not, icontains, regex, gt, lt, is_set, in, semver_gte",
  ),
  value: anyValue,
  group_type_index: anyValue,
  negation: anyValue,
  cohort_name: anyValue,
  label: anyValue,
  group_key_names: anyValue,
});

const conditionSet = z.strictObject({
  properties: z.array(property).nullish().describe("All must match"),
  rollout_percentage: anyValue.describe("Rollout percentage of matching users, 0 to 100"),
  variant: anyValue.describe("Variant forced for all matching users"),
  aggregation_group_type_index: anyValue.describe("Index of the group type; null or absent: persons"),
  sort_key: anyValue,
  description: anyValue,
  users_affected: anyValue,
});

const variant = z.strictObject({ key: anyValue, name: anyValue, rollout_percentage: anyValue });

export const flagFilters = z
  .strictObject({
    groups: z.array(conditionSet).nullish().describe("Condition sets; the first match applies"),
    multivariate: z
      .strictObject({ variants: z.array(variant).nullish() })
      .nullish()
      .describe("Variants; their percentages sum to 100"),
    payloads: z.record(z.string(), z.unknown()).nullish().describe("JSON by variant key, or under `true`"),
    aggregation_group_type_index: anyValue,
    super_groups: z.array(conditionSet).nullish(),
    holdout_groups: z.array(conditionSet).nullish(),
    holdout: z.strictObject({ id: anyValue, exclusion_percentage: anyValue }).nullish(),
    feature_enrollment: anyValue,
    early_exit: anyValue,
  })
  .describe("Release conditions of the flag. On update, sent members replace the stored ones");
