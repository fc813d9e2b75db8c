/** The project in which the rules about filters are tried, and how a rejection is read. */

import { InvalidFlagError } from "../../../src/flags/rules/errors.ts";
import type { FiltersContext } from "../../../src/flags/rules/filters.ts";
import type { CohortDefinition, FlagDefinition } from "../../../src/flags/rules/types.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { cohort, dependsOn, flag, inCohort, person, when } from "../make.ts";

const behavioral = { type: "behavioral", key: "signed up", value: "performed_event" };
const cohorts: CohortDefinition[] = [
  cohort(1, { type: "OR", values: [person("email", "exact", "a@b.c")] }, { name: "Staff" }),
  cohort(2, { type: "OR", values: [{ type: "AND", values: [behavioral] }] }, { name: "Active" }),
  cohort(3, { type: "AND", values: [inCohort(2)] }, { name: "Nested" }),
  cohort(4, { type: "AND", values: [behavioral] }, { name: "Frozen", isStatic: true }),
  cohort(5, { type: "AND", values: [inCohort(2)] }, { name: "Frozen too", isStatic: true }),
];
const flags: FlagDefinition[] = [
  flag(11, "base", when([])),
  flag(12, "off", when([]), { active: false }),
  flag(13, "gone", when([]), { deleted: true }),
  flag(14, "above", when([dependsOn("20")])),
  flag(15, "top", when([dependsOn("14")])),
];

export function context(rest: Partial<FiltersContext> = {}): FiltersContext {
  return {
    flagId: null,
    flagKey: "mine",
    isRemoteConfiguration: false,
    cohorts: { find: (id) => cohorts.find((c) => c.id === id) },
    flags: { find: (id) => flags.find((f) => f.id === id) },
    ...rest,
  };
}

export function rejection(
  act: () => unknown,
): { code: string; detail: string; attr: string | null } | "accepted" {
  try {
    act();
  } catch (error) {
    if (!(error instanceof InvalidFlagError)) throw error;
    return { code: error.code, detail: error.message, attr: error.field };
  }
  return "accepted";
}

export const twoVariants = {
  variants: [
    { key: "control", rollout_percentage: 50 },
    { key: "test", rollout_percentage: 50 },
  ],
};

export function condition(property: JsonObject): JsonObject {
  return when([property]);
}
