/**
 * `filters` of a flag as tools accept them: every member by name, so that a misspelled one is an error and not stored
 * without effect (contract, management-api 8). The API checks the values.
 *
 * The API itself keeps unknown members, because clients made for PostHog send back what they read; members that PostHog
 * stores without effect on evaluation are therefore accepted here.
 */

import { z } from "zod";

const anyValue = z.unknown().optional();

const property = z.strictObject({
  key: z.union([z.string(), z.number()]).describe("Name of the property, `id` for a cohort, id of a flag"),
  type: anyValue.describe("person (default), group, cohort or flag"),
  operator: anyValue.describe("Such as exact, is_not, icontains, regex, gt, lt, is_set, in, semver_gte"),
  value: anyValue,
  group_type_index: anyValue,
  negation: anyValue,
  cohort_name: anyValue,
  label: anyValue,
  group_key_names: anyValue,
});

const conditionSet = z.strictObject({
  properties: z.array(property).nullish().describe("All must match"),
  rollout_percentage: anyValue.describe("0 to 100 of those who match"),
  variant: anyValue.describe("The variant that all who match get"),
  aggregation_group_type_index: anyValue.describe("The group type that is matched; null or absent: persons"),
  sort_key: anyValue,
  description: anyValue,
  users_affected: anyValue,
});

const variant = z.strictObject({ key: anyValue, name: anyValue, rollout_percentage: anyValue });

export const flagFilters = z
  .strictObject({
    groups: z.array(conditionSet).nullish().describe("Condition sets; the first that matches decides"),
    multivariate: z
      .strictObject({ variants: z.array(variant).nullish() })
      .nullish()
      .describe("Variants, whose percentages sum to 100"),
    payloads: z.record(z.string(), z.unknown()).nullish().describe("JSON by variant key, or under `true`"),
    aggregation_group_type_index: anyValue,
    super_groups: z.array(conditionSet).nullish(),
    holdout_groups: z.array(conditionSet).nullish(),
    holdout: z.strictObject({ id: anyValue, exclusion_percentage: anyValue }).nullish(),
    feature_enrollment: anyValue,
    early_exit: anyValue,
  })
  .describe("Rules of the flag. On update, members that are sent replace the stored ones");
