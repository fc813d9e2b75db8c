/**
 * Exposures of an experiment and the sums of its metrics per variant. Statistics are computed from the sums elsewhere.
 *
 * Source: contract, experiments 2.1, 2.2 and 2.12.
 */

import type { JsonObject } from "../../lib/json/value.ts";

/** Events that a metric counts: an `EventsNode` of the API. */
export type MetricSource = JsonObject;

interface Windowed {
  /** Actions count for this long after the exposure; absent: until the end. */
  windowMicros?: number;
}

export type MetricRequest =
  | (Windowed & {
      type: "mean";
      source: MetricSource;
      /** Winsorizing: percentiles of all persons together, 0 to 1. */
      lower?: number;
      upper?: number;
      ignoresZeros?: boolean;
      /** The value is 1 for persons with at least this much, else 0. */
      threshold?: number;
      /** CUPED: time before the exposure. */
      lookbackMicros?: number;
    })
  | (Windowed & { type: "ratio"; numerator: MetricSource; denominator: MetricSource })
  | (Windowed & {
      type: "funnel";
      series: MetricSource[];
      isOrdered: boolean;
      lookbackMicros?: number;
    })
  | (Windowed & {
      type: "retention";
      start: MetricSource;
      completion: MetricSource;
      /** Of the return, after the start; the end is exclusive. */
      fromMicros: number;
      toMicros: number;
    });

/** What to compute; a plain object, because it is sent to the engine. */
export interface ExperimentRequest {
  flagKey: string;
  /** Keys of variants, those of holdouts included. */
  variants: string[];
  /** Microseconds since 1970; the end is exclusive. */
  start: number;
  end: number;
  /** Absent: `$feature_flag_called`. */
  exposure?: MetricSource | undefined;
  /** Every person with an event is exposed to the only variant; for planning. */
  isEveryone?: boolean | undefined;
  /** A person counts from the first such event at or after the exposure. */
  activation?: MetricSource;
  /** Persons who saw several variants: none of them, or the first. */
  multiple: "exclude" | "first_seen";
  /** Only persons whose conversion window has passed. */
  maturedOnly: boolean;
  /** Name of a group type: its groups are the units instead of persons. */
  groupType?: string;
  /** Starts of periods with other percentages, ascending. */
  periodStarts: number[];
  metrics: MetricRequest[];
  /** Instead of the sums: those at the end of each of these days, ascending; the last one is `end`. */
  dayEnds?: number[] | undefined;
}

/** Persons by first variant, period of the percentages, and quarter of an hour of the exposure. */
export interface ExposureCount {
  variant: string;
  isMultiple: boolean;
  period: number;
  /** Milliseconds since 1970. */
  at: number;
  persons: number;
}

/** Sums of one variant; see `Sums` of the statistics. */
export interface MetricSums {
  variant: string;
  n: number;
  y: number;
  yy: number;
  d?: number;
  dd?: number;
  yd?: number;
  x?: number;
  xx?: number;
  xy?: number;
  /** With CUPED: persons who did anything before their exposure. */
  active?: number;
  /** Funnels: persons who reached each step. */
  steps?: number[];
}

export interface ExperimentSums {
  exposures: ExposureCount[];
  /** In the order of the request's metrics. */
  metrics: MetricSums[][];
  /** With `dayEnds`: the same at the end of each day. */
  days?: ExperimentSums[];
}
