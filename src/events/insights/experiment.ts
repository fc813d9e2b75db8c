/**
 * Exposures of an experiment and the sums of its metrics per variant. Statistics are computed from the sums elsewhere.
 *
 * Source: contract, experiments 2.1, 2.2 and 2.12.
 */

import type { JsonObject } from "../../lib/json.ts";
import { isAboutPerson, UnknownQueryError } from "../event-filters.ts";
import { type EventSql, stringAt } from "../sql-dialect.ts";
import { getConditions, objectsIn, type TrendsRequest } from "./event-source.ts";

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
  /** Omits the exposures, for a caller that has them. */
  metricsOnly?: boolean | undefined;
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
  /** Funnels: persons who reached each step. */
  steps?: number[];
}

export interface ExperimentSums {
  exposures: ExposureCount[];
  /** In the order of the request's metrics. */
  metrics: MetricSums[][];
}

/** Computes exposures and metrics. @throws {UnknownQueryError} a filter or aggregation is not supported */
export async function computeExperiment(store: EventSql, request: TrendsRequest): Promise<JsonObject> {
  const experiment = request.query as unknown as ExperimentRequest;
  const sql = new ExperimentSql(store, request.projectId, experiment);
  const exposures = experiment.metricsOnly ? [] : await sql.exposures();
  const metrics: MetricSums[][] = [];
  for (const metric of experiment.metrics) metrics.push(await sql.sums(metric));
  return { exposures, metrics } as unknown as JsonObject;
}

/** UUIDs of the exposed persons, those who saw several variants included. */
export async function findExposed(store: EventSql, request: TrendsRequest): Promise<string[]> {
  const experiment = request.query as unknown as ExperimentRequest;
  return await new ExperimentSql(store, request.projectId, experiment).units();
}

const quarterMicros = 900_000_000;
/** Ordered before every event of the same moment. */
const beforeAll = -1;

class ExperimentSql {
  constructor(
    private readonly store: EventSql,
    private readonly projectId: number,
    private readonly experiment: ExperimentRequest,
  ) {}

  async exposures(): Promise<ExposureCount[]> {
    const { periodStarts } = this.experiment;
    // ClickHouse reads the literal `(0)::DOUBLE` as a text that is no number.
    const later = periodStarts.map((at) => `CASE WHEN f >= ${at} THEN 1 ELSE 0 END`).join(" + ");
    const period = later === "" ? "0::DOUBLE" : `(${later})::DOUBLE`;
    const rows = await this.store.rows(
      `WITH ${this.exposed([], 0)}
       SELECT v, k > 1 AS is_multiple, ${period} AS period, floor(f / ${quarterMicros}.0)::DOUBLE AS quarter,
         count(*)::DOUBLE AS persons
       FROM exposed GROUP BY ALL ORDER BY quarter, v`,
    );
    return (rows as [string, boolean | number, number, number, number][]).map(
      ([variant, isMultiple, inPeriod, quarter, persons]) => ({
        variant,
        isMultiple: Boolean(isMultiple),
        period: inPeriod,
        at: (quarter * quarterMicros) / 1_000,
        persons,
      }),
    );
  }

  async units(): Promise<string[]> {
    const uuids: string[] = [];
    const sql = `WITH ${this.exposed([], 0)} SELECT who::VARCHAR FROM exposed`;
    for await (const rows of this.store.portions(sql))
      for (const [uuid] of rows) if (typeof uuid === "string") uuids.push(uuid);
    return uuids;
  }

  async sums(metric: MetricRequest): Promise<MetricSums[]> {
    switch (metric.type) {
      case "mean":
        return await this.meanSums(metric);
      case "ratio":
        return await this.ratioSums(metric);
      case "funnel":
        return await this.funnelSums(metric);
      case "retention":
        return await this.retentionSums(metric);
    }
  }

