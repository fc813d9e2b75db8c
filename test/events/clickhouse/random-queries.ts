/** Random events and queries for both engines. */

import fc from "fast-check";
import { type EventFilter, eventOrders } from "../../../src/events/list.ts";
import { exactNumber } from "../../../src/lib/json/exact.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";

export const day = 86_400_000;
export const start = Date.UTC(2026, 9, 20);
export const now = start + 12 * day;
export const names = ["visit", "signup", "pay", "$feature_flag_called", "it's \\ odd"];
export const ids = ["ann", "bob", "cat", "dan", "ünï'\\", "eve"];
export const keys = [
  "plan",
  "odd/ke~y'\"\\",
  "seats",
  "$feature_flag",
  "$feature_flag_response",
  "$session_id",
];
export const values: Json[] = [
  "free",
  "FREE",
  "paid plan",
  "Ünïcode",
  "",
  " ",
  "true",
  "null",
  "12",
  "1e3",
  "a\nb",
  "back\\slash",
  "it's",
  "😀",
  "%_",
  "12.0",
  "1_000",
  "nan",
  "-inf",
  // As some libraries write whole numbers.
  ...(["12.0", "1.2e1", "-0.5e1"].map(exactNumber) as never[]),
  true,
  false,
  null,
  0,
  1,
  -3,
  12.5,
  1e21,
  1e-7,
  123456789012345680000,
  [1, "a"],
  { a: { b: null } },
  [],
  {},
];
export const properties = fc.dictionary(fc.constantFrom(...keys), fc.constantFrom(...values), { maxKeys: 4 });

export const event = fc.record({
  event: fc.constantFrom(...names),
  distinctId: fc.constantFrom(...ids),
  minute: fc.integer({ min: 0, max: 11 * 1440 }),
  historical: fc.boolean(),
  properties,
  /** Merges two ids, or sets properties of the person. */
  person: fc.oneof(
    { weight: 6, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.record({ $anon_distinct_id: fc.constantFrom(...ids) }) },
    { weight: 2, arbitrary: properties.map((set) => ({ $set: set })) },
  ),
});
export const world = fc.array(event, { minLength: 5, maxLength: 60 });

export const texts = [
  "exact",
  "is_not",
  "icontains",
  "not_icontains",
  "is_set",
  "is_not_set",
  "regex",
  "not_regex",
  "gt",
  "gte",
  "lt",
  "lte",
  "icontains_multi",
  "starts_with",
  "not_ends_with",
];
export const filter: fc.Arbitrary<JsonObject> = fc
  .record({
    key: fc.constantFrom(...keys),
    operator: fc.constantFrom(...texts),
    value: fc.constantFrom(
      "free",
      "a",
      "1",
      "12",
      "-2.5",
      "ü",
      "\\",
      "a.b",
      "^f",
      "[ae]$",
      "it's",
      "null",
      "TRUE",
      "%",
    ),
    type: fc.constantFrom("event", "person"),
  })
  .filter(({ operator, value }) => !operator.includes("regex") || isPattern(value));
export const filters = fc.array(filter, { maxLength: 2 });

export function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

