/** Guardrails of running experiments that roll back. */

import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import type { ComputeDeps } from "./compute.ts";
import type { MetricLimits, MetricResult } from "./results.ts";
import { getMetrics, type RoledMetric, rollbackGuardrails } from "./roled-metrics.ts";
import type { Violation, Watch } from "./rollback-watch.ts";
import { loadStatistics } from "./statistics.ts";
import { type Experiment, findExperiment, launchedExperiments } from "./store.ts";

export function guardrailWatches(deps: ComputeDeps): Watch[] {
  const { db } = deps.metadata;
  return launchedExperiments(db).flatMap((experiment) =>
    rollbackGuardrails(db, experiment).map((metric): Watch => {
      const { id, projectId, flagId } = experiment;
      return {
        key: `experiment ${id} ${String(metric.metric.uuid)}`,
        projectId,
        flagId,
        find: (now) => findViolation(deps, experiment, metric, now),
        applies: (t) => {
          const present = findExperiment(t, projectId, id);
          return present !== undefined && present.startDate !== null && present.endDate === null;
        },
      };
    }),
  );
}

/** The metric with this uuid of a launched experiment with this flag. */
export function findLaunchedMetric(
  { metadata: { db } }: ComputeDeps,
  { projectId, flagId, uuid }: { projectId: number; flagId: number; uuid: string },
): { experiment: Experiment; metric: RoledMetric } | undefined {
  for (const experiment of launchedExperiments(db)) {
    if (experiment.projectId !== projectId || experiment.flagId !== flagId) continue;
    const metric = getMetrics(db, experiment).find(({ metric }) => metric.uuid === uuid);
    if (metric !== undefined) return { experiment, metric };
  }
  return undefined;
}

/** The first variant that is worse than allowed. */
export async function findViolation(
  deps: ComputeDeps,
  experiment: Experiment,
  metric: RoledMetric,
  now: Date,
  limits?: MetricLimits,
): Promise<Violation | undefined> {
  const project = deps.metadata.projects.find(experiment.projectId);
  if (project === undefined) return undefined;
  const { computeMetric } = await loadStatistics();
  // Excluded variants are still served.
  const watched = { ...experiment, excludedVariants: [] };
  const result = await computeMetric(deps, watched, metric, { project, now, refresh: "blocking", limits });
  const row = result.variant_results.find(
    ({ guardrail }) => isJsonObject(guardrail) && guardrail.violated === true,
  );
  return row === undefined ? undefined : describe(experiment, metric.metric, result, row);
}

function describe(
  experiment: Experiment,
  metric: JsonObject,
  { baseline }: MetricResult,
  row: MetricResult["variant_results"][number],
): Violation {
  const interval = (row.guardrail as JsonObject).interval as [number, number];
  const { key, number_of_samples, sum } = row;
  const sums = {
    [key]: { persons: number_of_samples!, sum: sum! },
    [baseline!.key]: { persons: baseline!.number_of_samples!, sum: baseline!.sum! },
  };
  const name = String(metric.name ?? metric.uuid);
  const percent = (value: number) => `${(100 * value).toFixed(1)} %`;
  return {
    jobType: "guardrail",
    jobId: String(experiment.id),
    note: `Guardrail "${name}" of the experiment "${experiment.name}": ${key} is worse by ${percent(interval[0])} to ${percent(interval[1])}.`,
    payload: {
      experiment_id: experiment.id,
      metric_uuid: metric.uuid ?? null,
      metric: name,
      variant: key,
      interval,
      sums,
    },
  };
}
