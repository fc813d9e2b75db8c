/** Funnels, retention and lifecycle over the real event store; funnels against a model that tries every way. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { UnknownQuery } from "../../src/events/event-filters.ts";
import { computeInsight } from "../../src/events/insights.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { TestStores } from "../support/event-store.ts";

const now = Date.UTC(2026, 10, 21, 12, 30);
const hour = 3_600_000;
const day = 24 * hour;

let stores: TestStores;
beforeAll(async () => {
  stores = await TestStores.open();
  const at = (days: number, hours = 0) => now - days * day - hours * hour;
  await stores.load([
    // Ann goes all the way, first under another id; Bob stops; Cid pays too late; Dee does it the wrong way round.
    { event: "visit", distinctId: "ann-before", time: at(3, 2) },
    { event: "signup", distinctId: "ann", time: at(3, 1), properties: { plan: "pro" } },
    { event: "pay", distinctId: "ann", time: at(3) },
    { event: "visit", distinctId: "bob", time: at(2), properties: { source: "ad" } },
    { event: "signup", distinctId: "bob", time: at(1) },
    { event: "visit", distinctId: "cid", time: at(6), properties: { source: "ad" } },
    { event: "signup", distinctId: "cid", time: at(5) },
    { event: "pay", distinctId: "cid", time: at(1) },
    { event: "signup", distinctId: "dee", time: at(4) },
    { event: "visit", distinctId: "dee", time: at(3), properties: { source: "it's" } },
    { event: "visit", distinctId: "far", time: at(90) },
    { event: "visit", distinctId: "other", project: 2, time: at(2) },
    { event: "$identify", distinctId: "ann", time: now, properties: { $anon_distinct_id: "ann-before" } },
  ]);
  await stores.mirror.follow();
});
afterAll(() => stores[Symbol.asyncDispose]());

async function compute(query: JsonObject, { timezone = "UTC", projectId = 1 } = {}) {
  const connection = await stores.database.connect();
  try {
    // biome-ignore lint/suspicious/noExplicitAny: results of every kind.
    return (await computeInsight(connection, { projectId, query, timezone, now })) as any[];
  } finally {
    connection.closeSync();
  }
}
const steps = (...events: string[]) => events.map((event) => ({ kind: "EventsNode", event }));
const funnel = (more: JsonObject = {}): JsonObject => ({
  kind: "FunnelsQuery",
  series: steps("visit", "signup", "pay"),
  dateRange: { date_from: "-7d" },
  ...more,
});
const counts = (results: { count: number }[]) => results.map(({ count }) => count);

describe("a funnel", () => {
  test("counts people by the steps they got to, in order, each within the window", async () => {
    const results = await compute(funnel());
    expect(counts(results)).toEqual([4, 3, 2]);
    expect(results[1]).toMatchObject({ name: "signup", order: 1, type: "events" });
    expect(results[0].average_conversion_time).toBeNull();
    expect(results[1].median_conversion_time).toBe(86_400);
    const short = await compute(
      funnel({ funnelsFilter: { funnelWindowInterval: 2, funnelWindowIntervalUnit: "day" } }),
    );
    expect(counts(short)).toEqual([4, 3, 1]);
    const shorter = await compute(
      funnel({ funnelsFilter: { funnelWindowInterval: 1, funnelWindowIntervalUnit: "hour" } }),
    );
    expect(counts(shorter)).toEqual([4, 1, 0]);
  });

  test("is told apart by a property of the first step", async () => {
    const results = await compute(funnel({ breakdownFilter: { breakdown: "source" } }));
    expect(results.map((one) => [one[0].breakdown_value[0], counts(one)])).toEqual([
      ["ad", [2, 2, 1]],
      ["it's", [1, 0, 0]],
      ["", [1, 1, 1]],
    ]);
  });

  test("filters its steps, and may be wrapped", async () => {
    const series: JsonObject[] = [
      { kind: "EventsNode", event: "visit" },
      { kind: "EventsNode", event: "signup", properties: [{ key: "plan", value: "pro", operator: "exact" }] },
    ];
    expect(counts(await compute({ kind: "InsightVizNode", source: funnel({ series }) }))).toEqual([4, 1]);
  });

  test("with the same event twice needs it twice", async () => {
    expect(counts(await compute(funnel({ series: steps("visit", "visit") })))).toEqual([4, 0]);
  });

  test("of a project without events is empty", async () => {
    expect(counts(await compute(funnel(), { projectId: 9 }))).toEqual([0, 0, 0]);
  });

  test.each<JsonObject>([
    { series: [] },
    { series: steps(..."abcdefghijklmnopqrstu") },
    { funnelsFilter: { funnelOrderType: "strict" } },
    { funnelsFilter: { funnelVizType: "trends" } },
    { funnelsFilter: { funnelWindowInterval: -1 } },
    { funnelsFilter: { funnelWindowIntervalUnit: "eon" } },
    { dateRange: { date_from: "when" } },
  ])("is refused with %j", async (more) => {
    expect(compute(funnel(more))).rejects.toBeInstanceOf(UnknownQuery);
  });

  test("finds what trying every way finds", async () => {
    const names = ["a", "b", "c"];
    let project = 100;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            event: fc.constantFrom(...names),
            at: fc.integer({ min: 0, max: 12 }),
            who: fc.constantFrom("x", "y"),
          }),
          {
            maxLength: 14,
          },
        ),
        fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 6 }),
        async (events, wanted, hours) => {
          const projectId = project++;
          await stores.load(
            events.map(({ event, at, who }) => ({
              event,
              distinctId: who,
              project: projectId,
              time: now - day + at * hour,
            })),
          );
          const query = funnel({
            series: steps(...wanted),
            funnelsFilter: { funnelWindowInterval: hours, funnelWindowIntervalUnit: "hour" },
          });
          const expected = wanted.map((_, index) => {
            return ["x", "y"].filter((who) =>
              reaches(
                events.filter((one) => one.who === who),
                wanted.slice(0, index + 1),
                hours,
              ),
            ).length;
          });
          expect(counts(await compute(query, { projectId }))).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  });
});

/** Whether some choice of events, each later (or at the same time and stored later), does the steps in time. */
function reaches(events: { event: string; at: number }[], wanted: string[], hours: number): boolean {
  const go = (
    step: number,
    after: { at: number; index: number } | undefined,
    start: number | undefined,
  ): boolean => {
    if (step === wanted.length) return true;
    return events.some(({ event, at }, index) => {
      if (event !== wanted[step]) return false;
      if (after !== undefined && (at < after.at || (at === after.at && index <= after.index))) return false;
      if (start !== undefined && at - start > hours) return false;
      return go(step + 1, { at, index }, start ?? at);
    });
  };
  return go(0, undefined, undefined);
}

