/** Results of experiments (contract: experiments 2). */

import { type Static, Type } from "@sinclair/typebox";
import { getRefresh, refreshDescription, refreshNames } from "../events/insights/insight-cache.ts";
import { exampleMetric } from "../experiments/api/schemas.ts";
import { loadSeries, loadStatistics } from "../experiments/statistics.ts";
import { experimentStatuses, getExperiment } from "../experiments/store.ts";
import { readBoolean } from "../http/params.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  record,
  string,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import {
  type ExperimentContext as Context,
  experimentArgument,
  experimentTag as tag,
} from "./experiment-list.ts";
import { operation } from "./operation.ts";

const ResultsBody = named(
  "ExperimentResults",
  object({
    experiment_id: int(),
    name: string(),
    status: enumeration(experimentStatuses),
    start_date: nullable(dateTime()),
    end_date: nullable(dateTime()),
    computed_at: nullable(dateTime()),
    is_cached: bool(),
    sentence: string({ description: "The first primary metric in one sentence." }),
    warnings: list(object({ code: string(), message: string() })),
    exposures: nullable(
      record({
        description: "`total`, `variants`, `$multiple`, `holdout`, `last_exposure_at`, `timeseries`.",
      }),
    ),
    sample_ratio: nullable(
      object({ chi_squared: Type.Number(), df: int(), p_value: Type.Number(), mismatch: bool() }),
    ),
    metrics: list(
      object({
        uuid: nullable(string()),
        name: nullable(string({ blank: true })),
        metric_type: nullable(string()),
        goal: string(),
        role: enumeration(["primary", "secondary", "guardrail"]),
        error: nullable(string()),
        baseline: nullable(record()),
        variant_results: list(record()),
        holdout: nullable(record()),
        timeseries: optional(record({ description: "With `series`: results by day." })),
      }),
    ),
  }),
);
type Results = Static<typeof ResultsBody>;

const exampleResults = {
  experiment_id: 7,
  name: "One-click payment",
  status: "running",
  start_date: "2026-03-02T09:00:00.000000Z",
  end_date: null,
  computed_at: "2026-03-09T09:00:00.000000Z",
  is_cached: false,
  sentence:
    "test is better than control: +20.0 % (3.1 % to 36.9 %). 99.0 % chance; if wrong, expect to lose 0.03 %.",
  warnings: [],
  exposures: {
    total: 2_000,
    $multiple: 0,
    holdout: 0,
    variants: [{ key: "control", persons: 1_000, percentage: 50 }],
  },
  sample_ratio: { chi_squared: 0.2, df: 1, p_value: 0.65, mismatch: false },
  metrics: [],
};

const getResults = operation({
  id: "experiments.results",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "Get the results of an experiment",
  description:
    "Exposures, sample ratio and statistics of all metrics. Members are named as in PostHog's `ExperimentQuery`.",
  mcp: {
    name: "experiment_results",
    description: "Get the results of an experiment: `sentence` first, then the figures of each metric.",
  },
  http: { method: "GET", path: "/experiments/:id/results", answer: "The results." },
  cli: {
    name: "experiments results",
    description: "Show the results of an experiment.",
    examples: ["experiments results 7 --url http://127.0.0.1:8000"],
    arguments: [experimentArgument],
    done: printedResults,
  },
  input: object({
    id: int(),
    refresh: optional(enumeration(refreshNames, { description: refreshDescription })),
    series: optional(bool({ description: "Each metric also by day, in `timeseries`." })),
  }),
  output: ResultsBody,
  example: exampleResults,
  readQuery: (query) => ({
    refresh: query.get("refresh") ?? undefined,
    series: readBoolean(query, "series"),
  }),
  run: async ({ stores, project, now }: Context, { id, refresh, series }) => {
    const experiment = getExperiment(stores.metadata.db, project.id, id);
    const compute = series
      ? (await loadSeries()).computeResultsByDay
      : (await loadStatistics()).computeResults;
    return (await compute(stores, experiment, {
      project,
      now,
      refresh: getRefresh(refresh),
    })) as unknown as Results;
  },
});

/** As in the sentence above it. */
const toDigits = (p: unknown) => (typeof p === "number" ? p.toPrecision(2) : "-");

function printedResults({ sentence, metrics, warnings }: Results): string {
  const rows = metrics.flatMap(({ name, uuid, error, variant_results: variants }) =>
    error !== null
      ? [`${name ?? uuid}: ${error}`]
      : variants.map(({ key, delta, chance_to_win: chance, p_value: p, number_of_samples: n }) => {
          const shown = typeof delta === "number" ? `${(100 * delta).toFixed(1)} %` : "no data";
          const certainty =
            typeof chance === "number" ? `chance ${(100 * chance).toFixed(1)} %` : `p ${toDigits(p)}`;
          return `${name ?? uuid}: ${key} ${shown}, ${certainty}, ${n} exposed`;
        }),
  );
  return [sentence, ...warnings.map(({ message }) => `Warning: ${message}`), ...rows].join("\n");
}

const getTimeseries = operation({
  id: "experiments.timeseries",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "Get the results of a metric by day",
  description: "Cumulative: the results at the end of each day, at most the last 90.",
  http: { method: "GET", path: "/experiments/:id/timeseries_results", answer: "The results by day." },
  input: object({ id: int(), metric_uuid: string() }),
  output: object({
    experiment_id: int(),
    metric_uuid: string(),
    status: string(),
    timeseries: record({ description: "Results by day." }),
    computed_at: dateTime(),
  }),
  example: {
    experiment_id: 7,
    metric_uuid: exampleMetric.uuid,
    status: "completed",
    timeseries: { "2026-03-02": {} },
    computed_at: "2026-03-09T09:00:00.000000Z",
  },
  readQuery: (query) => {
    const metricUuid = query.get("metric_uuid") ?? "";
    if (metricUuid === "") throw new InvalidFieldError("metric_uuid", "required", "This field is required.");
    return { metricUuid };
  },
  run: async ({ stores, project, now }: Context, { id, metricUuid }) => {
    const experiment = getExperiment(stores.metadata.db, project.id, id);
    const { computeSeries } = await loadSeries();
    return (await computeSeries(stores, experiment, metricUuid, {
      project,
      now,
      refresh: "blocking",
    })) as never;
  },
});

export const experimentResultOperations = [getResults, getTimeseries];
