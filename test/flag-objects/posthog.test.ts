/** Experiments as PostHog's API returns them. Source: contract, experiments 1.2 and 1.8. */

import { expect, test } from "bun:test";
import { posthogObjects } from "../../src/flag-objects/posthog.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";

const featureFlagVariants = ["control", "test", "blue"].map((key) => ({ key, rollout_percentage: 33 }));

test.each([
  [{ excluded_variants: ["blue"] }, {}, ["blue"]],
  // Of servers that have them in the parameters.
  [{}, { excluded_variants: ["blue"] }, ["blue"]],
  [{ excluded_variants: [] }, { excluded_variants: ["blue"] }, ["blue"]],
  [{ excluded_variants: ["removed", "test"] }, {}, ["test"]],
  [{ excluded_variants: null }, { excluded_variants: "blue" }, []],
])("excluded variants %j with the parameters %j", (members, parameters, expected) => {
  const experiment = {
    name: "Checkout",
    feature_flag_key: "checkout",
    primary_metrics_ordered_uuids: ["b", "a"],
    parameters: { ...parameters, feature_flag_variants: featureFlagVariants, other: 1 },
    ...members,
  } as JsonObject;
  const lists = {
    experiment_holdouts: [],
    experiment_saved_metrics: [],
    experiments: [experiment],
    web_experiments: [],
    early_access_feature: [],
    surveys: [],
  };
  expect(posthogObjects(lists, []).objects.experiments).toMatchObject([
    {
      excluded_variants: expected,
      parameters: { other: 1 },
      primary_metrics_ordered_uuids: ["b", "a"],
    },
  ]);
});
