/** `weekly_active` and `monthly_active`: persons active in the 7 or 30 days up to the end of each bucket. */

import { beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { wallTimeAt } from "../../../src/lib/time-zone.ts";
import { TestStores } from "../../support/event-store.ts";
import { stores, useStores } from "../../support/use-stores.ts";

/** A Wednesday. */
const now = Date.UTC(2026, 10, 18, 12, 30);
const hour = 3_600_000;
const day = 24 * hour;
const at = (text: string) => Date.parse(`2026-${text}Z`);

interface Visit {
  who: string;
  time: number;
  plan?: string;
}

async function load(stores: TestStores, visits: readonly Visit[]): Promise<void> {
  await stores.load(
    visits.map(({ who, time, plan }) => {
      return { event: "visit", distinctId: who, time, properties: plan === undefined ? {} : { plan } };
    }),
  );
  await stores.mirror.follow();
}

async function trends(stores: TestStores, query: JsonObject, timezone = "UTC"): Promise<JsonObject[]> {
  const request = { projectId: 1, query: { kind: "TrendsQuery", ...query }, timezone, now };
  return (await stores.ask((store) => computeInsight(store, request))) as JsonObject[];
}

const visits = (math: string) => [{ kind: "EventsNode", event: "visit", math }];

useStores();
beforeAll(async () => {
  await load(stores, [
    { who: "ann", time: at("11-01T23:59:59.999"), plan: "free" },
    { who: "bob", time: at("11-05T00:00:00"), plan: "paid" },
    { who: "bob", time: at("11-07T10:00:00"), plan: "paid" },
    { who: "cy", time: at("11-07T11:00:00"), plan: "free" },
    // The same person.
    { who: "cy2", time: at("11-08T11:00:00"), plan: "free" },
  ]);
  await stores.load([
    { event: "$identify", distinctId: "cy", time: now, properties: { $anon_distinct_id: "cy2" } },
  ]);
  await stores.mirror.follow();
});

const firstHalf = { date_from: "2026-11-05", date_to: "2026-11-15" };

test("a person is active from a day on for seven days, and counted once", async () => {
  const [result] = await trends(stores, { series: visits("weekly_active"), dateRange: firstHalf });
  // Ann until the 7th, Bob from the 5th until the 13th, Cy from the 7th until the 14th.
  expect(result!.data).toEqual([2, 2, 3, 2, 2, 2, 2, 2, 2, 1, 0]);
  expect(result!.action).toMatchObject({ math: "weekly_active" });
  const [monthly] = await trends(stores, { series: visits("monthly_active"), dateRange: firstHalf });
  expect(monthly!.data).toEqual([2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
});

test("by a property, each value separately", async () => {
  const query = { dateRange: firstHalf, breakdownFilter: { breakdown: "plan" } };
  const results = await trends(stores, { series: visits("weekly_active"), ...query });
  expect(results.map(({ label, data }) => [label, data])).toEqual([
    ["free", [1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 0]],
    ["paid", [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]],
  ]);
});

test("as one figure, the last days of the range count", async () => {
  const figure = async (math: string, dateRange: JsonObject, more: JsonObject = {}) =>
    (
      await trends(stores, {
        series: visits(math),
        dateRange,
        trendsFilter: { display: "BoldNumber" },
        ...more,
      })
    ).map(({ aggregated_value: value }) => value);
  expect(await figure("weekly_active", { date_from: "2026-11-01", date_to: "2026-11-14" })).toEqual([1]);
  expect(await figure("weekly_active", { date_from: "2026-11-13", date_to: "2026-11-13" })).toEqual([2]);
  expect(await figure("monthly_active", { date_from: "2026-11-13", date_to: "2026-11-13" })).toEqual([3]);
  expect(await figure("weekly_active", { date_from: "2026-11-20", date_to: "2026-11-21" })).toEqual([0]);
  const byPlan = { breakdownFilter: { breakdown: "plan" } };
  expect(await figure("weekly_active", { date_from: "2026-11-07", date_to: "2026-11-07" }, byPlan)).toEqual([
    2, 1,
  ]);
  // Weeks are counted as unique users, over the whole range.
  const weeks = { interval: "week" };
  expect(await figure("weekly_active", { date_from: "2026-11-01", date_to: "2026-11-14" }, weeks)).toEqual([
    3,
  ]);
});

test("buckets of at least the days are counted like unique users", async () => {
  for (const [math, interval] of [
    ["weekly_active", "week"],
    ["weekly_active", "month"],
    ["monthly_active", "month"],
  ] as const) {
    const query = { interval, dateRange: { date_from: "2026-10-28", date_to: "2026-11-18" } };
    const [active] = await trends(stores, { ...query, series: visits(math) });
    const [unique] = await trends(stores, { ...query, series: visits("dau") });
    expect(active!.data).toEqual(unique!.data as number[]);
  }
});

test("compared with an earlier period, which has its own days before", async () => {
  const dateRange = { date_from: "2026-11-12", date_to: "2026-11-14" };
  const results = await trends(stores, {
    series: visits("weekly_active"),
    dateRange,
    compareFilter: { compare: true, compare_to: "-7d" },
  });
  expect(results.map(({ data }) => data)).toEqual([
    [2, 2, 1],
    [2, 2, 3],
  ]);
});

test("running totals of active users are rejected by name", async () => {
  const trendsFilter = { display: "ActionsLineGraphCumulative" };
  await expect(trends(stores, { series: visits("weekly_active"), trendsFilter })).rejects.toThrow(
    "ActionsLineGraphCumulative is not supported for the math weekly_active",
  );
});

const people = ["a", "b", "c", "d", "e"];
const visit = fc.record({
  who: fc.constantFrom(...people),
  time: fc.integer({ min: -60 * 24, max: 12 }).map((hours) => now + hours * hour),
  plan: fc.constantFrom("x", "y", undefined),
});
const asked = fc.record({
  math: fc.constantFrom("weekly_active", "monthly_active"),
  interval: fc.constantFrom("hour", "day", "week"),
  dateRange: fc.constantFrom<JsonObject>(
    { date_from: "-7d" },
    { date_from: "2026-10-22", date_to: "2026-10-28" },
    { date_from: "2026-10-22T07:30:00", date_to: "2026-11-01T19:45:00" },
    { date_from: "all" },
  ),
  weekStartDay: fc.constantFrom(0, 1),
  timezone: fc.constantFrom("UTC", "Europe/Berlin", "Asia/Kathmandu"),
});

test("every bucket counts what going through all visits counts", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(visit, { minLength: 1, maxLength: 40 }) as fc.Arbitrary<Visit[]>,
      fc.array(asked, { minLength: 12, maxLength: 20 }),
      async (all, queries) => {
        await using random = await TestStores.open();
        await load(random, all);
        for (const { math, timezone, ...query } of queries) {
          const isUnique = math === "weekly_active" && query.interval === "week";
          const days = math === "weekly_active" ? 7 : 30;
          const results = await trends(random, { series: visits(math), ...query }, timezone);
          const written = results[0]!.days as string[];
          const starts = written.map((text) =>
            Date.parse(`${text.replace(" ", "T").padEnd(19, "T00:00:00")}Z`),
          );
          const to = query.dateRange.date_to as string | undefined;
          const wallNow = wallTimeAt(now, timezone);
          const unit = query.interval === "hour" ? hour : day;
          const open = (Math.floor(wallNow / unit) + 1) * unit;
          const end = to === undefined ? open : Date.parse(`${to}Z`) + (to.length === 10 ? day : 0);
          const expected = starts.map((_, place) => {
            if (isUnique) return undefined;
            const next = Math.min(starts[place + 1] ?? end, end);
            // In whole days or hours, like the buckets.
            const last = Math.ceil(next / unit) * unit;
            const active = all.filter(({ time }) => {
              const moment = wallTimeAt(time, timezone);
              return moment < end && moment < next && moment >= last - days * day;
            });
            return new Set(active.map(({ who }) => who)).size;
          });
          if (!isUnique) expect(results[0]!.data as number[]).toEqual(expected as number[]);
        }
      },
    ),
    { numRuns: 8 },
  );
}, 60_000);
