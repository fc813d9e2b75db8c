/**
 * SQL of an experiment's exposures and sums: one query that reads the events once (contract: experiments 2.12).
 *
 * Sums are by variant, period and quarter of an hour of the exposure, so that the exposures need no query of their own.
 */

import type { JsonObject } from "../../lib/json.ts";
import { isAboutPerson, UnknownQueryError } from "../event-filters.ts";
import { type EventSql, stringAt } from "../sql-dialect.ts";
import { getConditions, objectsIn, type TrendsRequest } from "./event-source.ts";
import type {
  ExperimentRequest,
  ExposureCount,
  MetricRequest,
  MetricSource,
  MetricSums,
} from "./experiment.ts";
import { lookbackOf, type MetricSql, sourcesOf, sumColumns, sumNames, toSums } from "./experiment-sums.ts";

const quarterMicros = 900_000_000;
/** Moments before and after every event. */
const beforeAll = -1;
const never = Number.MAX_SAFE_INTEGER;

/** Computes exposures and metrics. @throws {UnknownQueryError} a filter or aggregation is not supported */
export async function computeExperiment(store: EventSql, request: TrendsRequest): Promise<JsonObject> {
  const experiment = request.query as unknown as ExperimentRequest;
  return (await new ExperimentSql(store, request.projectId, experiment).compute()) as unknown as JsonObject;
}

/** UUIDs of the exposed persons, those who saw several variants included. */
export async function findExposed(store: EventSql, request: TrendsRequest): Promise<string[]> {
  const experiment = request.query as unknown as ExperimentRequest;
  return await new ExperimentSql(store, request.projectId, experiment).units();
}

type Row = [
  variant: string,
  isMultiple: boolean | number,
  period: number,
  quarter: number,
  persons: number,
  ...sums: number[],
];

class ExperimentSql {
  /** Columns of `found` by their SQL: metrics often read the same events. */
  private readonly columns = new Map<string, string>();
  private readonly matches = new Set<string>();

  constructor(
    private readonly store: EventSql,
    private readonly projectId: number,
    private readonly experiment: ExperimentRequest,
  ) {}

  /** UUIDs of all exposed units. */
  async units(): Promise<string[]> {
    const uuids: string[] = [];
    const sql = `WITH ${this.exposed()} SELECT who::VARCHAR FROM exposed`;
    for await (const rows of this.store.portions(sql))
      for (const [uuid] of rows) if (typeof uuid === "string") uuids.push(uuid);
    return uuids;
  }

  /** Exposures, and the sums of every metric. */
  async compute(): Promise<{ exposures: ExposureCount[]; metrics: MetricSums[][] }> {
    const metrics = this.experiment.metrics.map((metric, index) => this.metric(metric, index));
    const sums = metrics.map((metric, index) => sumColumns(metric, index));
    const { periodStarts } = this.experiment;
    // ClickHouse reads the literal `(0)::DOUBLE` as a text that is no number.
    const later = periodStarts.map((at) => `CASE WHEN f >= ${at} THEN 1 ELSE 0 END`).join(" + ");
    const period = later === "" ? "0::DOUBLE" : `(${later})::DOUBLE`;
    const rows = await this.store.rows(
      `WITH ${this.exposed()}${this.measured(metrics)}
       SELECT v, k > 1 AS is_multiple, ${period} AS period, floor(f / ${quarterMicros}.0)::DOUBLE AS quarter,
         count(*)::DOUBLE AS persons${sums
           .flat()
           .map((sum, at) => `, sum(${sum})::DOUBLE AS sum_${at}`)
           .join("")}
       FROM ${metrics.length === 0 ? "exposed" : "measured"} GROUP BY ALL ORDER BY quarter, v`,
    );
    return this.read(rows as Row[], metrics);
  }

