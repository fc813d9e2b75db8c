/** Published and independently computed examples, to six digits. Source: contract, experiments 3. */

import { describe, expect, test } from "bun:test";
import {
  betaPosterior,
  type Goal,
  hasFewConversions,
  normalPosterior,
  type Prior,
} from "../../../src/experiments/stats/bayesian.ts";
import { adjustByHolm, sequentialTest, welchTest } from "../../../src/experiments/stats/frequentist.ts";
import { checkGuardrail } from "../../../src/experiments/stats/guardrail.ts";
import { testSampleRatio } from "../../../src/experiments/stats/sample-ratio.ts";
import {
  detectableEffect,
  planSampleSize,
  sequentialQuantile,
} from "../../../src/experiments/stats/sample-size.ts";
import { adjustByCuped, type Sample, toSample } from "../../../src/experiments/stats/samples.ts";

/** `P n s` proportion, `M n Σy Σy²` mean, `R n Σy Σy² Σd Σd² Σyd` ratio. */
function sample(text: string): Sample {
  const [kind, ...numbers] = text.split(" ");
  const [n, y, yy, d, dd, yd] = numbers.map(Number);
  if (kind === "P") return toSample("proportion", { n: n!, y: y!, yy: y! });
  if (kind === "M") return toSample("mean", { n: n!, y: y!, yy: yy! });
  return toSample("ratio", { n: n!, y: y!, yy: yy!, d, dd, yd });
}

/** Compares to six significant digits, as the examples are written. */
function expectDigits(actual: unknown, expected: unknown): void {
  const flat = (value: unknown): number[] => (Array.isArray(value) ? value.flatMap(flat) : [value as number]);
  const is = flat(actual);
  const wanted = flat(expected);
  expect(is.length).toBe(wanted.length);
  for (const [index, number] of wanted.entries())
    expect(Math.abs(is[index]! - number)).toBeLessThanOrEqual(0.6e-5 * Math.abs(number) + 1e-15);
}

describe("Bayesian", () => {
  const cases: [string, string, string, { goal?: Goal; prior?: Prior }, number[]][] = [
    [
      "proportions",
      "P 1000 100",
      "P 1000 120",
      {},
      [0.2, 0.153362, 0.9039, -0.100585, 0.500585, 0.206922, 0.00692161],
    ],
    [
      "means",
      "M 2000 25000 450000",
      "M 2010 26130 480500",
      {},
      [0.04, 0.0214765, 0.968733, -0.00209325, 0.0820933, 0.0402616, 0.000261553],
    ],
    [
      "lower is better",
      "P 4000 400",
      "P 4000 350",
      { goal: "decrease" },
      [-0.125, 0.0609816, 0.979808, -0.244522, -0.00547835, 0.125453, 0.000452636],
    ],
    [
      "with a prior",
      "P 1000 100",
      "P 1000 120",
      { prior: { mean: 0, variance: 0.09 } },
      [0.158562, 0.136554, 0.877214, -0.109078, 0.426203, 0.166854, 0.00829142],
    ],
    [
      "the numbers of PostHog",
      "M 2507 1196.87 37377.9767",
      "M 2461 1922.7 94698.29",
      {},
      [0.636467, 0.369293, 0.957599, -0.087334, 1.36027, 0.642844, 0.00637666],
    ],
  ];
  for (const [name, baseline, variant, { goal = "increase", prior }, expected] of cases)
    test(name, () => {
      const result = normalPosterior(sample(baseline), sample(variant), {
        goal,
        level: 0.95,
        difference: "relative",
        prior,
      })!;
      const { estimate, sigma, chanceToWin, interval, loss } = result;
      expectDigits([estimate, sigma, chanceToWin, interval, loss.baseline, loss.variant], expected);
    });

  test("few conversions use the Beta-Binomial model", () => {
    const arm = (n: number, successes: number) => ({ n, successes });
    const small = betaPosterior(arm(50, 3), arm(52, 8), { goal: "increase", level: 0.95 });
    const getFigures = ({ chanceToWin, loss, estimate, interval }: typeof small) => [
      chanceToWin,
      loss.baseline,
      loss.variant,
      estimate,
      interval,
    ];
    expectDigits(getFigures(small), [0.929825, 0.0917378, 0.00199421, 1.26593, -0.228885, 7.29045]);
    const none = betaPosterior(arm(40, 0), arm(41, 3), { goal: "increase", level: 0.95 });
    expectDigits(getFigures(none), [0.93909, 0.0705949, 0.00138119, 4.13493, -0.323256, 149.277]);
    expect(hasFewConversions([arm(50, 3), arm(52, 8)])).toBeTrue();
    expect(hasFewConversions([arm(50, 47), arm(52, 8)])).toBeTrue();
    expect(hasFewConversions([arm(1000, 100), arm(1000, 120)])).toBeFalse();
  });

  test("the Beta-Binomial model agrees with the normal one on many persons, and with itself when arms are swapped", () => {
    const c = { n: 1000, successes: 100 };
    const t = { n: 1000, successes: 120 };
    const beta = betaPosterior(c, t, { goal: "increase", level: 0.95 });
    expectDigits(beta.chanceToWin, 0.923183);
    const normal = normalPosterior(sample("P 1000 100"), sample("P 1000 120"), {
      goal: "increase",
      level: 0.95,
      difference: "absolute",
    })!;
    expectDigits(normal.chanceToWin, 0.923646);
    const swapped = betaPosterior(t, c, { goal: "increase", level: 0.95 });
    expectDigits(swapped.chanceToWin, 1 - beta.chanceToWin);
    expectDigits(swapped.loss.variant, beta.loss.baseline);
    const failures = betaPosterior(
      { n: 1000, successes: 900 },
      { n: 1000, successes: 880 },
      { goal: "increase", level: 0.95 },
    );
    expectDigits(failures.chanceToWin, 1 - beta.chanceToWin);
  });
});

