/** Results of an experiment at the end of each day, by one query for all days and metrics. */

import { NotFoundError } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { dayMs, toApiTime } from "../lib/time.ts";
import { wallTimeAt } from "../lib/time-zone.ts";
import {
  ask,
  type ComputeDeps,
  type ComputeOptions,
  computeResults,
  judgedResult,
  prepare,
} from "./compute.ts";
import { endStepMs } from "./results.ts";
import { getMetrics, type RoledMetric } from "./roled-metrics.ts";
import type { Experiment } from "./store.ts";

/** Maximum days of a series. */
const seriesDaysMax = 90;

/** The results of all metrics with their course by day. */
export async function computeResultsByDay(
  deps: ComputeDeps,
  experiment: Experiment,
  options: ComputeOptions,
): Promise<JsonObject> {
  const results = await computeResults(deps, experiment, options);
  const shown = results.metrics as JsonObject[];
  const computed = getMetrics(deps.metadata.db, experiment).filter(
    (_, index) => shown[index]?.error === null,
  );
  const found = (await getSeries(deps, experiment, computed, options)).values();
  const metrics = shown.map((metric): JsonObject => {
    return { ...metric, timeseries: metric.error === null ? (found.next().value ?? {}) : {} };
  });
  return { ...results, metrics };
}

/** The results of one metric at the end of each day. @throws {NotFoundError} the experiment has no such metric. */
export async function computeSeries(
  deps: ComputeDeps,
  experiment: Experiment,
  metricUuid: string,
  options: ComputeOptions,
): Promise<JsonObject> {
  const found = getMetrics(deps.metadata.db, experiment).find(({ metric }) => metric.uuid === metricUuid);
  if (found === undefined) throw new NotFoundError("The experiment has no metric with this uuid.");
  const [timeseries = {}] = await getSeries(deps, experiment, [found], options);
  return {
    experiment_id: experiment.id,
    metric_uuid: metricUuid,
    status: "completed",
    timeseries,
    computed_at: toApiTime(options.now),
  };
}

/** By metric and day. */
async function getSeries(
  deps: ComputeDeps,
  experiment: Experiment,
  metrics: readonly RoledMetric[],
  options: ComputeOptions,
): Promise<JsonObject[]> {
  // The end of the results of a running experiment, so that the last day equals them.
  const now = new Date(Math.ceil((options.now.getTime() + 1) / endStepMs) * endStepMs);
  const last = experiment.endDate !== null && experiment.endDate < now ? experiment.endDate : now;
  if (metrics.length === 0 || experiment.startDate === null || experiment.startDate >= last)
    return metrics.map(() => ({}));
  const ends = dayEnds(experiment.startDate, last, options.project.timezone);
  const prepared = prepare(deps, experiment, options);
  const { sums } = await ask(
    deps,
    experiment,
    prepared,
    metrics.map(({ metric }) => metric),
    { ...options, dayEnds: ends.map(({ at }) => at) },
  );
  const { days = [] } = sums;
  const series: JsonObject[] = [];
  for (const [index, metric] of metrics.entries()) {
    const byDay: JsonObject = {};
    for (const [at, { day }] of ends.entries()) {
      // Other requests run in between: many days of many metrics take a second.
      await new Promise(setImmediate);
      const { exposures, metrics: all } = days[at]!;
      byDay[day] = judgedResult(experiment, prepared, metric, {
        exposures,
        sums: all[index]!,
      }) as unknown as Json;
    }
    series.push(byDay);
  }
  return series;
}

/** The ends of the last days from one moment to another, which is the end of the last day. */
function dayEnds(start: Date, to: Date, timezone: string): { day: string; at: Date }[] {
  // An experiment may have started centuries ago: days that are not shown are not computed.
  const from = new Date(Math.max(start.getTime(), to.getTime() - (seriesDaysMax + 1) * dayMs));
  const dayAt = (at: number) => new Date(wallTimeAt(at, timezone)).toISOString().slice(0, 10);
  const ends: { day: string; at: Date }[] = [];
  let day = dayAt(from.getTime());
  // Offsets change in multiples of a quarter of an hour.
  const step = 900_000;
  for (let at = Math.ceil((from.getTime() + 1) / step) * step; at < to.getTime(); at += step) {
    const next = dayAt(at);
    if (next !== day) ends.push({ day, at: new Date(at) });
    day = next;
  }
  return [...ends, { day, at: to }].slice(-seriesDaysMax);
}
