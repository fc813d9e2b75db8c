/** Results in one sentence. Source: contract, experiments 2. */

import { expect, test } from "bun:test";
import { daysUntilPlanned, getSentence } from "../../src/experiments/sentence.ts";
import type { Experiment } from "../../src/experiments/store.ts";
import { experimentResultOperations } from "../../src/operations/experiment-results.ts";

const row = (more: object) => ({
  key: "test",
  significant: true,
  delta: 0.12,
  difference: "relative",
  validation_failures: [],
  chance_to_win: 0.995,
  credible_interval: [0.03, 0.21],
  model: "normal",
  expected_loss: { baseline: 0.12, variant: 0.0001 },
  ...more,
});
const say = (
  rows: object[],
  { goal = "increase", ...more }: { goal?: string; daysLeft?: number; isBlocked?: boolean } = {},
) =>
  getSentence(
    [
      {
        metric: { goal },
        role: "primary",
        result: { baseline: { key: "control" }, variant_results: rows, holdout: null } as never,
      },
    ],
    { isBlocked: false, ...more },
  );

test.each([
  [
    [row({})],
    {},
    "test is better than control: +12.0 % (3.0 % to 21.0 %). 99.5 % chance; if wrong, expect to lose 0.01 %.",
  ],
  [
    [
      row({
        delta: -0.12,
        chance_to_win: 0.004,
        credible_interval: [-0.21, -0.03],
        expected_loss: { baseline: 0.0002, variant: 0.1 },
      }),
    ],
    {},
    "test is worse than control: -12.0 % (-21.0 % to -3.0 %). 99.6 % chance; if wrong, expect to lose 0.02 %.",
  ],
  [
    [row({ model: "beta", expected_loss: { baseline: 0.09, variant: 0.00199 } })],
    {},
    "test is better than control: +12.0 % (3.0 % to 21.0 %). 99.5 % chance; if wrong, expect to lose 0.20 percentage points.",
  ],
  [
    [
      row({
        chance_to_win: undefined,
        p_value: 0.01,
        p_value_adjusted: 0.02,
        credible_interval: undefined,
        confidence_interval: [0.03, 0.21],
      }),
    ],
    {},
    "test is better than control: +12.0 % (3.0 % to 21.0 %). p = 0.020.",
  ],
  [
    [
      row({
        delta: 5,
        difference: "absolute",
        credible_interval: [1.5, 8.25],
        expected_loss: { baseline: 5, variant: 0.25 },
      }),
    ],
    {},
    "test is better than control: +5.00 (1.50 to 8.25). 99.5 % chance; if wrong, expect to lose 0.250.",
  ],
  [
    // The better one of a goal that decreases has the smaller delta.
    [row({ key: "a", delta: -0.1 }), row({ key: "b", delta: -0.2, credible_interval: [-0.3, -0.1] })],
    { goal: "decrease" },
    "b is better than control: -20.0 % (-30.0 % to -10.0 %). 99.5 % chance; if wrong, expect to lose 0.01 %.",
  ],
  [
    [row({})],
    { isBlocked: true },
    "No verdict: the variants do not have the persons that their percentages promise.",
  ],
  [[row({ significant: false })], { daysLeft: 9 }, "Not yet: in about 9 days at this rate."],
  [
    [row({ significant: null, validation_failures: ["not-enough-exposures"] })],
    {},
    "Not yet: too few persons for a verdict.",
  ],
  [
    [row({ significant: null, validation_failures: ["baseline-mean-is-zero"] })],
    {},
    "Not yet: the value of the baseline is 0, so differences are absolute.",
  ],
  [[row({ significant: false })], {}, "Not yet: no variant differs significantly from the baseline."],
] as [object[], object, string][])("%#", (rows, options, sentence) => {
  expect(say(rows, options)).toBe(sentence);
});

test("days until the planned size", () => {
  const experimentPlanning = (planned: unknown, endDate: Date | null = null) =>
    ({
      startDate: new Date("2026-01-01"),
      endDate,
      runningTimeCalculation: { recommended_sample_size: planned },
    }) as unknown as Experiment;
  const now = new Date("2026-01-11");
  expect(daysUntilPlanned(experimentPlanning(1_900), { total: 1_000 }, now)).toBe(9);
  expect(daysUntilPlanned(experimentPlanning(1_001), { total: 1_000 }, now)).toBe(1);
  for (const [planned, total, end] of [
    [1_000, 1_000],
    [undefined, 10],
    [1_000, 0],
    [1_000, 10, now],
  ] as const)
    expect(daysUntilPlanned(experimentPlanning(planned, end), { total }, now)).toBeUndefined();
});

test("the command prints p with as many digits as the sentence", () => {
  const { cli } = experimentResultOperations.find(({ id }) => id === "experiments.results")!;
  const variant = { key: "test", delta: -0.513, p_value: 4.714261209246803e-70, number_of_samples: 1793 };
  const metric = { name: "Orders", uuid: "u", error: null, variant_results: [variant] };
  const print = (cli as unknown as { done: (results: object) => string }).done;
  expect(print({ sentence: "Worse.", warnings: [], metrics: [metric] })).toBe(
    "Worse.\nOrders: test -51.3 %, p 4.7e-70, 1793 exposed",
  );
});
