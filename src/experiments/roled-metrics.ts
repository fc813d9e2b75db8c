/** The metrics of an experiment and their roles. */

import type { Reading } from "../accounts/db.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { type Experiment, savedMetricLinks, savedMetricsById } from "./store.ts";

export type MetricRole = "primary" | "secondary" | "guardrail";

/** A metric and its role in the experiment. */
export interface RoledMetric {
  metric: JsonObject;
  role: MetricRole;
}

/** All metrics in the order of results: primary, secondary, saved, unless the experiment has an order. */
export function getMetrics(db: Reading, experiment: Experiment): RoledMetric[] {
  const links = savedMetricLinks(experiment);
  const ids = links.map(({ id }) => id);
  const saved = savedMetricsById(db, experiment.projectId, ids);
  const roled = (metrics: readonly JsonObject[], role: MetricRole): RoledMetric[] =>
    metrics.map((metric) => ({ metric, role: isJsonObject(metric.guardrail) ? "guardrail" : role }));
  const all = [
    ...roled(experiment.metrics, "primary"),
    ...roled(experiment.metricsSecondary, "secondary"),
    ...links.flatMap(({ id, role }): RoledMetric[] => {
      const metric = saved.get(id);
      if (metric === undefined) return [];
      return [
        { metric: { ...metric.query, name: metric.query.name ?? metric.name }, role: role as MetricRole },
      ];
    }),
  ];
  return inOrder(all, experiment);
}

/** Secondary metrics after the others, each part in its order; unlisted ones follow. */
function inOrder(all: RoledMetric[], experiment: Experiment): RoledMetric[] {
  const { primaryMetricsOrder: primary, secondaryMetricsOrder: secondary } = experiment;
  if (primary === null && secondary === null) return all;
  const rank = ({ metric, role }: RoledMetric) => {
    const order = (role === "secondary" ? secondary : primary) ?? [];
    const position = order.indexOf(String(metric.uuid));
    return (
      (role === "secondary" ? (primary?.length ?? 0) + 1 : 0) + (position === -1 ? order.length : position)
    );
  };
  return all
    .map((item) => ({ item, rank: rank(item) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}

/** The events that a metric counts. */
export function getSources(metric: JsonObject): JsonObject[] {
  const { source, numerator, denominator, start_event: start, completion_event: completion, series } = metric;
  const all: (Json | undefined)[] = [source, numerator, denominator, start, completion];
  return [...all, ...(Array.isArray(series) ? series : [])].filter(isJsonObject);
}

/** Whether a metric of an experiment counts an event. */
export function usesEvent(db: Reading, experiment: Experiment, event: string): boolean {
  return getMetrics(db, experiment).some(({ metric }) =>
    getSources(metric).some((source) => source.event === event),
  );
}

/** Metrics that must not get worse, else the flag is switched off. */
export function rollbackGuardrails(db: Reading, experiment: Experiment): RoledMetric[] {
  return getMetrics(db, experiment).filter(
    ({ role, metric: { guardrail } }) =>
      role === "guardrail" && isJsonObject(guardrail) && guardrail.action === "rollback",
  );
}
