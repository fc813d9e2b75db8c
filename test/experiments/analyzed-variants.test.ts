/** Variants left out of results, and the order of metrics, as PostHog's clients send them. Source: contract, experiments 1.2. */

import { expect, test } from "bun:test";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import { api, createDraft, patch, post } from "./support.ts";

useServer();

const key = "three-variants";
const metric = (name: string, event: string) => ({
  kind: "ExperimentMetric",
  metric_type: "mean",
  uuid: `uuid-${name}`,
  name,
  source: { kind: "EventsNode", event, math: "total" },
});
const variants = ["control", "blue", "green"].map((name) => ({
  key: name,
  rollout_percentage: name === "control" ? 40 : 30,
}));
const filters = { groups: [{}], multivariate: { variants: [...variants.slice(1), variants[0]!] } };
const featureFlag = { filters };

test("excluded variants are served, but results do not contain them", async () => {
  const { id, excluded_variants } = await createDraft({
    feature_flag_key: key,
    feature_flag: featureFlag,
    metrics: [metric("orders", "order paid")],
    minimum_exposures: 1,
    excluded_variants: ["blue", "blue"],
  });
  expect(excluded_variants).toEqual(["blue"]);
  const timestamp = new Date(Date.now() - 60_000).toISOString();
  const seen: [string, string[]][] = [
    ["a", ["control"]],
    ["b", ["green"]],
    ["c", ["blue"]],
    ["d", ["blue", "green"]],
  ];
  const batch = seen.flatMap(([distinct_id, responses]) => [
    ...responses.map((response) => ({
      event: "$feature_flag_called",
      distinct_id,
      timestamp,
      properties: { $feature_flag: key, $feature_flag_response: response },
    })),
    { event: "order paid", distinct_id, timestamp },
  ]);
  await server.batch(batch);
  await until(async () => (await server.events()).length === batch.length, "the events are stored");
  const shown = async () => {
    const { body } = await api(`/experiments/${id}/results/?refresh=force_blocking`);
    const { baseline, variant_results } = body.metrics[0];
    return {
      total: body.exposures.total,
      multiple: body.exposures.$multiple,
      holdout: body.exposures.holdout,
      baseline: [baseline.key, baseline.number_of_samples],
      tests: variant_results.map((row: { key: string; number_of_samples: number }) => [
        row.key,
        row.number_of_samples,
      ]),
      warnings: body.warnings.map(({ code }: { code: string }) => code),
    };
  };
  await patch(`/experiments/${id}/`, { start_date: new Date(Date.now() - 120_000).toISOString() });
  expect(await shown()).toEqual({
    total: 3,
    multiple: 0,
    holdout: 0,
    baseline: ["control", 1],
    tests: [["green", 2]],
    warnings: ["excluded_variants"],
  });
  const { body } = await post("/query/", { query: { kind: "ExperimentExposureQuery", experiment_id: id } });
  expect(body.total_exposures).toEqual({ green: 2, control: 1 });
  expect((await patch(`/experiments/${id}/`, { excluded_variants: null })).body.excluded_variants).toEqual(
    [],
  );
  expect(await shown()).toMatchObject({
    total: 3,
    multiple: 1,
    tests: [
      ["blue", 1],
      ["green", 1],
    ],
    warnings: ["multiple_variants"],
  });
  const { body: activity } = await api(`/experiments/${id}/activity/`);
  expect(JSON.stringify(activity)).toContain("excluded_variants");
});

test("the baseline, holdouts, unknown variants and all others cannot be excluded", async () => {
  const { id } = await createDraft({ feature_flag: featureFlag });
  for (const [sent, detail] of [
    [{ excluded_variants: ["control"] }, "baseline variant cannot be excluded ('control')"],
    [{ excluded_variants: ["holdout-1"] }, "cannot exclude holdout pseudo-variants: holdout-1"],
    [{ excluded_variants: ["red"] }, "unknown variants for this experiment: red"],
    [{ excluded_variants: ["blue", "green"] }, "at least one test variant must remain in analysis"],
    [{ parameters: { excluded_variants: "blue" } }, "excluded_variants must be a list of strings"],
  ] as const) {
    const { status, body } = await patch(`/experiments/${id}/`, sent);
    expect({ status, attr: body.attr, detail: body.detail }).toEqual({
      status: 400,
      attr: "excluded_variants",
      detail,
    });
    expect(
      await post("/experiments/", { name: "rejected", feature_flag: featureFlag, ...sent }),
    ).toMatchObject({
      status: 400,
      body: { detail },
    });
  }
  for (const bad of ["blue", [1], [{}], Array.from({ length: 21 }, (_, n) => `v${n}`)])
    expect((await patch(`/experiments/${id}/`, { excluded_variants: bad })).status).toBe(400);
  // Where older clients have it.
  const older = await patch(`/experiments/${id}/`, { parameters: { excluded_variants: ["blue"] } });
  expect(older.body).toMatchObject({ excluded_variants: ["blue"] });
  expect(older.body.parameters).not.toHaveProperty("excluded_variants");
  const stats_config = { baseline_variant_key: "blue" };
  expect((await patch(`/experiments/${id}/`, { stats_config })).body.attr).toBe("excluded_variants");
  const swapped = await patch(`/experiments/${id}/`, { stats_config, excluded_variants: ["control"] });
  expect(swapped.status).toBe(200);
  expect((await post(`/experiments/${id}/duplicate/`)).body.excluded_variants).toEqual(["control"]);
});