export const node = fc.record({
  event: fc.constantFrom(...names, null),
  math: fc.constantFrom(
    "total",
    "dau",
    "weekly_active",
    "monthly_active",
    "unique_session",
    "sum",
    "avg",
    "min",
    "max",
    "median",
    "p90",
  ),
  math_property: fc.constant("seats"),
  properties: filters,
});
export const step = fc.record({
  event: fc.constantFrom(...names),
  properties: fc.oneof(fc.constant<JsonObject[]>([]), filters),
});
export const range = fc.constantFrom<JsonObject>(
  { date_from: "-7d" },
  { date_from: "all" },
  { date_from: "2026-10-21", date_to: "2026-10-27" },
  { date_from: "mStart" },
  { date_from: "-1wStart", date_to: "-1wEnd" },
);
export const interval = fc.constantFrom("hour", "day", "week", "month");
export const weekStartDay = fc.constantFrom(0, 1, null);
export const breakdownFilter = fc.constantFrom<JsonObject>(
  {},
  { breakdown: "plan" },
  { breakdown: "plan", breakdown_type: "person" },
  { breakdown: keys[1]! },
);
export const severalBreakdowns = fc.constantFrom<JsonObject>(
  { breakdowns: [{ property: "plan" }, { property: keys[1]! }], breakdown_limit: 3 },
  { breakdowns: [{ property: "plan", type: "person" }, { property: "seats" }, { property: keys[1]! }] },
);
export const query: fc.Arbitrary<JsonObject> = fc.oneof(
  fc.record({
    kind: fc.constant("TrendsQuery"),
    series: fc.array(node, { minLength: 1, maxLength: 2 }),
    properties: filters,
    dateRange: range,
    interval,
    weekStartDay,
    breakdownFilter: fc.oneof(breakdownFilter, severalBreakdowns),
    compareFilter: fc.constantFrom<JsonObject>({}, { compare: true }, { compare: true, compare_to: "-5d" }),
    trendsFilter: fc.constantFrom<JsonObject>(
      {},
      { display: "BoldNumber" },
      { display: "ActionsLineGraphCumulative" },
      { formulas: ["A * 2 + A / 3", "100 / A"] },
      { display: "BoldNumber", formula: "100 / A" },
    ),
  }),
  fc.record({
    kind: fc.constant("FunnelsQuery"),
    series: fc.array(step, { minLength: 2, maxLength: 4 }),
    dateRange: range,
    breakdownFilter,
    interval,
    weekStartDay,
    funnelsFilter: fc.record({
      funnelOrderType: fc.constantFrom("ordered", "strict", "unordered"),
      funnelVizType: fc.constantFrom("steps", "trends", "time_to_convert"),
      funnelWindowInterval: fc.constantFrom(1, 3, 14),
    }),
  }),
  fc.record({
    kind: fc.constant("RetentionQuery"),
    weekStartDay,
    properties: filters,
    dateRange: fc.constantFrom<JsonObject>({}, { date_to: "2026-10-25" }, { date_to: "-1mEnd" }),
    retentionFilter: fc.record({
      period: fc.constantFrom("Hour", "Day", "Week", "Month"),
      totalIntervals: fc.integer({ min: 1, max: 12 }),
      retentionType: fc.constantFrom("retention_first_time", "retention_recurring"),
      targetEntity: fc.constantFrom(...names).map((id) => ({ id, type: "events" })),
      returningEntity: fc.constantFrom(...names).map((id) => ({ id, type: "events" })),
    }),
  }),
  fc.record({
    kind: fc.constant("StickinessQuery"),
    series: fc.tuple(step),
    dateRange: range,
    interval,
    weekStartDay,
    stickinessFilter: fc.constantFrom<JsonObject>(
      {},
      { computedAs: "cumulative", stickinessCriteria: { operator: "gte", value: 2 } },
    ),
  }),
  fc.record({
    kind: fc.constant("LifecycleQuery"),
    series: fc.tuple(step),
    dateRange: range,
    interval,
    weekStartDay,
  }),
);
export const timezone = fc.constantFrom(
  "UTC",
  "Europe/Berlin",
  "Asia/Kathmandu",
  "America/St_Johns",
  "Pacific/Apia",
  "Africa/Casablanca",
);

export const listing: fc.Arbitrary<EventFilter> = fc.record(
  {
    projectId: fc.constantFrom(1, 2),
    event: fc.constantFrom(...names),
    distinctIds: fc.subarray(ids),
    afterMicros: fc.constant((start + 3 * day) * 1_000),
    beforeMicros: fc.constant((start + 9 * day) * 1_000),
    historical: fc.boolean(),
    properties: filters,
    order: fc.constantFrom(...eventOrders),
    limit: fc.integer({ min: 1, max: 7 }),
    offset: fc.integer({ min: 0, max: 3 }),
  },
  { requiredKeys: ["projectId", "order", "limit"] },
);