  private read(rows: readonly Row[], metrics: readonly MetricSql[]) {
    const exposures = rows.map(([variant, isMultiple, inPeriod, quarter, persons]): ExposureCount => {
      return {
        variant,
        isMultiple: Boolean(isMultiple),
        period: inPeriod,
        at: (quarter * quarterMicros) / 1_000,
        persons,
      };
    });
    const { multiple } = this.experiment;
    const counted = rows.filter(([, isMultiple]) => multiple === "first_seen" || !isMultiple);
    const variants = [...new Set(counted.map(([variant]) => variant))].sort();
    let first = 5;
    const read = metrics.map((metric): MetricSums[] => {
      const names = sumNames(metric);
      const from = first;
      first += names.length;
      return variants
        .map((variant) => {
          const totals = names.map(() => 0);
          for (const row of counted)
            if (row[0] === variant) for (const at of names.keys()) totals[at]! += Number(row[from + at]);
          return toSums(variant, metric, names, totals);
        })
        .filter(({ n }) => n > 0);
    });
    return { exposures, metrics: read };
  }

  /** The name of a column of `found`. */
  private column(sql: string): string {
    const name = this.columns.get(sql) ?? `c_${this.columns.size}`;
    this.columns.set(sql, name);
    return name;
  }

  /** The column of `found` that tells whether an event is one of the source. */
  private match(source: MetricSource): string {
    const sql = getConditions(this.store, source, {}).join(" AND ");
    this.matches.add(sql);
    return `e.${this.column(`coalesce((${sql}), false)`)}`;
  }

  /** CTEs `found` and `exposed`: the events that matter, and each unit's first exposure. Called after all metrics. */
  private exposed(): string {
    const { dialect, eventProperties } = this.store;
    const { flagKey, variants, start, end, exposure, activation, groupType, isEveryone, metrics } =
      this.experiment;
    const isActivation = activation === undefined ? undefined : this.match(activation);
    const isExposure = isEveryone
      ? ["true"]
      : exposure === undefined
        ? [
            "e.event = '$feature_flag_called'",
            `${stringAt(dialect, eventProperties, "$feature_flag")} = ${dialect.text(flagKey)}`,
          ]
        : getConditions(this.store, exposure, {});
    const property = exposure === undefined ? "$feature_flag_response" : `$feature/${flagKey}`;
    const variant = isEveryone ? dialect.text(variants[0]!) : stringAt(dialect, eventProperties, property);
    const known = variants.map(dialect.text).join(", ");
    const columns = [
      `${this.unit()} AS who`,
      `${dialect.micros(dialect.time("e"))} AS moment, CASE WHEN e.historical THEN 1 ELSE 0 END AS lane, e.seq AS seq`,
      `CASE WHEN ${isExposure.join(" AND ")} AND ${variant} IN (${known}) THEN ${variant} END AS variant`,
      ...[...this.columns].map(([sql, name]) => `${sql} AS ${name}`),
    ];
    const sources = [exposure, activation, ...metrics.flatMap(sourcesOf)];
    const readsPersons = sources.some((source) => objectsIn(source?.properties).some(isAboutPerson));
    const join = readsPersons ? dialect.personOfEvent(this.projectId) : dialect.ownerOfEvent(this.projectId);
    const lookback = Math.max(0, ...metrics.map(lookbackOf));
    const within = [
      `e.project_id = ${this.projectId}`,
      `${dialect.time("e")} >= ${dialect.timestamp(start - lookback)}`,
      `${dialect.time("e")} < ${dialect.timestamp(end)}`,
      `((${isExposure.join(" AND ")})${[...this.matches].map((match) => ` OR (${match})`).join("")})`,
      ...(groupType === undefined ? [] : [`${this.unit()} IS NOT NULL`]),
    ];
    const first = `first_exposure AS (
         SELECT who, min(moment) AS f, ${dialect.valueAtLeast("variant", dialect.triple("moment", "lane", "seq"))} AS v,
           CASE WHEN min(variant) = max(variant) THEN 1 ELSE 2 END AS k
         FROM found WHERE variant IS NOT NULL AND moment >= ${start} GROUP BY who
       )`;
    const active =
      isActivation === undefined
        ? `exposed ${dialect.asMaterialized} (SELECT who, f, v, k FROM first_exposure)`
        : `exposed ${dialect.asMaterialized} (
         SELECT x.who AS who, min(e.moment) AS f, any_value(x.v) AS v, any_value(x.k) AS k
         FROM first_exposure x JOIN found e ON e.who = x.who WHERE ${isActivation} AND e.moment >= x.f GROUP BY x.who
       )`;
    return `found ${dialect.asMaterialized} (
         SELECT ${columns.join(", ")} FROM events e ${join} WHERE ${within.join(" AND ")}
       ), ${first}, ${active}`;
  }

