/** The condition of a cohort on what persons did (contract: README "Behavioural cohorts"). Pure. */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../lib/json.ts";
import { testFault } from "../lib/operator-values.ts";
import type { OperatorName } from "../lib/operators.ts";
import { dayMs } from "../lib/time.ts";
import { parseInstant } from "../lib/timestamp.ts";

/** Who performed an event, how often, since when. */
export interface BehaviourFilter {
  event: string;
  /** On the properties of the event; all of them hold. */
  eventFilters: readonly JsonObject[];
  /** Milliseconds before now, or since 1970. */
  since: { agoMs: number } | { atMs: number };
  /** How the number of events is compared with `times`, as SQL writes it. */
  sign: string;
  times: number;
}

const unitMs = new Map<Json, number>([
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", dayMs],
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
/** What filters on events may test with: see `closely` in `src/events/property-sql.ts`. */
export const eventOperators: ReadonlySet<Json> = new Set<OperatorName>([
  ...(["exact", "is_not", "is_set", "is_not_set", "icontains", "not_icontains"] as const),
  ...(["icontains_multi", "not_icontains_multi", "regex", "not_regex", "gt", "gte", "lt", "lte"] as const),
  ...(["starts_with", "not_starts_with", "ends_with", "not_ends_with", "between", "not_between"] as const),
]);
/** As in `-30d`. */
const unitLetters: Readonly<Record<string, Json>> = { h: "hour", d: "day", w: "week", m: "month", y: "year" };
/** A longer time would begin before the first year that times can have. */
const yearsMax = 1_000;

/** Reads a behavioural condition. @returns a sentence about what cannot be used, when something cannot. */
export function readBehaviour(filter: JsonObject): BehaviourFilter | string {
  const { key, value } = filter;
  if (typeof key !== "string" || key === "") return "Each condition needs a key.";
  const isRepeated = value === "performed_event_multiple";
  if (value !== "performed_event" && !isRepeated)
    return `Invalid behavioral value: ${written(value)}. Use performed_event or performed_event_multiple.`;
  if ((filter.event_type ?? "events") !== "events")
    return `Invalid event_type: ${written(filter.event_type)}. Use events.`;
  const since = sinceWhen(filter);
  if (typeof since === "string") return since;
  const eventFilters = eventFiltersOf(filter.event_filters ?? []);
  if (typeof eventFilters === "string") return eventFilters;
  const asked = { event: key, eventFilters, since };
  if (!isRepeated) return { ...asked, sign: ">=", times: 1 };
  const sign = comparisons.get(filter.operator ?? "gte");
  if (sign === undefined)
    return `Invalid operator: ${written(filter.operator)}. Use ${[...comparisons.keys()].join(", ")}.`;
  const times = wholeNumber(filter.operator_value ?? 1);
  if (times === undefined)
    return `Invalid operator_value: ${written(filter.operator_value)}. Use a whole number of at least 0.`;
  return { ...asked, sign, times };
}

/** `explicit_datetime` as PostHog's newer cohorts have it, else `time_value` and `time_interval`. */
function sinceWhen(filter: JsonObject): BehaviourFilter["since"] | string {
  const { explicit_datetime: explicit, explicit_datetime_to: end } = filter;
  if (end !== undefined && end !== null && end !== "")
    return "explicit_datetime_to cannot be used: what persons did is counted up to now.";
  if (explicit !== undefined && explicit !== null && explicit !== "") {
    const since = typeof explicit === "string" ? writtenSince(explicit) : undefined;
    return (
      since ??
      `Invalid explicit_datetime: ${written(explicit)}. Use a time such as -30d, up to ${yearsMax} years, or 2026-01-31.`
    );
  }
  const unit = unitMs.get(filter.time_interval ?? "day");
  if (unit === undefined)
    return `Invalid time_interval: ${written(filter.time_interval)}. Use ${[...unitMs.keys()].join(", ")}.`;
  const agoMs = (wholeNumber(filter.time_value ?? 30) ?? 0) * unit;
  if (!isPeriod(agoMs))
    return `Invalid time_value: ${written(filter.time_value)}. Use a whole number of at least 1, up to ${yearsMax} years.`;
  return { agoMs };
}

function writtenSince(text: string): BehaviourFilter["since"] | undefined {
  const [, count, letter] = /^-(\d{1,9})([hdwmy])$/.exec(text) ?? [];
  if (count === undefined) {
    const micros = /^\d{4}-/.test(text) ? parseInstant(text) : undefined;
    return micros === undefined ? undefined : { atMs: micros / 1_000 };
  }
  const agoMs = Number(count) * unitMs.get(unitLetters[letter!]!)!;
  return isPeriod(agoMs) ? { agoMs } : undefined;
}

const isPeriod = (ms: number): boolean => ms > 0 && ms <= yearsMax * 366 * dayMs;

function eventFiltersOf(given: Json): JsonObject[] | string {
  if (!Array.isArray(given)) return "Invalid event_filters: a list of conditions on the event is needed.";
  for (const filter of given) {
    if (!isJsonObject(filter) || typeof filter.key !== "string" || (filter.type ?? "event") !== "event")
      return `Invalid event_filters: ${written(filter)} is no condition on the event.`;
    const fault = testFault(filter);
    if (fault !== undefined) return `Invalid event_filters: ${fault.detail}`;
    if (!eventOperators.has(filter.operator ?? "exact"))
      return `Invalid event_filters: the operator ${written(filter.operator)} cannot be used for events.`;
  }
  return given as JsonObject[];
}

const written = (value: Json | undefined) => JSON.stringify(value ?? null);
