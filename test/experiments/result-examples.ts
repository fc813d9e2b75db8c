/**
 * Exposures and sums of experiments over HTTP, for each event store. Source: contract, experiments 2.1, 2.2 and 3
 * (`data-` examples).
 */

import { afterAll, beforeAll, describe, expect, type test as Test } from "bun:test";
import { type ServerProcess, until } from "../support/server.ts";

// biome-ignore lint/suspicious/noExplicitAny: responses of any route
type Body = any;

export interface StartedStore extends AsyncDisposable {
  server: ServerProcess;
}

/** Declares the tests. @param start the server with an event store, or undefined where it is not installed */
export function describeResults(test: typeof Test, start: () => Promise<StartedStore | undefined>): void {
  let store: StartedStore | undefined;
  let server: ServerProcess;
  beforeAll(async () => {
    store = await start();
    if (store !== undefined) server = store.server;
  }, 60_000);
  afterAll(async () => await store?.[Symbol.asyncDispose]());

  const base = Date.UTC(2026, 0, 5);
  const at = (seconds: number) => new Date(base + seconds * 1_000).toISOString();
  let flags = 0;

  async function api(path: string, init: { method?: string; body?: object } = {}) {
    const response = await fetch(`${server.url}/api/projects/1${path}`, {
      method: init.method ?? "GET",
      headers: {
        Authorization: `Bearer ${server.initialized.personal_api_key}`,
        "Content-Type": "application/json",
      },
      body: init.body && JSON.stringify(init.body),
    });
    return { status: response.status, body: (await response.json()) as Body };
  }

  const orders = { kind: "EventsNode", event: "order paid", math: "sum", math_property: "amount" };
  const revenue = { kind: "ExperimentMetric", metric_type: "mean", name: "Revenue", source: orders };

  interface Example {
    /** `time id what`, in arrival order, in seconds after any moment. */
    events: string;
    end?: number;
    merges?: [from: string, into: string][];
    metric?: object;
    experiment?: object;
  }

  /** Captures the events under ids and a flag of their own, and returns the results. */
  async function run({ events, end, merges = [], metric = revenue, experiment = {} }: Example) {
    const key = `new-checkout-${++flags}`;
    const own = (id: string) => `${key}-${id}`;
    const { body: created } = await api("/experiments/", {
      method: "POST",
      body: { name: key, feature_flag_key: key, metrics: [metric], minimum_exposures: 1, ...experiment },
    });
    const batch: object[] = events.split(";").map((text) => {
      const [time, id, what, value] = text.trim().split(" ");
      const common = { distinct_id: own(id!), timestamp: at(Number(time)) };
      if (what === "see" || what === "see-other")
        return {
          ...common,
          event: "$feature_flag_called",
          properties: {
            $feature_flag: what === "see" ? key : "another",
            $feature_flag_response: value === "false" ? false : value,
          },
        };
      const amount = value!.startsWith('"') ? JSON.parse(value!) : Number(value);
      return { ...common, event: "order paid", properties: { amount } };
    });
    for (const [from, into] of merges)
      batch.push({
        event: "$create_alias",
        distinct_id: own(into),
        properties: { distinct_id: own(into), alias: own(from) },
      });
    await server.batch(batch);
    await until(async () => {
      const found = await server.events();
      return found.filter(({ distinct_id: id }) => id.startsWith(`${key}-`)).length === batch.length;
    }, "the events are stored");
    const patched = await api(`/experiments/${created.id}/`, {
      method: "PATCH",
      body: { start_date: at(0), ...(end === undefined ? {} : { end_date: at(end) }) },
    });
    expect(patched.status).toBe(200);
    const results = await api(`/experiments/${created.id}/results/?refresh=force_blocking`);
    expect(results.status).toBe(200);
    return results.body;
  }

  const sums = (row: Body) => [row.number_of_samples, row.sum, row.sum_squares];
  function shown(results: Body) {
    const [metric] = results.metrics;
    expect(metric.error).toBeNull();
    return {
      control: sums(metric.baseline),
      test: sums(metric.variant_results[0]),
      multiple: results.exposures.$multiple,
    };
  }

  describe("examples", () => {
    test("the first exposure", async () => {
      const results = await run({
        end: 100_000,
        events: `10 a see control; 5 a paid 99; 20 a paid 10; 30 b see test; 30 b paid 7; 40 b paid "12"; 50 b see test;
        60 c see control; 70 d paid 500; 80 e see-other test; 90 f see false; 95 g see test; 100000 g paid 3; 100001 h see test`,
      });
      expect(shown(results)).toEqual({ control: [2, 10, 100], test: [2, 19, 361], multiple: 0 });
    });

    test("persons who saw two variants are excluded and counted", async () => {
      const example = {
        end: 100_000,
        events: "10 a see control; 20 a see test; 30 a paid 4; 10 b see test; 11 b paid 5; 12 c see control",
      };
      expect(shown(await run(example))).toEqual({ control: [1, 0, 0], test: [1, 5, 25], multiple: 1 });
      const first = await run({
        ...example,
        experiment: { exposure_criteria: { multiple_variant_handling: "first_seen" } },
      });
      expect(shown(first)).toEqual({ control: [2, 4, 16], test: [1, 5, 25], multiple: 1 });
    });

    test("merged persons saw both variants", async () => {
      const results = await run({
        end: 100_000,
        merges: [
          ["anon-1", "kim"],
          ["anon-2", "lee"],
        ],
        events:
          "10 anon-1 see control; 15 anon-1 paid 3; 20 kim see test; 10 anon-2 see test; 40 lee paid 8; 50 solo see control",
      });
      expect(shown(results)).toEqual({ control: [1, 0, 0], test: [1, 8, 64], multiple: 1 });
    });

    test("the conversion window", async () => {
      const results = await run({
        end: 1_000,
        metric: { ...revenue, conversion_window: 100, conversion_window_unit: "second" },
        events:
          "10 a see control; 109 a paid 1; 110 a paid 1; 10 b see test; 50 b paid 2; 950 c see test; 960 c paid 5",
      });
      expect(shown(results)).toEqual({ control: [1, 1, 1], test: [2, 7, 29], multiple: 0 });
    });

    test("only persons whose window has passed", async () => {
      const results = await run({
        end: 1_000,
        metric: { ...revenue, conversion_window: 100, conversion_window_unit: "second" },
        experiment: { only_count_matured_users: true },
        events: "10 a see control; 109 a paid 1; 10 b see test; 50 b paid 2; 950 c see test; 960 c paid 5",
      });
      expect(shown(results)).toEqual({ control: [1, 1, 1], test: [1, 2, 4], multiple: 0 });
    });

    test("a ratio", async () => {
      const results = await run({
        end: 100_000,
        metric: {
          kind: "ExperimentMetric",
          metric_type: "ratio",
          numerator: orders,
          denominator: { kind: "EventsNode", event: "order paid" },
        },
        events: `10 a see control; 20 a paid 10; 21 a paid 30; 10 b see control; 10 c see test; 20 c paid 25; 10 d see test;
        20 d paid 5; 22 d paid 15`,
      });
      const [{ baseline, variant_results }] = results.metrics;
      const all = (row: Body) => [
        ...sums(row),
        row.denominator_sum,
        row.denominator_sum_squares,
        row.numerator_denominator_sum_product,
      ];
      expect(all(baseline)).toEqual([2, 40, 1600, 2, 4, 80]);
      expect(all(variant_results[0])).toEqual([2, 45, 1025, 3, 5, 65]);
    });
  });

  describe("metrics", () => {
    const events = `10 a see control; 20 a paid 0; 21 a paid 5; 10 b see control; 15 b paid 12; 10 c see control; 11 c paid 7;
    10 d see test; 20 d paid 3; 10 e see test; 20 e paid 900; 10 f see test; 20 f paid 14`;

    test("winsorizing clips at percentiles of all persons together", async () => {
      const values = { control: [0, 0, 5, 12, 7, 0, 3, 900, 14, 8], test: [0, 4, 0, 22, 9, 6, 0, 11, 2, 40] };
      const all = Object.entries(values).flatMap(([variant, list]) =>
        list.flatMap((value, index) => [
          `10 ${variant}${index} see ${variant}`,
          ...(value === 0 ? [] : [`20 ${variant}${index} paid ${value}`]),
        ]),
      );
      const results = await run({
        metric: { ...revenue, upper_bound_percentile: 0.9 },
        events: all.join(";"),
      });
      const { control, test: variant } = shown(results);
      expect(control[0]).toBe(10);
      expect(control[1]).toBeCloseTo(72.8, 6);
      expect(control[2]).toBeCloseTo(1053.44, 6);
      expect(variant[1]).toBeCloseTo(77.8, 6);
      expect(variant[2]).toBeCloseTo(1308.44, 6);
    });

    for (const [name, change, control, variant] of [
      ["total", { math: "total" }, [3, 4, 6], [3, 3, 3]],
      ["avg", { math: "avg" }, [3, 21.5, 6.25 + 144 + 49], [3, 917, 9 + 810000 + 196]],
      ["min", { math: "min" }, [3, 19, 144 + 49], [3, 917, 9 + 810000 + 196]],
      ["max", { math: "max" }, [3, 24, 25 + 144 + 49], [3, 917, 9 + 810000 + 196]],
    ] as const)
      test(`the math ${name}`, async () => {
        const results = await run({ metric: { ...revenue, source: { ...orders, ...change } }, events });
        expect(shown(results)).toMatchObject({ control: [...control], test: [...variant] });
      });

    test("a threshold", async () => {
      expect(shown(await run({ metric: { ...revenue, threshold: 7 }, events }))).toMatchObject({
        control: [3, 2, 2],
        test: [3, 2, 2],
      });
    });

    test("a funnel: steps in order after the exposure", async () => {
      const step = (amount: number) => ({
        kind: "EventsNode",
        event: "order paid",
        properties: [{ key: "amount", value: [String(amount)], operator: "exact", type: "event" }],
      });
      const metric = { kind: "ExperimentMetric", metric_type: "funnel", series: [step(1), step(2)] };
      const of = {
        metric,
        events: `10 a see control; 11 a paid 1; 12 a paid 2; 10 b see control; 11 b paid 2; 12 b paid 1; 10 c see test;
        10 c paid 1; 9 c paid 1; 13 c paid 2; 10 d see test; 11 d paid 1`,
      };
      const results = await run(of);
      expect(shown(results)).toMatchObject({ control: [2, 1, 1], test: [2, 1, 1] });
      expect(results.metrics[0].baseline.step_counts).toEqual([2, 1]);
      expect(results.metrics[0].variant_results[0].step_counts).toEqual([2, 1]);
      const unordered = await run({ ...of, metric: { ...metric, funnel_order_type: "unordered" } });
      expect(shown(unordered)).toMatchObject({ control: [2, 2, 2], test: [2, 1, 1] });
    });

    test("retention: a return in the window after the start", async () => {
      const day = 86_400;
      const metric = {
        kind: "ExperimentMetric",
        metric_type: "retention",
        start_event: { kind: "EventsNode", event: "order paid" },
        completion_event: { kind: "EventsNode", event: "order paid" },
        retention_window_start: 1,
        retention_window_end: 2,
        retention_window_unit: "day",
      };
      const results = await run({
        metric,
        events: `10 a see control; 20 a paid 1; ${20 + day} a paid 1; 10 b see control; 20 b paid 1; ${19 + day} b paid 1;
        10 c see test; 20 c paid 1; ${20 + 2 * day} c paid 1; 10 d see test`,
      });
      const [{ baseline, variant_results }] = results.metrics;
      expect([...sums(baseline), baseline.denominator_sum]).toEqual([2, 1, 1, 2]);
      expect([...sums(variant_results[0]), variant_results[0].denominator_sum]).toEqual([2, 0, 0, 1]);
    });

    test("a metric that cannot be computed has its reason, the others their results", async () => {
      const invalid = {
        ...orders,
        properties: [{ key: "x", value: "1.2.3", operator: "semver_gt", type: "event" }],
      };
      const results = await run({
        experiment: { metrics: [{ ...revenue, source: invalid }, revenue] },
        events,
      });
      expect(results.metrics[0].error).toContain("semver_gt");
      expect(results.metrics[1]).toMatchObject({ error: null });
    });

    test("a metric whose property is text is a number", async () => {
      const results = await run({
        events: `10 a see control; 20 a paid "many"; 10 b see test; 20 b paid "4.5"`,
      });
      expect(shown(results)).toMatchObject({ control: [1, 0, 0], test: [1, 4.5, 20.25] });
    });

    test("no exposed persons", async () => {
      const results = await run({ events: "10 z paid 4" });
      expect(results.exposures.total).toBe(0);
      expect(results.metrics[0].variant_results[0]).toMatchObject({ significant: null, delta: null });
      expect(results.sentence).toStartWith("Not yet");
    });

    test("PostHog's queries return the same figures", async () => {
      const results = await run({ events, end: 100_000 });
      const post = async (query: object) => await api("/query/", { method: "POST", body: { query } });
      const id = results.experiment_id;
      const { uuid: _, ...same } = { uuid: "", ...revenue };
      const { body } = await post({ kind: "ExperimentQuery", experiment_id: id, metric: same });
      expect(sums(body.baseline)).toEqual(sums(results.metrics[0].baseline));
      expect(body.variant_results).toEqual(results.metrics[0].variant_results);
      const exposed = await post({ kind: "ExperimentExposureQuery", experiment_id: id });
      expect(exposed.body.total_exposures).toEqual({ control: 3, test: 3 });
      expect(exposed.body.timeseries).toMatchObject([
        { variant: "control", days: ["2026-01-05"], exposure_counts: [3] },
        { variant: "test", days: ["2026-01-05"], exposure_counts: [3] },
      ]);
      expect((await post({ kind: "ExperimentQuery", experiment_id: 999, metric: same })).status).toBe(400);
      expect((await post({ kind: "ExperimentQuery", experiment_id: id, metric: { kind: "x" } })).status).toBe(
        400,
      );
      const series = await api(
        `/experiments/${id}/timeseries_results/?metric_uuid=${results.metrics[0].uuid}`,
      );
      expect(Object.keys(series.body.timeseries)[0]).toBe("2026-01-05");
      expect(series.body.timeseries["2026-01-05"].baseline).toMatchObject({ number_of_samples: 3, sum: 24 });
    });

    test("CUPED adjusts with the time before the exposure", async () => {
      const persons = Array.from({ length: 30 }, (_, n) => {
        const variant = n % 2 === 0 ? "control" : "test";
        const before = (n * 7) % 11;
        return `-500 p${n} paid ${before}; 10 p${n} see ${variant}; 20 p${n} paid ${before + (n % 3) + (n % 2)}`;
      });
      const results = await run({
        experiment: { stats_config: { cuped: { enabled: true, lookback_days: 1 } } },
        events: persons.join(";"),
      });
      const [{ variant_results }] = results.metrics;
      expect(variant_results[0].cuped.theta).toBeWithin(0.8, 1.2);
      expect(variant_results[0].cuped.variance_reduction).toBeWithin(0.8, 1);
      expect(variant_results[0].number_of_samples).toBe(15);
    });

    test("CUPED adjusts nothing if few persons did anything before", async () => {
      const persons = Array.from({ length: 60 }, (_, n) => {
        const before = n < 19 ? [`-500 p${n} paid ${n}`] : [];
        return [...before, `10 p${n} see ${n % 2 === 0 ? "control" : "test"}`, `20 p${n} paid ${n}`].join(
          ";",
        );
      });
      const stats_config = { cuped: { enabled: true, lookback_days: 1 } };
      const few = await run({ experiment: { stats_config }, events: persons.join(";") });
      expect(few.metrics[0].variant_results[0].cuped).toBeUndefined();
      const enough = [...persons, "-500 p19 paid 19"].join(";");
      const results = await run({ experiment: { stats_config }, events: enough });
      expect(results.metrics[0].variant_results[0].cuped).toBeDefined();
    });

    test("the results by day are those of an experiment that had ended then", async () => {
      const day = 86_400;
      const step = { kind: "EventsNode", event: "order paid" };
      const metrics = [
        { ...revenue, conversion_window: 1, conversion_window_unit: "day" },
        { ...revenue, source: { ...orders, math: "max" }, threshold: 7 },
        { kind: "ExperimentMetric", metric_type: "ratio", numerator: orders, denominator: step },
        { kind: "ExperimentMetric", metric_type: "funnel", series: [step, step] },
        {
          kind: "ExperimentMetric",
          metric_type: "retention",
          start_event: step,
          completion_event: step,
          retention_window_start: 1,
          retention_window_end: 3,
        },
      ];
      const persons = Array.from({ length: 30 }, (_, n) => {
        const seen = (n % 3) * day + 50 * n;
        const variant = n % 2 === 0 ? "control" : "test";
        const times = [seen + 5, seen + day + 7 * n, seen + 1.5 * day, 3.5 * day];
        return [
          `${seen} q${n} see ${variant}`,
          ...times.slice(n % 4).map((at) => `${Math.round(at)} q${n} paid ${(n % 5) + 3}`),
          // Some see the other variant later.
          ...(n % 7 === 0 ? [`${seen + day + 9} q${n} see ${variant === "test" ? "control" : "test"}`] : []),
        ].join(";");
      });
      const experiment = {
        metrics,
        only_count_matured_users: true,
        stats_config: { cuped: { enabled: true, lookback_days: 1 } },
      };
      const { experiment_id: id } = await run({ experiment, events: persons.join(";"), end: 4 * day - 5 });
      const { body: series } = await api(`/experiments/${id}/results/?series=true`);
      for (let days = 1; days <= 4; days++) {
        const end_date = at(days === 4 ? 4 * day - 5 : days * day);
        await api(`/experiments/${id}/`, { method: "PATCH", body: { end_date } });
        const { body: ended } = await api(`/experiments/${id}/results/?refresh=force_blocking`);
        for (const [index, { baseline, variant_results }] of ended.metrics.entries()) {
          expect(baseline.number_of_samples).toBeGreaterThan(0);
          const shown = series.metrics[index].timeseries[`2026-01-0${days + 4}`];
          expect({ days, index, ...shown }).toMatchObject({ days, index, baseline, variant_results });
        }
      }
    });

    test("several metrics are computed together as each alone", async () => {
      const step = { kind: "EventsNode", event: "order paid" };
      const metrics = [
        revenue,
        { ...revenue, threshold: 7 },
        { ...revenue, upper_bound_percentile: 0.5, ignore_zeros: true },
        { kind: "ExperimentMetric", metric_type: "ratio", numerator: orders, denominator: step },
        { kind: "ExperimentMetric", metric_type: "funnel", series: [step, step] },
        {
          kind: "ExperimentMetric",
          metric_type: "funnel",
          series: [step, step],
          funnel_order_type: "unordered",
        },
        {
          kind: "ExperimentMetric",
          metric_type: "retention",
          start_event: step,
          completion_event: step,
          retention_window_start: 0,
          retention_window_end: 5,
          retention_window_unit: "second",
          conversion_window: 100,
          conversion_window_unit: "second",
        },
      ];
      const experiment = { only_count_matured_users: true };
      const together = await run({ experiment: { ...experiment, metrics }, events, end: 105 });
      for (const [index, metric] of metrics.entries()) {
        const alone = await run({ experiment, metric, events, end: 105 });
        const { baseline, variant_results } = alone.metrics[0];
        expect(together.metrics[index]).toMatchObject({ error: null, baseline, variant_results });
      }
    });
  });
}
