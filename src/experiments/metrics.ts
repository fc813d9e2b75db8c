/** Metrics of an experiment as clients send them, and what the event store computes for them (contract: experiments 1.7). */

import type { MetricRequest, MetricSource } from "../events/insights/experiment.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { normalizeOperator, validateFilterValue } from "../lib/values/operators.ts";
import type { Goal } from "./stats/bayesian.ts";
import type { MeasureKind } from "./stats/samples.ts";

export const metricsMax = 20;
const stepsMax = 20;
const metricTypes = ["mean", "funnel", "ratio", "retention"] as const;
type MetricType = (typeof metricTypes)[number];
const maths = ["total", "sum", "avg", "min", "max", "unique_session"];
const unitSeconds: ReadonlyMap<string, number> = new Map([
  ["second", 1],
  ["minute", 60],
  ["hour", 3_600],
  ["day", 86_400],
  ["week", 7 * 86_400],
  ["month", 30 * 86_400],
]);
const unitNames = [...unitSeconds.keys()].join(", ");
/** Of a window; larger ones exceed the moments that the event store can compute with. */
const windowDaysMax = 3_650;
const uuidLengthMax = 200;
const nameLengthMax = 400;

/**
 * Validates metrics and completes them: each gets a `uuid`, a kind and a goal.
 *
 * @param field the member of the request, for errors
 * @throws {InvalidFieldError}
 */
export function readMetrics(sent: Json | undefined, field: string): JsonObject[] {
  if (sent === undefined || sent === null) return [];
  if (!Array.isArray(sent)) throw invalid(field, "A list of metrics is expected.");
  if (sent.length > metricsMax) throw invalid(field, `At most ${metricsMax} metrics are allowed.`);
  return sent.map((metric) => readMetric(metric, field));
}

/** Validates one metric. @throws {InvalidFieldError} */
export function readMetric(sent: Json | undefined, field: string): JsonObject {
  if (!isJsonObject(sent)) throw invalid(field, "A metric is an object.");
  const kind = sent.kind ?? "ExperimentMetric";
  if (kind !== "ExperimentMetric") throw unsupported(field, `Metrics of kind ${JSON.stringify(kind)}`);
  const type = metricTypes.find((name) => name === sent.metric_type);
  if (type === undefined) throw invalid(field, `\`metric_type\` must be one of ${metricTypes.join(", ")}.`);
  const goal = sent.goal ?? "increase";
  if (goal !== "increase" && goal !== "decrease")
    throw invalid(field, "`goal` must be increase or decrease.");
  checkParts(type, sent, field);
  checkWindow(sent, "conversion_window", field);
  if (sent.guardrail !== undefined && sent.guardrail !== null) checkGuardrail(sent.guardrail, field);
  checkTexts(sent, field);
  const uuid = typeof sent.uuid === "string" && sent.uuid !== "" ? sent.uuid : Bun.randomUUIDv7();
  return { ...sent, kind, uuid, goal };
}

function checkTexts(sent: JsonObject, field: string): void {
  for (const [name, max] of [
    ["name", nameLengthMax],
    ["uuid", uuidLengthMax],
  ] as const) {
    const text = sent[name] ?? "";
    if (typeof text !== "string" || text.length > max)
      throw invalid(field, `\`${name}\` must be a string of at most ${max} characters.`);
  }
}

function checkParts(type: MetricType, sent: JsonObject, field: string): void {
  switch (type) {
    case "mean":
      checkSource(sent.source, "source", field);
      checkPercentiles(sent, field);
      if (sent.threshold !== undefined && sent.threshold !== null && typeof sent.threshold !== "number")
        throw invalid(field, "`threshold` must be a number.");
      return;
    case "ratio":
      checkSource(sent.numerator, "numerator", field);
      checkSource(sent.denominator, "denominator", field);
      return;
    case "funnel": {
      const { series } = sent;
      if (!Array.isArray(series) || series.length < 1 || series.length > stepsMax)
        throw invalid(field, `A funnel metric requires 1 to ${stepsMax} steps in \`series\`.`);
      for (const step of series) checkSource(step, "series", field);
      const order = sent.funnel_order_type ?? "ordered";
      if (order !== "ordered" && order !== "unordered")
        throw invalid(field, "`funnel_order_type` must be ordered or unordered.");
      return;
    }
    case "retention":
      checkSource(sent.start_event, "start_event", field);
      checkSource(sent.completion_event, "completion_event", field);
      checkRetention(sent, field);
  }
}

function checkSource(source: Json | undefined, name: string, field: string): void {
  if (!isJsonObject(source)) throw invalid(field, `The metric requires \`${name}\`, an object.`);
  const kind = source.kind ?? "EventsNode";
  if (kind !== "EventsNode") throw unsupported(field, `Sources of kind ${JSON.stringify(kind)}`);
  const { event = null, math = "total", math_property: property, properties = [] } = source;
  if (event !== null && typeof event !== "string") throw invalid(field, "`event` must be a string.");
  if (!maths.includes(String(math ?? "total")))
    throw unsupported(field, `Sources with the math ${JSON.stringify(math)}`);
  const needsProperty = !["total", "unique_session"].includes(String(math ?? "total"));
  if (needsProperty && (typeof property !== "string" || property === ""))
    throw invalid(field, `The math "${math}" requires \`math_property\`.`);
  checkFilters(properties, field);
}

