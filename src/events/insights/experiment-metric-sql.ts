/** SQL of each metric of an experiment, over the CTEs of `experiment-sql.ts`. */

import { UnknownQueryError } from "../event-filters.ts";
import { type EventSql, stringAt } from "../sql-dialect.ts";
import { getConditions } from "./event-source.ts";
import type { ExperimentRequest, MetricRequest, MetricSource } from "./experiment.ts";
import type { MetricSql } from "./experiment-sums.ts";

/** Moments before and after every event. */
const beforeAll = -1;
const never = Number.MAX_SAFE_INTEGER;

/** Collects the columns of `found` that the metrics read. */
export class MetricSqlBuilder {
  /** Columns of `found` by their SQL: metrics often read the same events. */
  readonly columns = new Map<string, string>();
  /** Conditions on the events that matter, and their columns. */
  readonly matches = new Map<string, string>();
  /** The CTE with the units `x`; in a series each is there once per day on which it changes. */
  readonly units: string;
  /** Of a unit: further columns in a series. */
  readonly more: readonly string[];

  constructor(
    private readonly store: EventSql,
    private readonly experiment: ExperimentRequest,
  ) {
    const isSeries = experiment.dayEnds !== undefined;
    this.units = isSeries ? "exposed_at" : "exposed";
    this.more = isSeries ? ["day", "until", "next"] : [];
  }

  /** The name of a column of `found`. */
  private column(sql: string): string {
    const name = this.columns.get(sql) ?? `c_${this.columns.size}`;
    this.columns.set(sql, name);
    return name;
  }

  /** Column of `found`: whether an event belongs to the source. */
  match(source: MetricSource): string {
    const sql = getConditions(this.store, source, {}).join(" AND ");
    const column = `e.${this.column(`coalesce((${sql}), false)`)}`;
    this.matches.set(sql, column);
    return column;
  }

  /** Columns of `x` in a SELECT or, without names, in a GROUP BY. */
  list(columns: readonly string[], isNamed = true): string {
    return columns.map((name) => (isNamed ? `x.${name} AS ${name}` : `x.${name}`)).join(", ");
  }

  /** Joins a CTE with the unit `x`. */
  private same(name: string): string {
    return `${name}.who = x.who${this.more.length === 0 ? "" : ` AND ${name}.day = x.day`}`;
  }

  private get keys(): readonly string[] {
    return this.more.length === 0 ? ["who"] : ["who", "day"];
  }

  /** SQL of the end of the events that count. */
  private get until(): string {
    return this.more.length === 0 ? String(this.experiment.end) : "x.until";
  }

  metric(metric: MetricRequest, index: number): MetricSql {
    const { windowMicros } = metric;
    const { maturedOnly } = this.experiment;
    const counts = maturedOnly && windowMicros !== undefined ? `x.f + ${windowMicros} <= ${this.until}` : "";
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
    const aggregate = { sum: "sum", avg: "avg", min: "min", max: "max" }[String(math)];
    if (aggregate === undefined)
      throw new UnknownQueryError(`The math ${JSON.stringify(math)} is not supported here.`);
    return `coalesce(${aggregate}(${value}) ${when}, 0)::DOUBLE`;
  }

  private after(windowMicros: number | undefined): string {
    const conditions = [
      "e.moment >= x.f",
      ...(windowMicros === undefined ? [] : [`e.moment < x.f + ${windowMicros}`]),
      ...(this.more.length === 0 ? [] : ["e.moment < x.until"]),
    ];
    return conditions.join(" AND ");
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

  /** Bounds are those of all counted units together, in a series at its end: bounds per variant would hide an effect in the tail. */
  private winsorized(
    { lower, upper, ignoresZeros, windowMicros }: Extract<MetricRequest, { type: "mean" }>,
    index: number,
    raw: string,
  ) {
    const { dialect } = this.store;
    const { multiple, maturedOnly } = this.experiment;
    const counted = [
      ...(multiple === "exclude" ? ["x.k = 1"] : []),
      ...(maturedOnly && windowMicros !== undefined ? [`x.f + ${windowMicros} <= ${this.until}`] : []),
      ...(this.more.length === 0 ? [] : ["x.next = 0"]),
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
    const started = `x.began_${index}`;
    const starts = `CASE WHEN ${this.match(start)} AND ${this.after(windowMicros)} THEN e.moment ELSE ${never} END`;
    return {
      aggregates: [`min(${starts}) AS began_${index}`],
      ctes: [
        `${name} AS (
         SELECT DISTINCT ${this.list(this.keys)}, 1e0 AS did FROM person x JOIN found e ON e.who = x.who
         WHERE ${this.match(completion)} AND ${started} < ${never}
           AND e.moment >= ${started} + ${fromMicros} AND e.moment < ${started} + ${toMicros} AND e.moment < ${this.until}
       )`,
      ],
      joins: [`LEFT JOIN ${name} ON ${this.same(name)}`],
      // Not `coalesce`: without a match, ClickHouse returns 0 instead of null.
      columns: {
        y: `CASE WHEN ${name}.did = 1e0 THEN 1e0 ELSE 0e0 END`,
        d: `CASE WHEN ${started} < ${never} THEN 1e0 ELSE 0e0 END`,
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
    const counts = isOrdered
      ? this.orderedSteps(series, { name: `after_${index}`, start: "x.f", within: after })
      : this.anyOrder(series, after, index);
    const aggregates = [...counts.aggregates];
    const ctes = [...counts.ctes];
    const joins = [...counts.joins];
    const columns: Record<string, string> = {
      y: `CASE WHEN ${counts.step} = ${count} THEN 1e0 ELSE 0e0 END`,
    };
    for (let step = 1; step < count; step++)
      columns[`s${step}`] = `CASE WHEN ${counts.step} >= ${step} THEN 1e0 ELSE 0e0 END`;
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
    const retained = this.more.length === 0 ? ["who", "f"] : ["who", "f", "day", "until"];
    const ctes = [
      `${at(0)} AS (SELECT ${this.list(retained)}, 0 AS step, ${dialect.triple(start, String(beforeAll), String(beforeAll))} AS t FROM ${this.units} x)`,
    ];
    for (const [index, source] of series.entries()) {
      const next = `CASE WHEN ${this.match(source)} AND ${within} AND ${event} > x.t THEN ${event} ELSE ${none} END`;
      ctes.push(
        `${at(index + 1)} AS (
           SELECT ${retained.join(", ")}, CASE WHEN ${dialect.ofTriple("t", 1)} < ${never} THEN ${index + 1} ELSE step END AS step, t
           FROM (SELECT ${this.list(retained)}, x.step AS step, min(${next}) AS t
             FROM ${at(index)} x LEFT JOIN (SELECT * FROM found e WHERE ${this.match(source)}) e ON e.who = x.who
             GROUP BY ${this.list(retained, false)}, x.step, x.t)
         )`,
      );
    }
    return {
      aggregates: [],
      ctes,
      joins: [`JOIN ${at(series.length)} ON ${this.same(at(series.length))}`],
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
