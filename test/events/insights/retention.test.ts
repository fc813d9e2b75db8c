/** Retention and lifecycle over the real event store. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { UnknownQueryError } from "../../../src/events/event-filters.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { counts, Journeys, steps } from "./journeys.ts";

let journeys: Journeys;
beforeAll(async () => {
  journeys = await Journeys.open();
});
afterAll(() => journeys[Symbol.asyncDispose]());

const compute: Journeys["compute"] = (query, period) => journeys.compute(query, period);

describe("retention", () => {
  const retention = (filter: JsonObject): JsonObject => ({
    kind: "RetentionQuery",
    retentionFilter: {
      period: "Day",
      totalIntervals: 7,
      targetEntity: { id: "visit", type: "events" },
      returningEntity: { id: "signup", type: "events" },
      ...filter,
    },
  });
  test("counts returning persons by the day of their first event", async () => {
    const results = await compute(retention({}));
    expect(results.map(({ date, label }) => [date, label])).toEqual([
      ["2026-11-15", "Day 0"],
      ["2026-11-16", "Day 1"],
      ["2026-11-17", "Day 2"],
      ["2026-11-18", "Day 3"],
      ["2026-11-19", "Day 4"],
      ["2026-11-20", "Day 5"],
      ["2026-11-21", "Day 6"],
    ]);
    const table = results.map(({ values }) => counts(values));
    expect(table).toEqual([
      [1, 1, 0, 0, 0, 0, 0],
      [0, 0, 0, 0, 0, 0],
      [0, 0, 0, 0, 0],
      [2, 0, 0, 0],
      [1, 1, 0],
      [0, 0],
      [0],
    ]);
  });

  test("is not affected by what clients send along", async () => {
    const defaults = { minimumOccurrences: 1, cumulative: false, timeWindowMode: "strict_calendar_dates" };
    expect(await compute(retention({ ...defaults, aggregationType: "count" }))).toHaveLength(7);
  });

  test("of the first time ever excludes earlier persons", async () => {
    const all = await compute(
      retention({ returningEntity: { id: "visit", type: "events" }, retentionType: "retention_first_time" }),
    );
    expect(all.map(({ values }) => values[0].count)).toEqual([1, 0, 0, 2, 1, 0, 0]);
  });

  test.each([
    ["Day", "2026-11-19", "2026-11-13", [0, 0, 1, 0, 0, 2, 1]],
    ["Day", "-5d", "2026-11-10", [0, 0, 0, 0, 0, 1, 0]],
    ["Week", "2026-11-15", "2026-09-28", [0, 0, 0, 0, 0, 0, 1]],
    ["Month", "-2m", "2026-03-01", [0, 0, 0, 0, 0, 1, 0]],
    ["Hour", "2026-11-15T12:59:00", "2026-11-15 06:00:00", [0, 0, 0, 0, 0, 0, 1]],
  ])("with periods of a %s up to %s has the requested number", async (period, date_to, first, started) => {
    const table = await compute({ ...retention({ period }), dateRange: { date_from: "-30d", date_to } });
    expect(table[0].date).toBe(first);
    expect(table.map(({ values }) => values[0].count)).toEqual(started);
  });

  test.each<JsonObject>([
    { period: "Eon" },
    { totalIntervals: 61 },
    { totalIntervals: 0 },
    { targetEntity: { id: 1, type: "actions" } },
    { cumulative: true },
    { minimumOccurrences: 2 },
    { retentionCustomBrackets: [1, 7] },
    { timeWindowMode: "24_hour_windows" },
    { aggregationType: "sum" },
  ])("is rejected with %j", async (filter) => {
    await expect(compute(retention(filter))).rejects.toBeInstanceOf(UnknownQueryError);
  });
});

test("a lifecycle counts new, returning, resurrecting and dormant persons", async () => {
  const results = await compute({
    kind: "LifecycleQuery",
    series: steps("signup"),
    interval: "day",
    dateRange: { date_from: "-6d" },
  });
  expect(results.map(({ status }) => status)).toEqual(["new", "returning", "resurrecting", "dormant"]);
  expect(results[0].days).toHaveLength(7);
  expect(results.map(({ data }) => data)).toEqual([
    [0, 1, 1, 1, 0, 1, 0],
    [0, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0],
    [0, 0, -1, -1, -1, 0, -1],
  ]);
});

test("names that every object has are no operators, units or measures", async () => {
  const named = ["constructor", "toString", "__proto__"];
  const series = (more: object) => [{ kind: "EventsNode", event: "visit", ...more }];
  for (const name of named) {
    const properties = [{ key: "plan", value: 5, operator: name, type: "event" }];
    for (const query of [
      { kind: "TrendsQuery", series: series({ properties }) },
      { kind: "TrendsQuery", series: series({ math: name, math_property: "plan" }) },
      { kind: "FunnelsQuery", series: series({}), funnelsFilter: { funnelWindowIntervalUnit: name } },
    ])
      await expect(journeys.compute(query as never)).rejects.toBeInstanceOf(UnknownQueryError);
  }
});
