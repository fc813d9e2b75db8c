/** Funnels over the real event store, some against a model that tries every way. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { UnknownQueryError } from "../../../src/events/event-filters.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { firstDurationMs, starts } from "./funnel-model.ts";
import { counts, day, hour, Journeys, now, steps } from "./journeys.ts";

let journeys: Journeys;
beforeAll(async () => {
  journeys = await Journeys.open();
});
afterAll(() => journeys[Symbol.asyncDispose]());

const compute: Journeys["compute"] = (query, index) => journeys.compute(query, index);
const funnel = (more: JsonObject = {}): JsonObject => ({
  kind: "FunnelsQuery",
  series: steps("visit", "signup", "pay"),
  dateRange: { date_from: "-7d" },
  ...more,
});

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

  test("distinguishes people whose uuids have the same hash", async () => {
    // The halves of the one are those of the other, the other way round.
    const people = ["92345678-9abc-def0-0fed-cba987654321", "8fedcba9-8765-4321-1234-56789abcdef0"];
    const rows = people.flatMap((who, index) =>
      [0, 1, 2].map((step) => `('${who}'::UUID, ${10 * step + index}, ${step})`),
    );
    const found = `SELECT who, moment, false AS lane, moment AS seq, NULL::VARCHAR AS value, step = 0 AS is_0, step = 1 AS is_1
      FROM (VALUES ${rows.join(", ")}) t(who, moment, step)`;
    await journeys.stores.ask(async (store) => {
      const same = await store.rows(`SELECT count(DISTINCT hash(who)) FROM (${found})`);
      expect(Number(same[0]![0])).toBe(1);
      const times = await store.walkOrdered!(found, { count: 2, windowMicros: 100, hasValues: false });
      expect(times.get(null)).toEqual([
        [0, 0],
        [10, 10],
      ]);
    });
  });

  test("is broken down by a property of the first step", async () => {
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

  test("is not affected by what clients send along", async () => {
    const series = steps("visit", "signup", "pay").map((step) => ({ ...step, math: "total" }));
    const [plain] = await compute(funnel({ series: steps("visit", "signup", "pay") }));
    const sent: JsonObject[] = [
      { exclusions: [], funnelAggregateByHogQL: null, breakdownAttributionType: "first_touch" },
      { funnelAggregateByHogQL: "person_id", breakdownAttributionType: "step", breakdownAttributionValue: 0 },
    ];
    for (const more of sent) {
      const [same] = await compute(funnel({ series, funnelsFilter: more }));
      expect(same.count).toBe(plain.count);
    }
  });

  test("of a project without events is empty", async () => {
    expect(counts(await compute(funnel(), { projectId: 9 }))).toEqual([0, 0, 0]);
  });

  test.each<JsonObject>([
    { series: [] },
    { series: steps(..."abcdefghijklmnopqrstu") },
    { funnelsFilter: { funnelOrderType: "sideways" } },
    { funnelsFilter: { funnelVizType: "flow" } },
    { funnelsFilter: { funnelVizType: "time_to_convert", funnelToStep: 0 } },
    { funnelsFilter: { funnelVizType: "time_to_convert", binCount: 0 } },
    { funnelsFilter: { funnelVizType: "time_to_convert", binCount: 91 } },
    { funnelsFilter: { funnelVizType: "time_to_convert", binCount: "3" } },
    { funnelsFilter: { funnelVizType: "time_to_convert" }, breakdownFilter: { breakdown: "source" } },
    { funnelsFilter: { funnelToStep: 3 } },
    { funnelsFilter: { funnelFromStep: "0" } },
    { funnelsFilter: { funnelFromStep: 2, funnelToStep: 1 } },
    { funnelsFilter: { funnelVizType: "trends" }, interval: "eon" },
    { funnelsFilter: { funnelWindowInterval: -1 } },
    { funnelsFilter: { funnelWindowIntervalUnit: "eon" } },
    { dateRange: { date_from: "when" } },
    { aggregation_group_type_index: 0 },
    { series: [{ event: "visit", math: "first_time_for_user" }, ...steps("pay")] },
    { series: [...steps("visit"), { event: "pay", optionalInFunnel: true }] },
    {
      funnelsFilter: {
        exclusions: [{ kind: "EventsNode", event: "pay", funnelFromStep: 0, funnelToStep: 1 }],
      },
    },
    { funnelsFilter: { funnelAggregateByHogQL: "properties.$session_id" } },
    { funnelsFilter: { breakdownAttributionType: "last_touch" } },
    { funnelsFilter: { breakdownAttributionType: "step", breakdownAttributionValue: 1 } },
  ])("is rejected with %j", async (more) => {
    await expect(compute(funnel(more))).rejects.toBeInstanceOf(UnknownQueryError);
  });

  test("that is strict allows no other event in between", async () => {
    const strict = { funnelsFilter: { funnelOrderType: "strict" } };
    // Bob and Cid do nothing else; Ann neither, whichever id she had.
    expect(counts(await compute(funnel(strict)))).toEqual([4, 3, 2]);
    expect(counts(await compute(funnel({ ...strict, series: steps("visit", "pay") })))).toEqual([4, 0]);
  });

  test("that is unordered counts how many of the steps a user did", async () => {
    const results = await compute(funnel({ funnelsFilter: { funnelOrderType: "unordered" } }));
    expect(counts(results)).toEqual([4, 4, 2]);
    expect(results.map(({ name }) => name)).toEqual([
      "Completed 1 step",
      "Completed 2 steps",
      "Completed 3 steps",
    ]);
    expect(results[1].median_conversion_time).toBe(86_400);
  });

  test("by day shows how many of those who started then converted", async () => {
    const query = funnel({ interval: "day", funnelsFilter: { funnelVizType: "trends" } });
    const [all, ...others] = await compute(query);
    expect(others).toEqual([]);
    expect(all.days).toEqual(all.days.toSorted());
    const on = (days: number) => all.days.indexOf(new Date(now - days * day).toISOString().slice(0, 10));
    expect(all.data[on(6)]).toBe(100);
    expect(all.data[on(3)]).toBe(50);
    expect(all.data[on(2)]).toBe(0);
    expect(all.reached_from_step_count[on(3)]).toBe(2);
    expect(all.reached_to_step_count[on(3)]).toBe(1);
    expect([all.count, all.labels.length, all.data.length]).toEqual(Array(3).fill(all.days.length));

    const [bob] = await compute(
      funnel({ funnelsFilter: { funnelVizType: "trends", funnelFromStep: 0, funnelToStep: 1 } }),
    );
    expect(bob.data[on(2)]).toBe(100);
    const reported = await compute({ ...query, breakdownFilter: { breakdown: "source" } });
    expect(reported.map(({ breakdown_value }) => breakdown_value[0]).sort()).toEqual(["", "ad", "it's"]);
  });

  test("measures the time between two steps", async () => {
    const times = async (more: JsonObject = {}) =>
      (await compute(funnel({ funnelsFilter: { funnelVizType: "time_to_convert", ...more } }))) as unknown;
    // Ann took two hours, Cid five days.
    const least = 2 * 3_600;
    const most = 5 * 86_400;
    expect(await times()).toEqual({
      bins: [
        [least, 1],
        [least + (most - least) / 2, 0],
        [most, 1],
      ],
      average_conversion_time: (least + most) / 2,
    });
    const tenths = (await times({ binCount: 10 })) as { bins: [number, number][] };
    expect(tenths.bins.map(([, people]) => people)).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    // An hour, a day and a day.
    expect(await times({ funnelToStep: 1, binCount: 1 })).toEqual({
      bins: [
        [3_600, 1],
        [86_400, 2],
      ],
      average_conversion_time: (2 * 86_400 + 3_600) / 3,
    });
    // Of equal times one bin is a minute wide.
    const alone = { funnelFromStep: 1, funnelWindowInterval: 3, funnelWindowIntervalUnit: "hour" };
    expect(await times(alone)).toEqual({
      bins: [
        [3_600, 1],
        [3_660, 0],
      ],
      average_conversion_time: 3_600,
    });
    expect(await times({ funnelWindowInterval: 1, funnelWindowIntervalUnit: "hour" })).toEqual({
      bins: [],
      average_conversion_time: null,
    });
  });

  test.each(["ordered", "strict", "unordered"])(
    "that is %s is ordered by arrival among equal times, historical events last",
    async (funnelOrderType) => {
      const project = { ordered: 4_001, strict: 4_002, unordered: 4_003 }[funnelOrderType]!;
      const started = { event: "begin", distinctId: "x", project, time: now - 3 * hour };
      await journeys.stores.load([{ ...started, properties: { plan: "historical" } }], "historical");
      await journeys.stores.load([
        { ...started, properties: { plan: "first" } },
        { ...started, properties: { plan: "second" } },
      ]);
      for (const funnelVizType of ["steps", "trends"]) {
        const query = funnel({
          series: steps("begin", "end"),
          funnelsFilter: { funnelOrderType, funnelVizType },
          breakdownFilter: { breakdown: "plan" },
        });
        const [found] = (await compute(query, { projectId: project })).flat();
        expect(found.breakdown_value).toEqual(["first"]);
      }
    },
  );

  test.each(["ordered", "strict", "unordered"] as const)(
    "that is %s finds what trying every way finds",
    async (order) => {
      const names = ["a", "b", "c"];
      let project = { ordered: 1_000, strict: 2_000, unordered: 3_000 }[order];
      await fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              event: fc.constantFrom(...names),
              at: fc.integer({ min: 0, max: 12 }),
              who: fc.constantFrom("x", "y"),
            }),
            { maxLength: 14 },
          ),
          fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }),
          fc.integer({ min: 1, max: 6 }),
          async (events, wanted, hours) => {
            const projectId = project++;
            const start = now - day;
            await journeys.stores.load(
              events.map(({ event, at, who }) => ({
                event,
                distinctId: who,
                project: projectId,
                time: start + at * hour,
              })),
            );
            const filter = {
              funnelOrderType: order,
              funnelWindowInterval: hours,
              funnelWindowIntervalUnit: "hour",
            };
            const ways = (who: string, upTo: number) =>
              starts[order](
                events.filter((one) => one.who === who),
                { wanted, upTo, hours },
              );
            const series = steps(...wanted);
            const people = ["x", "y"];
            expect(counts(await compute(funnel({ series, funnelsFilter: filter }), { projectId }))).toEqual(
              wanted.map((_, index) => people.filter((who) => ways(who, index + 1).length > 0).length),
            );
            const [trend] = await compute(
              funnel({ series, interval: "hour", funnelsFilter: { ...filter, funnelVizType: "trends" } }),
              { projectId },
            );
            const byHour = (upTo: number) =>
              trend.days.map((bucket: string) => {
                const at = Math.round((Date.parse(`${bucket.replace(" ", "T")}Z`) + hour / 2 - start) / hour);
                return people.filter((who) => ways(who, upTo).includes(at)).length;
              });
            expect(trend.reached_from_step_count).toEqual(byHour(1));
            expect(trend.reached_to_step_count).toEqual(byHour(wanted.length));
            if (wanted.length === 1) return;
            const filterOfTimes = { ...filter, funnelVizType: "time_to_convert", binCount: 1 };
            const query = funnel({ series, funnelsFilter: filterOfTimes });
            const times = (await compute(query, { projectId })) as unknown as JsonObject;
            const durationMs = people
              .map((who) =>
                firstDurationMs[order](
                  events.filter((one) => one.who === who),
                  { wanted, hours },
                ),
              )
              .filter((one) => one !== undefined);
            const average =
              durationMs.length === 0
                ? null
                : (durationMs.reduce((a, b) => a + b) / durationMs.length) * 3_600;
            expect(times.average_conversion_time).toBe(average);
          },
        ),
        { numRuns: 60 },
      );
    },
  );
});
