/** The condition of a cohort on what persons did (contract: README "Behavioural cohorts"). Pure. */

import { type Json, type JsonObject, wholeNumber } from "../lib/json.ts";

/** Who performed an event, how often, within which time up to now. */
export interface BehaviourFilter {
  event: string;
  periodMs: number;
  /** How the number of events is compared with `times`, as SQL writes it. */
  sign: string;
  times: number;
}

const unitMs = new Map<Json, number>([
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
  ["week", 604_800_000],
  ["month", 2_592_000_000],
  ["year", 31_536_000_000],
]);
const comparisons = new Map<Json, string>([
  ["gte", ">="],
  ["gt", ">"],
  ["lte", "<="],
  ["lt", "<"],
  ["eq", "="],
  ["exact", "="],
]);
/** A longer time would begin before the first year that times can have. */
const yearsMax = 1_000;

/** Reads a behavioural condition. @returns a sentence about what cannot be used, when something cannot. */
export function readBehaviour(filter: JsonObject): BehaviourFilter | string {
  const { key, value } = filter;
  if (typeof key !== "string" || key === "") return "Each condition needs a key.";
  const isRepeated = value === "performed_event_multiple";
  if (value !== "performed_event" && !isRepeated)
    return `Invalid behavioral value: ${written(value)}. Use performed_event or performed_event_multiple.`;
  const unit = unitMs.get(filter.time_interval ?? "day");
  if (unit === undefined)
    return `Invalid time_interval: ${written(filter.time_interval)}. Use ${[...unitMs.keys()].join(", ")}.`;
  const periodMs = (wholeNumber(filter.time_value ?? 30) ?? 0) * unit;
  if (periodMs <= 0 || periodMs > yearsMax * 366 * 86_400_000)
    return `Invalid time_value: ${written(filter.time_value)}. Use a whole number of at least 1, up to ${yearsMax} years.`;
  if (!isRepeated) return { event: key, periodMs, sign: ">=", times: 1 };
  const sign = comparisons.get(filter.operator ?? "gte");
  if (sign === undefined)
    return `Invalid operator: ${written(filter.operator)}. Use ${[...comparisons.keys()].join(", ")}.`;
  const times = wholeNumber(filter.operator_value ?? 1);
  if (times === undefined)
    return `Invalid operator_value: ${written(filter.operator_value)}. Use a whole number of at least 0.`;
  return { event: key, periodMs, sign, times };
}

const written = (value: Json | undefined) => JSON.stringify(value ?? null);