describe("Welch's test", () => {
  const cases: [string, string, string, number[]][] = [
    [
      "means",
      "M 2000 25000 450000",
      "M 2010 26130 480500",
      [0.04, 0.0214765, 1.8625, 4007.92, 0.0626062, -0.00210597, 0.082106],
    ],
    [
      "few persons",
      "M 8 40 230",
      "M 6 44 360",
      [0.466667, 0.309634, 1.50716, 9.03542, 0.165908, -0.233355, 1.16669],
    ],
    [
      "the far tail",
      "P 200000 20000",
      "P 200000 21500",
      [0.075, 0.00999875, 7.50094, 399590, 6.3493e-14, 0.0554028, 0.0945972],
    ],
    [
      "retention",
      "R 1500 310 310 820 820 310",
      "R 1490 352 352 835 835 352",
      [0.115086, 0.067387, 1.70784, 2987.53, 0.0877706, -0.0170437, 0.247215],
    ],
  ];
  for (const [name, baseline, variant, expected] of cases)
    test(name, () => {
      const { estimate, standardError, t, df, pValue, interval } = welchTest(
        sample(baseline),
        sample(variant),
        0.05,
      )!;
      expectDigits([estimate, standardError, t, df, pValue, interval], expected);
    });
});

describe("the always-valid test", () => {
  const cases: [string, string, number[]][] = [
    ["P 1000 100", "P 1000 120", [0.0398401, 0.2, 0.47907, -0.27907, 0.67907, 1]],
    ["P 10000 1000", "P 10100 1231", [0.0398401, 0.218812, 0.153116, 0.0656958, 0.371928, 0.000356767]],
    ["P 500000 50000", "P 500000 56000", [0.0398401, 0.12, 0.0238294, 0.0961706, 0.143829, 1.0494e-72]],
  ];
  for (const [baseline, variant, expected] of cases)
    test(`${baseline} | ${variant}`, () => {
      const { rho, estimate, halfWidth, interval, pValue } = sequentialTest(
        sample(baseline),
        sample(variant),
        0.05,
      )!;
      expectDigits([rho, estimate, halfWidth, interval, pValue], expected);
    });
});

test("a ratio's variance by the delta method", () => {
  const { n, mean, variance } = sample("R 1000 52000 4100000 2300 7900 165000");
  expectDigits([mean, variance, Math.sqrt(variance / n)], [22.6087, 128.151, 0.357982]);
});

test("CUPED is centered", () => {
  const baseline = { n: 800, y: 22606.56, yy: 800873.3634, x: 16409.21, xx: 505957.4107, xy: 597314.5992 };
  const variant = { n: 820, y: 24212.04, yy: 886372.016, x: 16861.08, xx: 508852.0712, xy: 634002.2792 };
  const adjusted = adjustByCuped(baseline, variant);
  const { estimate, pValue } = welchTest(adjusted.baseline, adjusted.variant, 0.05)!;
  const plain = welchTest(toSample("mean", baseline), toSample("mean", variant), 0.05)!;
  expectDigits(
    [
      adjusted.theta,
      adjusted.baseline.mean,
      adjusted.variant.mean,
      adjusted.baseline.variance,
      adjusted.variant.variance,
      estimate,
      pValue,
      plain.pValue,
    ],
    [0.813781, 28.2791, 29.5065, 71.0238, 69.9144, 0.0434014, 0.0040593, 0.082191],
  );
});

