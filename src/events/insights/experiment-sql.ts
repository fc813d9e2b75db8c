/**
 * SQL of an experiment's exposures and sums: one query that reads the events once (contract: experiments 2.12).
 *
 * Sums are by variant, period and quarter of an hour of the exposure, so that the exposures need no query of their own.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import { isAboutPerson } from "../event-filters.ts";
import { type EventSql, stringAt } from "../sql-dialect.ts";
import { getConditions, objectsIn, type TrendsRequest } from "./event-source.ts";
import type {
  ExperimentRequest,
  ExperimentSums,
  ExposureCount,
  MetricSource,
  MetricSums,
} from "./experiment.ts";
import { DayMapping } from "./experiment-days.ts";
import { MetricSqlBuilder } from "./experiment-metric-sql.ts";
import {
  getLookback,
  getSources,
  type MetricSql,
  readsProperties,
  sumColumns,
  sumNames,
  toSums,
} from "./experiment-sums.ts";
import { ParsedProperties } from "./parsed-properties.ts";

const quarterMicros = 900_000_000;

/** Computes exposures and metrics. @throws {UnknownQueryError} a filter or aggregation is not supported */
export async function computeExperiment(store: EventSql, request: TrendsRequest): Promise<JsonObject> {
  const experiment = request.query as unknown as ExperimentRequest;
  const sql = new ExperimentSql(store, request.projectId, experiment);
  const { dayEnds } = experiment;
  const found: ExperimentSums =
    dayEnds === undefined
      ? await sql.compute()
      : { exposures: [], metrics: [], days: await sql.series(dayEnds) };
  return found as unknown as JsonObject;
}

/** UUIDs of the exposed persons, those who saw several variants included. */
export async function findExposed(store: EventSql, request: TrendsRequest): Promise<string[]> {
  const experiment = request.query as unknown as ExperimentRequest;
  return await new ExperimentSql(store, request.projectId, experiment).units();
}

/** Units with the sums of all metrics, in the order of their names. */
type Row = ExposureCount & { sums: readonly number[] };

class ExperimentSql {
  private readonly properties: ParsedProperties;
  private readonly store: EventSql;
  private readonly builder: MetricSqlBuilder;

  constructor(
    store: EventSql,
    private readonly projectId: number,
    private readonly experiment: ExperimentRequest,
  ) {
    this.properties = new ParsedProperties(store);
    this.store = this.properties.store;
    this.builder = new MetricSqlBuilder(this.store, experiment);
  }

  /** UUIDs of all exposed units. */
  async units(): Promise<string[]> {
    const uuids: string[] = [];
    const sql = `WITH ${this.exposed()} SELECT who::VARCHAR FROM exposed`;
    for await (const rows of this.store.portions(sql))
      for (const [uuid] of rows) if (typeof uuid === "string") uuids.push(uuid);
    return uuids;
  }

  /** Exposures, and the sums of every metric. */
  async compute(): Promise<ExperimentSums> {
    const { metrics, sums } = this.metrics();
    const rows = await this.store.rows(
      `WITH ${this.exposed()}${this.measured(metrics)}
       SELECT v, k > 1 AS is_multiple, ${this.period()} AS period, floor(f / ${quarterMicros}.0)::DOUBLE AS quarter,
         count(*)::DOUBLE AS persons${sums}
       FROM ${metrics.length === 0 ? "exposed" : "measured"} GROUP BY ALL ORDER BY quarter, v`,
    );
    return this.read(
      (rows as [string, boolean | number, number, number, number, ...number[]][]).map(
        ([variant, isMultiple, period, quarter, persons, ...found]) => {
          const at = (quarter * quarterMicros) / 1_000;
          return { variant, isMultiple: Boolean(isMultiple), period, at, persons, sums: found };
        },
      ),
      metrics,
    );
  }