/** Checks filters of events and persons. @throws {InvalidFieldError} */
export function checkFilters(properties: Json, field: string): void {
  if (properties === null) return;
  if (!Array.isArray(properties) || !properties.every(isJsonObject))
    throw invalid(field, "`properties` must be a list of filters.");
  for (const filter of properties) {
    const { key, type = "event" } = filter;
    if (type !== "event" && type !== "person")
      throw invalid(field, `Filters of type ${JSON.stringify(type)} are not supported: use event or person.`);
    if (typeof key !== "string") throw invalid(field, "A filter requires a `key`.");
    const problem = validateFilterValue(normalizeOperator(filter));
    if (problem !== undefined) throw new InvalidFieldError(field, problem.code, problem.detail);
  }
}

function checkPercentiles(sent: JsonObject, field: string): void {
  const [low, high] = ["lower_bound_percentile", "upper_bound_percentile"].map((name) => {
    const value = sent[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= 0 && value <= 1) return value;
    throw invalid(field, `\`${name}\` must be between 0 and 1.`);
  });
  if (low !== undefined && high !== undefined && low >= high)
    throw invalid(field, "`lower_bound_percentile` must be less than `upper_bound_percentile`.");
}

function checkWindow(sent: JsonObject, name: string, field: string): void {
  const count = sent[name] ?? undefined;
  const unit = readUnit(sent, `${name}_unit`, field);
  if (count === undefined) return;
  if (typeof count !== "number" || count <= 0) throw invalid(field, `\`${name}\` must be greater than 0.`);
  if (count * unit > windowDaysMax * 86_400) throw tooLong(name, field);
}

/** Seconds of a unit. @throws {InvalidFieldError} */
function readUnit(sent: JsonObject, name: string, field: string): number {
  const seconds = unitSeconds.get(String(sent[name] ?? "day"));
  if (seconds === undefined) throw invalid(field, `\`${name}\` must be one of ${unitNames}.`);
  return seconds;
}

function checkRetention(sent: JsonObject, field: string): void {
  const { retention_window_start: start, retention_window_end: end } = sent;
  const isCount = (value: Json | undefined): value is number => typeof value === "number" && value >= 0;
  if (!isCount(start) || !isCount(end) || end <= start)
    throw invalid(
      field,
      "`retention_window_start` and `retention_window_end` must be an ascending pair of numbers.",
    );
  if (end * readUnit(sent, "retention_window_unit", field) > windowDaysMax * 86_400)
    throw tooLong("retention_window_end", field);
}

function checkGuardrail(guardrail: Json, field: string): void {
  if (!isJsonObject(guardrail)) throw invalid(field, "`guardrail` must be an object.");
  const { tolerance = 0.05, action = "warn" } = guardrail;
  if (typeof tolerance !== "number" || tolerance < 0 || tolerance >= 1)
    throw invalid(field, "`guardrail.tolerance` must be at least 0 and less than 1.");
  if (action !== "warn" && action !== "rollback")
    throw invalid(field, "`guardrail.action` must be warn or rollback.");
}

const invalid = (field: string, detail: string) => new InvalidFieldError(field, "invalid_input", detail);
const tooLong = (name: string, field: string) =>
  invalid(field, `\`${name}\` must be at most ${windowDaysMax.toLocaleString("en-US")} days.`);
const unsupported = (field: string, what: string) =>
  new InvalidFieldError(field, "unsupported_metric", `${what} are not supported in a metric.`);

/** Statistics of a stored metric. */
export function getMeasure(metric: JsonObject): { kind: MeasureKind; goal: Goal } {
  const goal = metric.goal === "decrease" ? "decrease" : "increase";
  if (metric.metric_type === "funnel") return { kind: "proportion", goal };
  if (metric.metric_type === "mean")
    return { kind: typeof metric.threshold === "number" ? "proportion" : "mean", goal };
  return { kind: "ratio", goal };
}

const micros = (count: Json | undefined, unit: Json | undefined) =>
  typeof count === "number" ? Math.round(count * unitSeconds.get(String(unit ?? "day"))! * 1e6) : undefined;

/** What the event store computes for a stored metric. @param lookbackDays of CUPED; 0: not adjusted */
export function toMetricRequest(metric: JsonObject, lookbackDays: number): MetricRequest {
  const windowMicros = micros(metric.conversion_window, metric.conversion_window_unit);
  const lookbackMicros = lookbackDays * 86_400e6;
  const source = (name: string) => metric[name] as MetricSource;
  const number = (name: string) => (typeof metric[name] === "number" ? (metric[name] as number) : undefined);
  switch (metric.metric_type as MetricType) {
    case "mean":
      return {
        type: "mean",
        source: source("source"),
        windowMicros,
        lookbackMicros,
        lower: number("lower_bound_percentile"),
        upper: number("upper_bound_percentile"),
        ignoresZeros: metric.ignore_zeros === true,
        threshold: number("threshold"),
      };
    case "ratio":
      return {
        type: "ratio",
        numerator: source("numerator"),
        denominator: source("denominator"),
        windowMicros,
      };
    case "funnel":
      return {
        type: "funnel",
        series: metric.series as MetricSource[],
        windowMicros,
        lookbackMicros,
        isOrdered: (metric.funnel_order_type ?? "ordered") === "ordered",
      };
    case "retention":
      return {
        type: "retention",
        start: source("start_event"),
        completion: source("completion_event"),
        windowMicros,
        fromMicros: micros(metric.retention_window_start, metric.retention_window_unit)!,
        toMicros: micros(metric.retention_window_end, metric.retention_window_unit)!,
      };
  }
}
