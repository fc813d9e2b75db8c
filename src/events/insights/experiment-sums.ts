/** The sums that each type of metric has, and the events that it reads. */

import type { MetricRequest, MetricSource, MetricSums } from "./experiment.ts";

/** SQL of one metric. */
export interface MetricSql {
  /** Columns of `person`: aggregates over the events `e` of a unit `x`. */
  aggregates: string[];
  /** CTEs after `person`, and joins of `person x` with them. */
  ctes: string[];
  joins: string[];
  /** Columns of `measured`: `y`, and `d` or `x` and `b`, as SQL over `person x` and the joins. */
  columns: Record<string, string>;
  /** Condition on units whose conversion window has passed. */
  counts: string;
  /** Funnels: the column with the number of steps, and their count. */
  steps?: number;
}

/** Sums of a metric by name: of one column of `measured`, or of the product of two. */
function getSums({ columns, steps = 1 }: MetricSql): Record<string, [string, string?]> {
  return {
    n: ["n"],
    y: ["y"],
    yy: ["y", "y"],
    ...(columns.d === undefined ? {} : { d: ["d"], dd: ["d", "d"], yd: ["y", "d"] }),
    ...(columns.x === undefined ? {} : { x: ["x"], xx: ["x", "x"], xy: ["y", "x"], active: ["b"] }),
    ...Object.fromEntries(Array.from({ length: steps - 1 }, (_, at) => [`s${at + 1}`, [`s${at + 1}`]])),
  };
}

export const sumNames = (metric: MetricSql): string[] => Object.keys(getSums(metric));

/** SQL of what is summed, in the order of the names. */
export const sumColumns = (metric: MetricSql, index: number): string[] =>
  Object.values(getSums(metric)).map((columns) => columns.map((name) => `${name}_${index}`).join(" * "));

export function toSums(
  variant: string,
  { steps }: MetricSql,
  names: readonly string[],
  totals: readonly number[],
): MetricSums {
  const all = Object.fromEntries(names.map((name, at) => [name, totals[at]!]));
  const { n, y, yy, d, dd, yd, x, xx, xy, active } = all;
  return {
    variant,
    n: n!,
    y: y!,
    yy: yy!,
    ...(d === undefined ? {} : { d, dd, yd }),
    ...(x === undefined ? {} : { x, xx, xy, active }),
    ...(steps === undefined
      ? {}
      : { steps: [...Array.from({ length: steps - 1 }, (_, at) => all[`s${at + 1}`]!), y!] }),
  };
}

/** The events that a metric reads. */
export function getSources(metric: MetricRequest): MetricSource[] {
  switch (metric.type) {
    case "mean":
      return [metric.source];
    case "ratio":
      return [metric.numerator, metric.denominator];
    case "funnel":
      return metric.series;
    case "retention":
      return [metric.start, metric.completion];
  }
}

/** Whether a source reads properties of its events. */
export const readsProperties = ({ math = "total", properties = null }: MetricSource): boolean =>
  math !== "total" || (Array.isArray(properties) && properties.length > 0);

/** The time before an exposure that a metric reads, for CUPED. */
export const getLookback = (metric: MetricRequest) =>
  metric.type === "mean" || (metric.type === "funnel" && metric.isOrdered) ? (metric.lookbackMicros ?? 0) : 0;