  /** CTE `measured`: the values of every metric per exposed unit. */
  private measured(metrics: readonly MetricSql[]): string {
    if (metrics.length === 0) return "";
    const { dialect } = this.store;
    const aggregates = metrics.flatMap((metric) => metric.aggregates);
    const columns = metrics.flatMap(({ columns, counts }, index) => {
      // Multiplied by the condition: a unit that does not count adds 0 to every sum.
      const value = (sql: string) => (counts === "" ? sql : `CASE WHEN ${counts} THEN ${sql} ELSE 0e0 END`);
      return Object.entries({ n: "1e0", ...columns }).map(
        ([name, sql]) => `${value(sql)} AS ${name}_${index}`,
      );
    });
    return `, person ${dialect.asMaterialized} (
         SELECT x.who AS who, x.v AS v, x.k AS k, x.f AS f${aggregates.map((sql) => `, ${sql}`).join("")}
         FROM exposed x JOIN found e ON e.who = x.who GROUP BY x.who, x.v, x.k, x.f
       )${metrics.flatMap(({ ctes }) => ctes.map((cte) => `, ${cte}`)).join("")},
       measured AS (
         SELECT x.v AS v, x.k AS k, x.f AS f, ${columns.join(", ")}
         FROM person x ${metrics.flatMap(({ joins }) => joins).join(" ")}
       )`;
  }

  private unit(): string {
    const { dialect, eventProperties } = this.store;
    const { groupType } = this.experiment;
    if (groupType === undefined) return dialect.who;
    const json = typeof eventProperties === "string" ? eventProperties : eventProperties.json;
    return dialect.memberText(dialect.memberJson(json, "$groups"), groupType);
  }