test("results have the order of the metrics, and a copy has it for its own", async () => {
  const { body: saved } = await post("/experiment_saved_metrics/", {
    name: "Shared",
    query: metric("shared", "visit"),
  });
  const experiment = await createDraft({
    metrics: ["a", "b", "c"].map((name) => metric(name, name)),
    metrics_secondary: ["d", "e"].map((name) => metric(name, name)),
    saved_metrics_ids: [{ id: saved.id, metadata: { type: "primary" } }],
  });
  expect(experiment).toMatchObject({
    primary_metrics_ordered_uuids: null,
    secondary_metrics_ordered_uuids: null,
  });
  const names = async (id: number) => {
    const { body } = await api(`/experiments/${id}/results/`);
    return body.metrics.map(({ name }: { name: string }) => name).join("");
  };
  expect(await names(experiment.id)).toBe("abcdeshared");
  const orders = {
    primary_metrics_ordered_uuids: ["uuid-shared", "uuid-c", "uuid-gone", "uuid-a"],
    secondary_metrics_ordered_uuids: ["uuid-e"],
  };
  const { body: ordered } = await patch(`/experiments/${experiment.id}/`, orders);
  expect(ordered).toMatchObject(orders);
  expect(await names(experiment.id)).toBe("sharedcabed");
  const { body: copy } = await post(`/experiments/${experiment.id}/duplicate/`);
  expect(copy.metrics[2].uuid).not.toBe("uuid-c");
  expect(await names(copy.id)).toBe("sharedcabed");
  await patch(`/experiments/${experiment.id}/`, { primary_metrics_ordered_uuids: null });
  expect(await names(experiment.id)).toBe("abcshareded");
  for (const bad of ["uuid-a", Array.from({ length: 101 }, String)])
    expect(
      (await patch(`/experiments/${experiment.id}/`, { primary_metrics_ordered_uuids: bad })).status,
    ).toBe(400);
});

test("exclusions of variants that the flag no longer has are dropped, and never leave the baseline alone", async () => {
  const { id } = await createDraft({ feature_flag: featureFlag, excluded_variants: ["blue"] });
  const change = (keys: readonly string[]) =>
    patch(`/experiments/${id}/`, {
      parameters: {
        feature_flag_variants: keys.map((key) => ({ key, rollout_percentage: 100 / keys.length })),
      },
    });
  const excludedOfCopy = async (name: string) =>
    (await post(`/experiments/${id}/duplicate/`, { name })).body.excluded_variants;
  expect(await excludedOfCopy("first")).toEqual(["blue"]);
  expect((await change(["control", "green"])).status).toBe(200);
  expect((await patch(`/experiments/${id}/`, { stats_config: { confidence_level: 0.9 } })).status).toBe(200);
  expect(await excludedOfCopy("second")).toEqual([]);
  // The only variant besides the baseline is compared again.
  expect((await change(["control", "blue"])).status).toBe(200);
  expect(await excludedOfCopy("third")).toEqual([]);
  const { body } = await patch(`/experiments/${id}/`, { stats_config: { baseline_variant_key: "blue" } });
  expect(body.detail).toBe("baseline variant cannot be excluded ('blue')");
});

test("secondary metrics follow the others, whatever the lists of the order contain", async () => {
  const { id } = await createDraft({
    metrics: [metric("first", "a")],
    metrics_secondary: [metric("second", "b")],
    primary_metrics_ordered_uuids: ["gone-1", "gone-2", "gone-3", "uuid-first"],
  });
  const { body } = await api(`/experiments/${id}/results/`);
  expect(body.metrics.map(({ name }: { name: string }) => name)).toEqual(["first", "second"]);
});
