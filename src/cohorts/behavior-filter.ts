/** The condition of a cohort on performed events (contract: README "Behavioral cohorts"). Pure. */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../lib/json/value.ts";
import { operatorsWhere } from "../lib/operator-table.ts";
import { dayMs } from "../lib/time.ts";
import { parseInstant } from "../lib/timestamp.ts";
import { validateFilterValue } from "../lib/values/operators.ts";

/** Persons who performed an event a number of times since a point in time. */
export interface BehaviorFilter {
  event: string;
  /** On event properties; all must match. */
  eventFilters: readonly JsonObject[];
  /** Milliseconds before now, or since 1970. */
  since: { agoMs: number } | { atMs: number };
  /** SQL operator that compares the number of events with `times`. */
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
/** Operators supported on events: see `closely` in `src/events/property-sql.ts`. */
export const eventOperators: ReadonlySet<Json> = operatorsWhere(({ isForEvents }) => isForEvents === true);
/** As in `-30d`. */
const unitLetters: Readonly<Record<string, Json>> = { h: "hour", d: "day", w: "week", m: "month", y: "year" };
/** Longer periods would start before the first supported year. */
const yearsMax = 1_000;

/** Parses a behavioral condition. @returns an error message if it is invalid */
export function readBehavior(filter: JsonObject): BehaviorFilter | string {
  const { key, value } = filter;
  if (typeof key !== "string" || key === "") return "Each condition requires a key.";
  const isRepeated = value === "performed_event_multiple";
  if (value !== "performed_event" && !isRepeated)
    return `Invalid behavioral value: ${written(value)}. Use performed_event or performed_event_multiple.`;
  if ((filter.event_type ?? "events") !== "events")
    return `Invalid event_type: ${written(filter.event_type)}. Use events.`;
  const since = sinceWhen(filter);
  if (typeof since === "string") return since;
  const eventFilters = getEventFilters(filter.event_filters ?? []);
  if (typeof eventFilters === "string") return eventFilters;
  const requested = { event: key, eventFilters, since };
  if (!isRepeated) return { ...requested, sign: ">=", times: 1 };
  const sign = comparisons.get(filter.operator ?? "gte");
  if (sign === undefined)
    return `Invalid operator: ${written(filter.operator)}. Use ${[...comparisons.keys()].join(", ")}.`;
  const times = wholeNumber(filter.operator_value ?? 1);
  if (times === undefined)
    return `Invalid operator_value: ${written(filter.operator_value)}. Use a whole number of at least 0.`;
  return { ...requested, sign, times };
}

/** `explicit_datetime` (newer PostHog cohorts), otherwise `time_value` and `time_interval`. */
function sinceWhen(filter: JsonObject): BehaviorFilter["since"] | string {
  const { explicit_datetime: explicit, explicit_datetime_to: end } = filter;
  if (end !== undefined && end !== null && end !== "")
    return "explicit_datetime_to is not supported: behavioral filters count events up to now.";
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

function writtenSince(text: string): BehaviorFilter["since"] | undefined {
  const [, count, letter] = /^-(\d{1,9})([hdwmy])$/.exec(text) ?? [];
  if (count === undefined) {
    const micros = /^\d{4}-/.test(text) ? parseInstant(text) : undefined;
    return micros === undefined ? undefined : { atMs: micros / 1_000 };
  }
  const agoMs = Number(count) * unitMs.get(unitLetters[letter!]!)!;
  return isPeriod(agoMs) ? { agoMs } : undefined;
}

const isPeriod = (ms: number): boolean => ms > 0 && ms <= yearsMax * 366 * dayMs;

function getEventFilters(sent: Json): JsonObject[] | string {
  if (!Array.isArray(sent)) return "Invalid event_filters: expected a list of event conditions.";
  for (const filter of sent) {
    if (!isJsonObject(filter) || typeof filter.key !== "string" || (filter.type ?? "event") !== "event")
      return `Invalid event_filters: ${written(filter)} is not an event condition.`;
    const problem = validateFilterValue(filter);
    if (problem !== undefined) return `Invalid event_filters: ${problem.detail}`;
    if (!eventOperators.has(filter.operator ?? "exact"))
      return `Invalid event_filters: the operator ${written(filter.operator)} cannot be used for events.`;
  }
  return sent as JsonObject[];
}

const written = (value: Json | undefined) => JSON.stringify(value ?? null);
