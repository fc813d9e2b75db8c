/** Results of metrics with extreme values, and of the largest experiment. Source: contract, experiments 2.1 and 2.2. */

import { expect, test } from "bun:test";
import { metricsMax } from "../../src/experiments/metrics.ts";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

async function api(path: string, body?: object) {
  const response = await server.api(`/api/projects/1${path}`, { method: body && "POST", body });
  expect(response.status).toBeLessThan(300);
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  return (await response.json()) as any;
}

const paid = (more: object = {}) => ({ kind: "EventsNode", event: "order paid", ...more });
const metrics = [
  { metric_type: "mean", source: paid({ math: "sum", math_property: "amount" }) },
  {
    metric_type: "mean",
    lower_bound_percentile: 0.1,
    upper_bound_percentile: 0.9,
    source: paid({ math: "avg", math_property: "amount" }),
  },
  { metric_type: "ratio", numerator: paid({ math: "max", math_property: "amount" }), denominator: paid() },
  { metric_type: "funnel", series: [paid(), paid()] },
  {
    metric_type: "retention",
    start_event: paid(),
    completion_event: paid(),
    retention_window_start: 0,
    retention_window_end: 1,
  },
];

async function launch(key: string, more: object) {
  const created = await api("/experiments/", {
    name: key,
    feature_flag_key: key,
    minimum_exposures: 1,
    ...more,
  });
  await api(`/experiments/${created.id}/launch/`, {});
  return created.id as number;
}

async function capture(key: string, persons: readonly { variant: string; amount: unknown }[]) {
  const events = persons.flatMap(({ variant, amount }, index) => [
    {
      event: "$feature_flag_called",
      distinct_id: `${key}-${index}`,
      properties: { $feature_flag: key, $feature_flag_response: variant },
    },
    { event: "order paid", distinct_id: `${key}-${index}`, properties: { amount } },
  ]);
  await server.batch(events);
  await until(async () => {
    const [row] = await server.query(
      `SELECT count(*) AS n FROM events WHERE starts_with(distinct_id, '${key}-')`,
    );
    return Number(row!.n) === events.length;
  }, "the events are stored");
}

test.each(["bayesian", "frequentist"])(
  "overflow, text and no number at all give a figure or null: %s",
  async (method) => {
    const values = [1e308, 1e308, -1e308, 5e-324, "1e309", "NaN", "-Infinity", "text", null, {}, [], true];
    const stats_config = { method, cuped: { enabled: true } };
    const id = await launch(`extreme-${method}`, { metrics, stats_config });
    await capture(
      `extreme-${method}`,
      ["control", "test"].flatMap((variant) => values.map((amount) => ({ variant, amount }))),
    );
    const results = await api(`/experiments/${id}/results/`);
    for (const { error, baseline, variant_results: rows } of results.metrics) {
      expect(error).toBeNull();
      for (const row of [baseline, ...rows]) expect(row.number_of_samples).toBe(values.length);
    }
  },
);

test("as many variants and metrics as are allowed", async () => {
  const keys = Array.from({ length: 20 }, (_, index) => `v${index}`);
  const feature_flag_variants = keys.map((key) => ({ key, rollout_percentage: 5 }));
  const id = await launch("largest", {
    metrics: Array(metricsMax).fill(metrics[0]),
    metrics_secondary: Array(metricsMax).fill(metrics[3]),
    parameters: { feature_flag_variants },
  });
  await capture(
    "largest",
    keys.flatMap((variant) => [1, 2, 3].map((amount) => ({ variant, amount }))),
  );
  const results = await api(`/experiments/${id}/results/`);
  expect(results.metrics).toHaveLength(2 * metricsMax);
  for (const { error, baseline, variant_results: rows } of results.metrics) {
    expect(error).toBeNull();
    expect([baseline, ...rows].map((row) => row.number_of_samples)).toEqual(keys.map(() => 3));
  }
});
