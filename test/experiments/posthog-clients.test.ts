/** Plans and flag configuration as PostHog's clients send them. Source: contract, experiments 1.2 and 2.9. */

import { expect, test } from "bun:test";
import { useServer } from "../support/use-server.ts";
import { api, createDraft, post } from "./support.ts";

useServer();

test("parameters configure the flag, as PostHog's clients send them", async () => {
  const { id, feature_flag: flag } = await createDraft({
    parameters: {
      feature_flag_variants: [
        { key: "control", split_percent: 30 },
        { key: "test", split_percent: 70, rollout_percentage: 1 },
      ],
      rollout_percentage: 40,
      feature_flag_payloads: { test: '{"a":1}' },
      ensure_experience_continuity: true,
    },
  });
  expect(flag).toMatchObject({
    ensure_experience_continuity: true,
    filters: {
      groups: [{ properties: [], rollout_percentage: 40 }],
      multivariate: {
        variants: [
          { key: "control", rollout_percentage: 30 },
          { key: "test", rollout_percentage: 70 },
        ],
      },
      payloads: { test: '{"a":1}' },
    },
  });
  const feature_flag_variants = ["control", "test"].map((key) => ({ key, split_percent: 50 }));
  const body = { parameters: { feature_flag_variants } };
  const after = (await api(`/experiments/${id}/`, { method: "PATCH", body })).body;
  expect(after.parameters.feature_flag_variants).toEqual([
    { key: "control", rollout_percentage: 50 },
    { key: "test", rollout_percentage: 50 },
  ]);
  const onGroups = await createDraft({ parameters: { aggregation_group_type_index: 0 } });
  expect(onGroups.feature_flag.filters.aggregation_group_type_index).toBe(0);
});

test("the running time accepts effects in percent and sums as the baseline, as PostHog's clients send them", async () => {
  const plan = async (body: object) =>
    (await post("/experiments/calculate_running_time/", { minimum_detectable_effect: 10, ...body })).body;
  const funnel = { number_of_samples: 1_000, sum: 400, step_counts: [400, 100] };
  for (const body of [{ baseline_value: 0.1 }, { baseline_stats: funnel }])
    expect(await plan({ metric_type: "funnel", exposure_rate_per_day: 500, ...body })).toMatchObject({
      baseline_value: 0.1,
      variance: expect.closeTo(0.09, 12),
      recommended_sample_size: 29498,
      recommended_running_time_days: 59,
    });
  const sums = { number_of_samples: 2_000, sum: 25_000, sum_squares: 450_000 };
  for (const [metric_type, body, variance, size] of [
    ["mean_count", { baseline_value: 4 }, 8, 785],
    ["mean_sum_or_avg", { baseline_value: 50 }, 625, 393],
    ["mean_sum_or_avg", { baseline_stats: { number_of_samples: 2, sum: 100 } }, 625, 393],
    ["mean_count", { baseline_value: 4, variance: 16 }, 16, 1570],
    ["mean_count", { baseline_stats: sums }, (450_000 - 25_000 ** 2 / 2_000) / 1_999, 692],
  ] as const) {
    const found = await plan({ metric_type, ...body });
    expect(found.variance).toBeCloseTo(variance, 6);
    expect({ metric_type, size: found.sample_size_per_variant }).toEqual({ metric_type, size });
  }
  // The example "ratio-delta-control".
  const ratio = {
    number_of_samples: 1_000,
    sum: 52_000,
    sum_squares: 4_100_000,
    denominator_sum: 2_300,
    denominator_sum_squares: 7_900,
    numerator_denominator_sum_product: 165_000,
  };
  for (const metric_type of ["ratio", "retention"]) {
    const found = await plan({ metric_type, baseline_stats: ratio });
    expect(found.baseline_value).toBeCloseTo(22.6087, 4);
    expect(found.variance).toBeCloseTo(128.151, 3);
    expect(await plan({ metric_type, baseline_value: 3 })).toMatchObject({
      code: "invalid_input",
      detail: "Ratio and retention metrics require baseline_stats, or both baseline_value and variance.",
    });
    const { denominator_sum: _, ...others } = ratio;
    expect(await plan({ metric_type, baseline_stats: others })).toMatchObject({ attr: "baseline_stats" });
  }
  const noPersons = { baseline_stats: { number_of_samples: 0, sum: 0 } };
  expect(await plan({ metric_type: "funnel", ...noPersons })).toMatchObject({ attr: "baseline_stats" });
  expect(await plan({ metric_type: "funnel" })).toMatchObject({ code: "required", attr: "baseline_value" });
});

test("the running time is computed from plain values, and impossible ones are rejected", async () => {
  const plan = await post("/experiments/calculate_running_time/", {
    metric_type: "proportion",
    baseline_value: 0.1,
    minimum_detectable_effect: 0.1,
    exposure_rate_per_day: 500,
  });
  expect(plan.body).toMatchObject({
    recommended_sample_size: 29498,
    recommended_running_time_days: 59,
    advice: null,
  });
  for (const bad of [
    { baseline_value: 0, minimum_detectable_effect: 0.1 },
    { baseline_value: 0.9, minimum_detectable_effect: 0.5 },
    { minimum_detectable_effect: 0.1 },
    { baseline_value: 0.1, minimum_detectable_effect: 0 },
    { metric_type: "mean", baseline_value: 3, minimum_detectable_effect: 0.1 },
    { baseline_value: 1e-308, minimum_detectable_effect: 1e-300 },
    { baseline_value: 0.5, minimum_detectable_effect: 1e-12 },
  ])
    expect((await post("/experiments/calculate_running_time/", bad)).status).toBe(400);
});