  /** CTEs `found` and `exposed`: the events that matter, and each unit's first exposure. */
  private exposed(sources: readonly MetricSource[], lookbackMicros: number): string {
    const { dialect, eventProperties } = this.store;
    const { flagKey, variants, start, end, exposure, activation, groupType, isEveryone } = this.experiment;
    const isExposure = isEveryone
      ? ["true"]
      : exposure === undefined
        ? [
            "e.event = '$feature_flag_called'",
            `${stringAt(dialect, eventProperties, "$feature_flag")} = ${dialect.text(flagKey)}`,
          ]
        : this.conditions(exposure);
    const property = exposure === undefined ? "$feature_flag_response" : `$feature/${flagKey}`;
    const variant = isEveryone ? dialect.text(variants[0]!) : stringAt(dialect, eventProperties, property);
    const known = variants.map(dialect.text).join(", ");
    const matches = [...sources, ...(activation === undefined ? [] : [activation])].map((source) =>
      this.conditions(source).join(" AND "),
    );
    const columns = [
      `${this.unit()} AS who`,
      `${dialect.micros(dialect.time("e"))} AS moment, CASE WHEN e.historical THEN 1 ELSE 0 END AS lane, e.seq AS seq`,
      `CASE WHEN ${isExposure.join(" AND ")} AND ${variant} IN (${known}) THEN ${variant} END AS variant`,
      ...sources.flatMap((source, index) => [
        `coalesce((${matches[index]}), false) AS m_${index}`,
        `${this.value(source)} AS v_${index}`,
      ]),
      ...(activation === undefined ? [] : [`coalesce((${matches.at(-1)}), false) AS is_activation`]),
    ];
    const readsPersons = [exposure, activation, ...sources].some(
      (source) => source !== undefined && objectsIn(source.properties).some(isAboutPerson),
    );
    const join = readsPersons ? dialect.personOfEvent(this.projectId) : dialect.ownerOfEvent(this.projectId);
    const within = [
      `e.project_id = ${this.projectId}`,
      `${dialect.time("e")} >= ${dialect.timestamp(start - lookbackMicros)}`,
      `${dialect.time("e")} < ${dialect.timestamp(end)}`,
      `((${isExposure.join(" AND ")})${matches.map((match) => ` OR (${match})`).join("")})`,
      ...(groupType === undefined ? [] : [`${this.unit()} IS NOT NULL`]),
    ];
    const first = `first_exposure AS (
         SELECT who, min(moment) AS f, ${dialect.valueAtLeast("variant", dialect.triple("moment", "lane", "seq"))} AS v,
           count(DISTINCT variant) AS k
         FROM found WHERE variant IS NOT NULL AND moment >= ${start} GROUP BY who
       )`;
    const active =
      activation === undefined
        ? `exposed ${dialect.madeOnce} (SELECT who, f, v, k FROM first_exposure)`
        : `exposed ${dialect.madeOnce} (
         SELECT x.who AS who, min(e.moment) AS f, any_value(x.v) AS v, any_value(x.k) AS k
         FROM first_exposure x JOIN found e ON e.who = x.who WHERE e.is_activation AND e.moment >= x.f GROUP BY x.who
       )`;
    return `found ${dialect.madeOnce} (
         SELECT ${columns.join(", ")} FROM events e ${join} WHERE ${within.join(" AND ")}
       ), ${first}, ${active}`;
  }