test("sample ratio mismatch", () => {
  const testRatio = (...periods: { observed: number[]; weights: number[] }[]) => {
    const { chiSquared, df, pValue, isMismatch } = testSampleRatio(periods)!;
    return [chiSquared, df, pValue, Number(isMismatch)];
  };
  expectDigits(testRatio({ observed: [5200, 4800], weights: [50, 50] }), [16, 1, 6.33425e-5, 1]);
  expectDigits(testRatio({ observed: [5165, 4835], weights: [50, 50] }), [10.89, 1, 0.000966848, 1]);
  expectDigits(
    testRatio({ observed: [905, 98], weights: [90, 10] }, { observed: [5020, 4985], weights: [50, 50] }),
    [0.181041, 2, 0.913456, 0],
  );
  expect(testSampleRatio([{ observed: [90, 9], weights: [50, 50] }])).toBeUndefined();
  expect(testSampleRatio([{ observed: [200, 0], weights: [98, 2] }])).toBeUndefined();
  // A variant with 0 % is not expected, so it is no degree of freedom.
  expect(testSampleRatio([{ observed: [100, 100, 0], weights: [50, 50, 0] }])!.df).toBe(1);
});

test("sample size", () => {
  const proportion = { kind: "proportion", baseline: 0.1, variance: 0, effect: 0.1, variants: 2 } as const;
  expect(planSampleSize({ ...proportion, exposuresPerDay: 500 })).toMatchObject({
    perVariant: 14749,
    total: 29498,
    days: 59,
  });
  const mean = { kind: "mean", baseline: 12.5, variance: 68.78, effect: 0.05, variants: 2 } as const;
  expect(planSampleSize({ ...mean, exposuresPerDay: 1000 })).toMatchObject({
    perVariant: 2765,
    total: 5530,
    days: 6,
  });
  const sequential = planSampleSize({ ...proportion, exposuresPerDay: 0, isSequential: true });
  expect(sequential).toMatchObject({ perVariant: 28242, total: 56484, days: undefined });
  expectDigits([sequentialQuantile(0.05), sequential.factor], [3.03521, 1.9149]);
  expect(() => planSampleSize({ ...proportion, baseline: 0, exposuresPerDay: 1 })).toThrow(RangeError);
});

test("the effect that can be detected now", () => {
  // With the persons of a plan it is the planned effect, except for the variance of the other variant.
  expectDigits(detectableEffect(sample("P 1000 100"), { n: 1000 }), 0.375873);
  expectDigits(detectableEffect({ n: 2765, mean: 12.5, variance: 68.78 }, { n: 2765 }), 0.0499911);
  for (const baseline of ["P 1000 0", "P 0 0", "M 10 -5 9"])
    expect(detectableEffect(sample(baseline), { n: 1000 })).toBeUndefined();
  expect(detectableEffect(sample("P 1000 100"), { n: 0 })).toBeUndefined();
});

test("Holm's correction", () => {
  expectDigits(adjustByHolm([0.04, 0.001, 0.03]), [0.06, 0.003, 0.06]);
  expect(adjustByHolm([0.9, 0.8])).toEqual([1, 1]);
});

test("guardrails", () => {
  const baseline = sample("P 20000 4000");
  const variant = sample("P 20000 3300");
  const fired = checkGuardrail(baseline, variant, "increase", 0.05)!;
  expectDigits(fired.interval, [-0.240455, -0.109545]);
  expect(fired.isViolated).toBeTrue();
  expect(checkGuardrail(baseline, variant, "increase", 0.11)!.isViolated).toBeFalse();
  expect(checkGuardrail(baseline, variant, "decrease", 0.05)!.isViolated).toBeFalse();
  expect(checkGuardrail(variant, baseline, "decrease", 0.05)!.isViolated).toBeTrue();
});

test("without variance or a relative effect", () => {
  expect(welchTest(sample("M 10 0 0"), sample("M 10 0 0"), 0.05)).toBeUndefined();
  expect(sequentialTest(sample("M 10 10 10"), sample("M 10 10 10"), 0.05)).toBeUndefined();
  expect(welchTest(sample("M 10 0 0"), sample("M 10 5 9"), 0.05)!.difference).toBe("absolute");
  expect(welchTest(sample("M 10 -5 9"), sample("M 10 5 9"), 0.05)!.difference).toBe("absolute");
  // One person has no variance, and no degrees of freedom.
  expect(welchTest(sample("M 10 10 20"), sample("M 1 5 25"), 0.05)!.df).toBeCloseTo(9, 9);
});