  private metric(metric: MetricRequest, index: number): MetricSql {
    const { windowMicros } = metric;
    const { maturedOnly, end } = this.experiment;
    const counts = maturedOnly && windowMicros !== undefined ? `x.f + ${windowMicros} <= ${end}` : "";
    switch (metric.type) {
      case "mean":
        return { ...this.mean(metric, index), counts };
      case "ratio":
        return { ...this.ratio(metric, index), counts };
      case "funnel":
        return { ...this.funnel(metric, index), counts };
      case "retention":
        return { ...this.retention(metric, index), counts };
    }
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
  private aggregate(source: MetricSource, within: string): string {
    const when = `FILTER (WHERE ${this.match(source)} AND ${within})`;
    const math = source.math ?? "total";
    if (math === "total") return `(count(*) ${when})::DOUBLE`;
    const value = `e.${this.column(this.value(source))}`;
    if (math === "unique_session") return `(count(DISTINCT ${value}) ${when})::DOUBLE`;
    const of = { sum: "sum", avg: "avg", min: "min", max: "max" }[String(math)];
    if (of === undefined)
      throw new UnknownQueryError(`The math ${JSON.stringify(math)} is not supported here.`);
    return `coalesce(${of}(${value}) ${when}, 0)::DOUBLE`;
  }

  private after(windowMicros: number | undefined): string {
    return windowMicros === undefined
      ? "e.moment >= x.f"
      : `e.moment >= x.f AND e.moment < x.f + ${windowMicros}`;
  }

  private before(lookbackMicros: number): string {
    return `e.moment < x.f AND e.moment >= x.f - ${lookbackMicros}`;
  }

  private mean(metric: Extract<MetricRequest, { type: "mean" }>, index: number): Omit<MetricSql, "counts"> {
    const { source, windowMicros, threshold, lookbackMicros = 0 } = metric;
    const cut = (value: string) =>
      threshold === undefined ? value : `CASE WHEN ${value} >= ${threshold} THEN 1e0 ELSE 0e0 END`;
    const before = this.before(lookbackMicros);
    const { ctes, joins, y } = this.winsorized(metric, index, cut(`x.raw_${index}`));
    return {
      aggregates: [
        `${this.aggregate(source, this.after(windowMicros))} AS raw_${index}`,
        ...(lookbackMicros > 0
          ? [
              `${this.aggregate(source, before)} AS before_${index}`,
              `max(CASE WHEN ${this.match(source)} AND ${before} THEN 1e0 ELSE 0e0 END) AS did_${index}`,
            ]
          : []),
      ],
      ctes,
      joins,
      columns: {
        y,
        ...(lookbackMicros > 0 ? { x: cut(`x.before_${index}`), b: `x.did_${index}` } : {}),
      },
    };
  }

  /** Bounds are those of all counted units together: bounds per variant would hide an effect in the tail. */
  private winsorized(
    { lower, upper, ignoresZeros, windowMicros }: Extract<MetricRequest, { type: "mean" }>,
    index: number,
    raw: string,
  ) {
    const { dialect } = this.store;
    const { multiple, maturedOnly, end } = this.experiment;
    const counted = [
      ...(multiple === "exclude" ? ["x.k = 1"] : []),
      ...(maturedOnly && windowMicros !== undefined ? [`x.f + ${windowMicros} <= ${end}`] : []),
      ...(ignoresZeros ? [`${raw} <> 0`] : []),
    ];
    const value = counted.length === 0 ? raw : `CASE WHEN ${counted.join(" AND ")} THEN ${raw} END`;
    const bounds = [
      ...(lower === undefined ? [] : [`${dialect.quantile(lower, value)} AS low`]),
      ...(upper === undefined ? [] : [`${dialect.quantile(upper, value)} AS high`]),
    ];
    if (bounds.length === 0) return { ctes: [], joins: [], y: raw };
    const name = `bounds_${index}`;
    let y = raw;
    if (lower !== undefined) y = `greatest(${y}, coalesce(${name}.low, ${y}))`;
    if (upper !== undefined) y = `least(${y}, coalesce(${name}.high, ${y}))`;
    return {
      ctes: [`${name} AS (SELECT ${bounds.join(", ")} FROM person x)`],
      joins: [`CROSS JOIN ${name}`],
      y,
    };
  }

  private ratio(metric: Extract<MetricRequest, { type: "ratio" }>, index: number): Omit<MetricSql, "counts"> {
    const after = this.after(metric.windowMicros);
    return {
      aggregates: [
        `${this.aggregate(metric.numerator, after)} AS raw_${index}`,
        `${this.aggregate(metric.denominator, after)} AS per_${index}`,
      ],
      ctes: [],
      joins: [],
      columns: { y: `x.raw_${index}`, d: `x.per_${index}` },
    };
  }

  private retention(
    metric: Extract<MetricRequest, { type: "retention" }>,
    index: number,
  ): Omit<MetricSql, "counts"> {
    const { start, completion, windowMicros, fromMicros, toMicros } = metric;
    const name = `returned_${index}`;
    const began = `x.began_${index}`;
    const starts = `CASE WHEN ${this.match(start)} AND ${this.after(windowMicros)} THEN e.moment ELSE ${never} END`;
    return {
      aggregates: [`min(${starts}) AS began_${index}`],
      ctes: [
        `${name} AS (
         SELECT DISTINCT x.who AS who, 1e0 AS did FROM person x JOIN found e ON e.who = x.who
         WHERE ${this.match(completion)} AND ${began} < ${never}
           AND e.moment >= ${began} + ${fromMicros} AND e.moment < ${began} + ${toMicros}
       )`,
      ],
      joins: [`LEFT JOIN ${name} ON ${name}.who = x.who`],
      // Not `coalesce`: without a match, ClickHouse returns 0 instead of null.
      columns: {
        y: `CASE WHEN ${name}.did = 1e0 THEN 1e0 ELSE 0e0 END`,
        d: `CASE WHEN ${began} < ${never} THEN 1e0 ELSE 0e0 END`,
      },
    };
  }

  private funnel(
    metric: Extract<MetricRequest, { type: "funnel" }>,
    index: number,
  ): Omit<MetricSql, "counts"> {
    const { series, isOrdered, windowMicros, lookbackMicros = 0 } = metric;
    const after = this.after(windowMicros);
    const count = series.length;
    const reached = isOrdered
      ? this.orderedSteps(series, { name: `after_${index}`, start: "x.f", within: after })
      : this.anyOrder(series, after, index);
    const aggregates = [...reached.aggregates];
    const ctes = [...reached.ctes];
    const joins = [...reached.joins];
    const columns: Record<string, string> = {
      y: `CASE WHEN ${reached.step} = ${count} THEN 1e0 ELSE 0e0 END`,
    };
    for (let step = 1; step < count; step++)
      columns[`s${step}`] = `CASE WHEN ${reached.step} >= ${step} THEN 1e0 ELSE 0e0 END`;
    if (isOrdered && lookbackMicros > 0) {
      const did = this.orderedSteps(series, {
        name: `before_${index}`,
        start: `x.f - ${lookbackMicros}`,
        within: this.before(lookbackMicros),
      });
      aggregates.push(...did.aggregates);
      ctes.push(...did.ctes);
      joins.push(...did.joins);
      columns.x = `CASE WHEN ${did.step} = ${count} THEN 1e0 ELSE 0e0 END`;
      columns.b = `CASE WHEN ${did.step} >= 1 THEN 1e0 ELSE 0e0 END`;
    }
    return { aggregates, ctes, joins, columns, steps: count };
  }

  /**
   * The number of steps each unit did in order. The window is anchored at the exposure, so the first event of each step
   * after the one before is the best.
   */
  private orderedSteps(
    series: readonly MetricSource[],
    { name, start, within }: { name: string; start: string; within: string },
  ) {
    const { dialect } = this.store;
    const did = (source: MetricSource, sql: string, otherwise: string) =>
      `CASE WHEN ${this.match(source)} AND ${within} THEN ${sql} ELSE ${otherwise} END`;
    if (series.length === 1)
      return {
        aggregates: [`max(${did(series[0]!, "1", "0")}) AS ${name}`],
        ctes: [],
        joins: [],
        step: `x.${name}`,
      };
    const event = dialect.triple("e.moment", "e.lane", "e.seq");
    const none = dialect.triple(String(never), "0", "0");
    const at = (step: number) => `${name}_${step}`;
    const ctes = [
      `${at(0)} AS (SELECT x.who AS who, x.f AS f, 0 AS step, ${dialect.triple(start, String(beforeAll), String(beforeAll))} AS t FROM exposed x)`,
    ];
    for (const [index, source] of series.entries()) {
      const next = `CASE WHEN ${this.match(source)} AND ${within} AND ${event} > x.t THEN ${event} ELSE ${none} END`;
      ctes.push(
        `${at(index + 1)} AS (
           SELECT who, f, CASE WHEN ${dialect.ofTriple("t", 1)} < ${never} THEN ${index + 1} ELSE step END AS step, t
           FROM (SELECT x.who AS who, x.f AS f, x.step AS step, min(${next}) AS t
             FROM ${at(index)} x LEFT JOIN (SELECT * FROM found e WHERE ${this.match(source)}) e ON e.who = x.who
             GROUP BY x.who, x.f, x.step, x.t)
         )`,
      );
    }
    return {
      aggregates: [],
      ctes,
      joins: [`JOIN ${at(series.length)} ON ${at(series.length)}.who = x.who`],
      step: `${at(series.length)}.step`,
    };
  }

  /** How many steps each unit did in any order; the same step twice needs two events. */
  private anyOrder(series: readonly MetricSource[], within: string, index: number) {
    const conditions = series.map((source) => this.match(source));
    const done = series.map((_, step) => {
      const times = conditions.slice(0, step + 1).filter((other) => other === conditions[step]).length;
      return `CASE WHEN count(*) FILTER (WHERE ${conditions[step]} AND ${within}) >= ${times} THEN 1 ELSE 0 END`;
    });
    const name = `steps_${index}`;
    return { aggregates: [`${done.join(" + ")} AS ${name}`], ctes: [], joins: [], step: `x.${name}` };
  }
}