  /** The same at the end of each day. A unit is one row per day on which it changes, valid until the next. */
  async series(dayEnds: readonly number[]): Promise<ExperimentSums[]> {
    const { metrics, sums } = this.metrics();
    const days = new DayMapping(dayEnds);
    const rows = (await this.store.rows(
      `WITH ${this.exposed()}${this.changes(days)}${this.measured(metrics)}
       SELECT v, k > 1 AS is_multiple, ${this.period()} AS period, day::DOUBLE AS day_from, next::DOUBLE AS day_to,
         count(*)::DOUBLE AS persons${sums}
       FROM ${metrics.length === 0 ? "exposed_at" : "measured"} GROUP BY ALL ORDER BY day_from, day_to, v`,
    )) as [string, boolean | number, number, number, number, number, ...number[]][];
    return dayEnds.map((end, day) =>
      this.read(
        rows
          .filter(([, , , from, to]) => from <= day && (to === 0 || day < to))
          .map(([variant, isMultiple, period, , , persons, ...found]) => {
            const at = end / 1_000;
            return { variant, isMultiple: Boolean(isMultiple), period, at, persons, sums: found };
          }),
        metrics,
      ),
    );
  }

  private metrics() {
    const metrics = this.experiment.metrics.map((metric, index) => this.builder.metric(metric, index));
    const columns = metrics.flatMap((metric, index) => sumColumns(metric, index));
    return { metrics, sums: columns.map((sum, at) => `, sum(${sum})::DOUBLE AS sum_${at}`).join("") };
  }

  /** The period of the percentages in which a unit was exposed. */
  private period(): string {
    // ClickHouse reads the literal `(0)::DOUBLE` as a text that is no number.
    const later = this.experiment.periodStarts
      .map((at) => `CASE WHEN f >= ${at} THEN 1 ELSE 0 END`)
      .join(" + ");
    return later === "" ? "0::DOUBLE" : `(${later})::DOUBLE`;
  }

  private read(rows: readonly Row[], metrics: readonly MetricSql[]): ExperimentSums {
    const { multiple } = this.experiment;
    const counted = rows.filter(({ isMultiple }) => multiple === "first_seen" || !isMultiple);
    const variants = [...new Set(counted.map(({ variant }) => variant))].sort();
    let first = 0;
    const read = metrics.map((metric): MetricSums[] => {
      const names = sumNames(metric);
      const from = first;
      first += names.length;
      return variants
        .map((variant) => {
          const totals = names.map(() => 0);
          for (const { sums, variant: other } of counted)
            if (other === variant) for (const at of names.keys()) totals[at]! += sums[from + at]!;
          return toSums(variant, metric, names, totals);
        })
        .filter(({ n }) => n > 0);
    });
    return { exposures: rows.map(({ sums: _, ...count }) => count), metrics: read };
  }