  /** CTE `unit`: the exposed units that count, with their variant and exposure. */
  private counted(windowMicros: number | undefined): string {
    const { multiple, maturedOnly, end } = this.experiment;
    const conditions = [
      ...(multiple === "exclude" ? ["k = 1"] : []),
      ...(maturedOnly && windowMicros !== undefined ? [`f + ${windowMicros} <= ${end}`] : []),
    ];
    return `counted AS (SELECT who, v, f FROM exposed${conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`})`;
  }

  private unit(): string {
    const { dialect, eventProperties } = this.store;
    const { groupType } = this.experiment;
    if (groupType === undefined) return dialect.who;
    const json = typeof eventProperties === "string" ? eventProperties : eventProperties.json;
    return dialect.memberText(dialect.memberJson(json, "$groups"), groupType);
  }

  private conditions(source: MetricSource): string[] {
    return getConditions(this.store, source, {});
  }

  /** SQL of the value that one event adds. */
  private value(source: MetricSource): string {
    const { dialect, eventProperties } = this.store;
    const math = source.math ?? "total";
    if (math === "unique_session") return stringAt(dialect, eventProperties, "$session_id");
    if (math === "total" || typeof source.math_property !== "string") return "1.0";
    const text = stringAt(dialect, eventProperties, source.math_property);
    // Text that is no number is 0; an absent property adds nothing.
    return `CASE WHEN ${text} IS NOT NULL THEN coalesce(${dialect.number(text)}, 0) END`;
  }

  /** SQL of a unit's value over its events `e` within a window. */
  private aggregate(source: MetricSource, index: number, within: string): string {
    const when = `FILTER (WHERE e.m_${index} AND ${within})`;
    const math = source.math ?? "total";
    if (math === "total") return `(count(*) ${when})::DOUBLE`;
    if (math === "unique_session") return `(count(DISTINCT e.v_${index}) ${when})::DOUBLE`;
    const of = { sum: "sum", avg: "avg", min: "min", max: "max" }[String(math)];
    if (of === undefined)
      throw new UnknownQueryError(`The math ${JSON.stringify(math)} is not supported here.`);
    return `coalesce(${of}(e.v_${index}) ${when}, 0)::DOUBLE`;
  }

  private after(windowMicros: number | undefined): string {
    return windowMicros === undefined
      ? "e.moment >= x.f"
      : `e.moment >= x.f AND e.moment < x.f + ${windowMicros}`;
  }

  private async meanSums(metric: Extract<MetricRequest, { type: "mean" }>): Promise<MetricSums[]> {
    const { source, windowMicros, threshold, lookbackMicros = 0 } = metric;
    const hasBefore = lookbackMicros > 0;
    const before = `e.moment < x.f AND e.moment >= x.f - ${lookbackMicros}`;
    const after = this.after(windowMicros);
    const cut = (value: string) =>
      threshold === undefined ? value : `CASE WHEN ${value} >= ${threshold} THEN 1.0 ELSE 0.0 END`;
    const columns = [
      `${cut(this.aggregate(source, 0, after))} AS raw`,
      ...(hasBefore ? [`${cut(this.aggregate(source, 0, before))} AS x`] : []),
    ];
    const { bounds, clipped } = this.winsorized(metric);
    const sums = ["y", "y * y", ...(hasBefore ? ["x", "x * x", "y * x"] : [])];
    const rows = await this.store.rows(
      `WITH ${this.exposed([source], lookbackMicros)}, ${this.counted(windowMicros)},
       person AS (
         SELECT x.who AS who, x.v AS v, ${columns.join(", ")}
         FROM counted x JOIN found e ON e.who = x.who GROUP BY x.who, x.v, x.f
       )${bounds},
       clipped AS (SELECT v, ${clipped} AS y${hasBefore ? ", x" : ""} FROM person)
       SELECT v, count(*)::DOUBLE AS n, ${sums.map((sum, at) => `sum(${sum})::DOUBLE AS s_${at}`).join(", ")}
       FROM clipped GROUP BY v ORDER BY v`,
    );
    return (rows as [string, ...number[]][]).map(([variant, n, y, yy, x, xx, xy]) => ({
      variant,
      n: n!,
      y: y!,
      yy: yy!,
      ...(hasBefore ? { x, xx, xy } : {}),
    }));
  }

  /** Bounds are those of all units together: bounds per variant would hide an effect in the tail. */
  private winsorized({ lower, upper, ignoresZeros }: Extract<MetricRequest, { type: "mean" }>) {
    const { dialect } = this.store;
    const value = ignoresZeros ? "CASE WHEN raw <> 0 THEN raw END" : "raw";
    const parts = [
      ...(lower === undefined ? [] : [`${dialect.quantile(lower, value)} AS low`]),
      ...(upper === undefined ? [] : [`${dialect.quantile(upper, value)} AS high`]),
    ];
    if (parts.length === 0) return { bounds: "", clipped: "raw" };
    let clipped = "raw";
    if (lower !== undefined) clipped = `greatest(${clipped}, coalesce((SELECT low FROM bounds), ${clipped}))`;
    if (upper !== undefined) clipped = `least(${clipped}, coalesce((SELECT high FROM bounds), ${clipped}))`;
    return { bounds: `, bounds AS (SELECT ${parts.join(", ")} FROM person)`, clipped };
  }

  private async ratioSums(metric: Extract<MetricRequest, { type: "ratio" }>): Promise<MetricSums[]> {
    const { numerator, denominator, windowMicros } = metric;
    const after = this.after(windowMicros);
    return await this.pairSums(
      `${this.exposed([numerator, denominator], 0)}, ${this.counted(windowMicros)},
       person AS (
         SELECT x.v AS v, ${this.aggregate(numerator, 0, after)} AS y, ${this.aggregate(denominator, 1, after)} AS d
         FROM counted x JOIN found e ON e.who = x.who GROUP BY x.who, x.v, x.f
       )`,
    );
  }

  private async retentionSums(metric: Extract<MetricRequest, { type: "retention" }>): Promise<MetricSums[]> {
    const { start, completion, windowMicros, fromMicros, toMicros } = metric;
    return await this.pairSums(
      `${this.exposed([start, completion], 0)}, ${this.counted(windowMicros)},
       begun AS (
         SELECT x.who AS who, x.v AS v, min(CASE WHEN e.m_0 AND ${this.after(windowMicros)} THEN e.moment END) AS s
         FROM counted x JOIN found e ON e.who = x.who GROUP BY x.who, x.v, x.f
       ),
       person AS (
         SELECT b.v AS v, CASE WHEN any_value(b.s) IS NULL THEN 0.0 ELSE 1.0 END AS d,
           max(CASE WHEN e.m_1 AND e.moment >= b.s + ${fromMicros} AND e.moment < b.s + ${toMicros} THEN 1.0 ELSE 0.0 END) AS y
         FROM begun b JOIN found e ON e.who = b.who GROUP BY b.who, b.v
       )`,
    );
  }

  /** Sums of `person` with a numerator `y` and a denominator `d`. */
  private async pairSums(person: string): Promise<MetricSums[]> {
    const rows = await this.store.rows(
      `WITH ${person}
       SELECT v, count(*)::DOUBLE AS n, sum(y)::DOUBLE AS sy, sum(y * y)::DOUBLE AS syy, sum(d)::DOUBLE AS sd,
         sum(d * d)::DOUBLE AS sdd, sum(y * d)::DOUBLE AS syd
       FROM person GROUP BY v ORDER BY v`,
    );
    return (rows as [string, number, number, number, number, number, number][]).map(
      ([variant, n, y, yy, d, dd, yd]) => ({ variant, n, y, yy, d, dd, yd }),
    );
  }

  private async funnelSums(metric: Extract<MetricRequest, { type: "funnel" }>): Promise<MetricSums[]> {
    const { series, isOrdered, windowMicros, lookbackMicros = 0 } = metric;
    const hasBefore = isOrdered && lookbackMicros > 0;
    const after = this.after(windowMicros);
    const reached = isOrdered
      ? this.orderedSteps(series.length, { prefix: "after", start: "x.f", within: after })
      : this.anyOrder(series, after);
    const before = hasBefore
      ? this.orderedSteps(series.length, {
          prefix: "before",
          start: `x.f - ${lookbackMicros}`,
          within: `e.moment >= x.f - ${lookbackMicros} AND e.moment < x.f`,
        })
      : "";
    const last = series.length;
    const columns = [
      ...series.map(
        (_, index) => `sum(CASE WHEN a.step > ${index} THEN 1 ELSE 0 END)::DOUBLE AS s_${index + 1}`,
      ),
      ...(hasBefore
        ? [
            `sum(CASE WHEN b.step = ${last} THEN 1 ELSE 0 END)::DOUBLE AS x`,
            `sum(CASE WHEN a.step = ${last} AND b.step = ${last} THEN 1 ELSE 0 END)::DOUBLE AS xy`,
          ]
        : []),
    ];
    const rows = await this.store.rows(
      `WITH ${this.exposed(series, lookbackMicros)}, ${this.counted(windowMicros)}, ${reached}${before === "" ? "" : `, ${before}`}
       SELECT x.v AS v, count(*)::DOUBLE AS n, ${columns.join(", ")}
       FROM counted x JOIN after_steps a ON a.who = x.who ${hasBefore ? "JOIN before_steps b ON b.who = x.who" : ""}
       GROUP BY x.v ORDER BY v`,
    );
    return (rows as [string, ...number[]][]).map(([variant, n, ...others]) => {
      const steps = others.slice(0, series.length);
      const y = steps.at(-1)!;
      const [x, xy] = others.slice(series.length);
      return { variant, n: n!, y, yy: y, steps, ...(hasBefore ? { x, xx: x, xy } : {}) };
    });
  }

  /**
   * CTE `<prefix>_steps`: the number of steps each unit did in order. The window is anchored at the exposure, so the
   * first event of each step after the one before is the best.
   */
  private orderedSteps(count: number, of: { prefix: string; start: string; within: string }): string {
    const { dialect } = this.store;
    const { prefix, start, within } = of;
    const at = (index: number) => `${prefix}_${index}`;
    const event = dialect.triple("e.moment", "e.lane", "e.seq");
    const ctes = [
      `${at(0)} AS (SELECT x.who AS who, x.f AS f, ${dialect.triple(start, String(beforeAll), String(beforeAll))} AS t FROM counted x)`,
    ];
    for (let index = 1; index <= count; index++)
      ctes.push(
        `${at(index)} AS (
           SELECT x.who AS who, any_value(x.f) AS f, min(${event}) AS t FROM ${at(index - 1)} x JOIN found e ON e.who = x.who
           WHERE e.m_${index - 1} AND ${within} AND ${event} > x.t GROUP BY x.who
         )`,
      );
    const all = Array.from(
      { length: count + 1 },
      (_, index) => `SELECT who, ${index} AS step FROM ${at(index)}`,
    );
    return `${ctes.join(", ")}, ${prefix}_steps AS (SELECT who, max(step) AS step FROM (${all.join(" UNION ALL ")}) GROUP BY who)`;
  }

  /** CTE `after_steps` of an unordered funnel: how many steps each unit did; the same step twice needs two events. */
  private anyOrder(series: readonly MetricSource[], within: string): string {
    const conditions = series.map((source) => this.conditions(source).join(" AND "));
    const done = series.map((_, index) => {
      const times = conditions.slice(0, index + 1).filter((other) => other === conditions[index]).length;
      return `CASE WHEN count(*) FILTER (WHERE e.m_${index} AND ${within}) >= ${times} THEN 1 ELSE 0 END`;
    });
    return `after_steps AS (
         SELECT x.who AS who, ${done.join(" + ")} AS step FROM counted x JOIN found e ON e.who = x.who GROUP BY x.who, x.f
       )`;
  }
}