describe("retention", () => {
  const retention = (filter: JsonObject): JsonObject => ({
    kind: "RetentionQuery",
    retentionFilter: {
      ...{ period: "Day", totalIntervals: 7 },
      targetEntity: { id: "visit", type: "events" },
      returningEntity: { id: "signup", type: "events" },
      ...filter,
    },
  });
  test("counts who comes back, by the day they came first", async () => {
    const results = await compute(retention({}));
    expect(results.map(({ date, label }) => [date, label])).toEqual([
      ...[
        ["2026-11-15", "Day 0"],
        ["2026-11-16", "Day 1"],
        ["2026-11-17", "Day 2"],
        ["2026-11-18", "Day 3"],
      ],
      ...[
        ["2026-11-19", "Day 4"],
        ["2026-11-20", "Day 5"],
        ["2026-11-21", "Day 6"],
      ],
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

  test("of the first time ever leaves out who came before", async () => {
    const all = await compute(
      retention({ returningEntity: { id: "visit", type: "events" }, retentionType: "retention_first_time" }),
    );
    expect(all.map(({ values }) => values[0].count)).toEqual([1, 0, 0, 2, 1, 0, 0]);
  });

  test.each<JsonObject>([
    { period: "Eon" },
    { totalIntervals: 61 },
    { totalIntervals: 0 },
    { targetEntity: { id: 1, type: "actions" } },
  ])("is refused with %j", async (filter) => {
    expect(compute(retention(filter))).rejects.toBeInstanceOf(UnknownQuery);
  });
});

test("a lifecycle tells who is new, comes back and stays away", async () => {
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