  /** CTEs `found` and `exposed`: the events that matter, and each unit's first exposure. Called after all metrics. */
  private exposed(): string {
    const { dialect, eventProperties } = this.store;
    const { flagKey, variants, start, end, exposure, activation, groupType, isEveryone, metrics } =
      this.experiment;
    const isActivation = activation === undefined ? undefined : this.builder.match(activation);
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
      ...[...this.builder.columns].map(([sql, name]) => `${sql} AS ${name}`),
    ];
    const sources = [exposure, activation, ...metrics.flatMap(getSources)];
    const readsPersons = sources.some((source) => objectsIn(source?.properties).some(isAboutPerson));
    const join = readsPersons ? dialect.personOfEvent(this.projectId) : dialect.ownerOfEvent(this.projectId);
    const lookback = Math.max(0, ...metrics.map(getLookback));
    const range = [
      `e.project_id = ${this.projectId}`,
      `${dialect.time("e")} >= ${dialect.timestamp(start - lookback)}`,
      `${dialect.time("e")} < ${dialect.timestamp(end)}`,
    ];
    const within = [
      ...range,
      `((${isExposure.join(" AND ")})${[...this.builder.matches.keys()].map((match) => ` OR (${match})`).join("")})`,
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
         SELECT ${columns.join(", ")} FROM ${this.events(range)} ${join} WHERE ${within.join(" AND ")}
       ), ${first}, ${active}`;
  }

  /** The events that may matter, with their properties. */
  private events(range: readonly string[]): string {
    const { exposure = { event: "$feature_flag_called" }, activation, isEveryone, metrics } = this.experiment;
    const sources = [activation, ...metrics.flatMap(getSources)].filter((source) => source !== undefined);
    const getNames = (all: readonly MetricSource[]) =>
      new Set(all.map(({ event }) => (typeof event === "string" ? event : "")));
    const read = getNames([exposure, ...sources.filter(readsProperties)]);
    const unread = getNames(sources).difference(read);
    const isAll = isEveryone || read.has("") || unread.has("");
    return this.properties.events(range, isAll ? undefined : [...read], [...unread]);
  }

  /** CTE `exposed_at`: each exposed unit on every day on which one of its values may change. */
  private changes(days: DayMapping): string {
    const { dialect } = this.store;
    const { metrics, maturedOnly, start } = this.experiment;
    const windows = new Set(maturedOnly ? metrics.map(({ windowMicros }) => windowMicros) : []);
    windows.delete(undefined);
    const matches = [...this.builder.matches.values()];
    const changes = [
      `SELECT x.who AS who, ${days.getDay("x.f")} AS day FROM exposed x`,
      `SELECT x.who AS who, ${days.getDay("x.g")} AS day FROM second x`,
      ...[...windows].map(
        (window) => `SELECT x.who AS who, ${days.getDay(`x.f + ${window} - 1`)} AS day FROM exposed x`,
      ),
      ...(matches.length === 0
        ? []
        : [
            `SELECT x.who AS who, ${days.getDay("e.moment")} AS day FROM exposed x JOIN found e ON e.who = x.who
             WHERE e.moment >= x.f AND (${matches.join(" OR ")})`,
          ]),
    ];
    const until = days.end("c.day");
    return `, second AS (
         SELECT x.who AS who, min(e.moment) AS g FROM exposed x JOIN found e ON e.who = x.who
         WHERE x.k > 1 AND e.variant IS NOT NULL AND e.variant <> x.v AND e.moment >= ${start} GROUP BY x.who
       ), changes AS (
         SELECT who, day, max(day) OVER (PARTITION BY who ORDER BY day ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS next
         FROM (SELECT who, day FROM (${changes.join(" UNION ALL ")}) GROUP BY who, day)
       ), exposed_at ${dialect.asMaterialized} (
         SELECT x.who AS who, x.v AS v, CASE WHEN x.k > 1 AND s.g < ${until} THEN 2 ELSE 1 END AS k, x.f AS f,
           c.day AS day, ${until} AS until, coalesce(c.next, 0) AS next
         FROM exposed x JOIN changes c ON c.who = x.who LEFT JOIN second s ON s.who = x.who
         WHERE c.day >= ${days.getDay("x.f")}
       )`;
  }

  /** CTE `measured`: the values of every metric per exposed unit. */
  private measured(metrics: readonly MetricSql[]): string {
    if (metrics.length === 0) return "";
    const { dialect } = this.store;
    const aggregates = metrics.flatMap((metric) => metric.aggregates);
    const unit = ["who", "v", "k", "f", ...this.builder.more];
    const columns = metrics.flatMap(({ columns, counts }, index) => {
      // Multiplied by the condition: a unit that does not count adds 0 to every sum.
      const value = (sql: string) => (counts === "" ? sql : `CASE WHEN ${counts} THEN ${sql} ELSE 0e0 END`);
      return Object.entries({ n: "1e0", ...columns }).map(
        ([name, sql]) => `${value(sql)} AS ${name}_${index}`,
      );
    });
    return `, person ${dialect.asMaterialized} (
         SELECT ${this.builder.list(unit)}${aggregates.map((sql) => `, ${sql}`).join("")}
         FROM ${this.builder.units} x JOIN found e ON e.who = x.who GROUP BY ${this.builder.list(unit, false)}
       )${metrics.flatMap(({ ctes }) => ctes.map((cte) => `, ${cte}`)).join("")},
       measured AS (
         SELECT ${this.builder.list(unit)}, ${columns.join(", ")}
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
}
