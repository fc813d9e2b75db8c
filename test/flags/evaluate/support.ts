/** One flag, and what it is for a request. */

import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest, FlagResult } from "../../../src/flags/evaluate/model.ts";
import type { FlagDefinition } from "../../../src/flags/rules/types.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { flag, person, requestFor } from "../make.ts";

export const groupTypes = [
  { index: 0, name: "company" },
  { index: 1, name: "project" },
];

export function getResult(
  filters: JsonObject,
  request: Partial<EvaluationRequest> = {},
  definition: Partial<FlagDefinition> = {},
): FlagResult {
  const set = compileFlagSet([flag(1, "f", filters, definition)], [], groupTypes);
  return evaluate(set, requestFor("user", request)).results.get("f")!;
}

/** Value, reason and condition index of a result. */
export function short({ reason, ...result }: FlagResult): [boolean | string, string, number | null] {
  return [clientValue(result as FlagResult), reason.code, reason.conditionIndex];
}

export const twoVariants: JsonObject = {
  multivariate: {
    variants: [
      { key: "control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ],
  },
};
export const isStaff = person("staff", "exact", "yes");
export const staff = { personPropertyOverrides: { staff: "yes" } };
export const aboutCompany = { aggregation_group_type_index: 0 };
