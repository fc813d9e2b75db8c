/** Where weeks start: by the project, or by the query (contract, management-api 6.3). */

import { beforeAll, describe, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { ServerProcess } from "../../support/server.ts";
import { stores, useStores } from "../../support/use-stores.ts";

/** A Wednesday; Sundays are November 1, 8 and 15. */
const now = Date.UTC(2026, 10, 18, 12);
const at = (day: string) => Date.parse(`2026-11-${day}T10:00:00Z`);
const series = (...events: string[]) => events.map((event) => ({ kind: "EventsNode", event }));
const dateRange = { date_from: "2026-11-02", date_to: "2026-11-15" };

const trend = { kind: "TrendsQuery", series: series("visit"), interval: "week", dateRange };
const lifecycle = { kind: "LifecycleQuery", series: series("visit"), interval: "week", dateRange };
const funnel = {
  kind: "FunnelsQuery",
  series: series("visit", "pay"),
  interval: "week",
  dateRange,
  funnelsFilter: { funnelVizType: "trends" },
};
const stickiness = { kind: "StickinessQuery", series: series("visit"), interval: "week", dateRange };
const retention = {
  kind: "RetentionQuery",
  dateRange: { date_to: "2026-11-15" },
  retentionFilter: {
    period: "Week",
    totalIntervals: 3,
    targetEntity: { id: "visit", type: "events" },
    returningEntity: { id: "visit", type: "events" },
  },
};
/** Saturday 7 and Sunday 8 are of one week or of two. */
const events = [
  { event: "visit", distinctId: "ann", time: at("07") },
  { event: "visit", distinctId: "ann", time: at("08") },
  { event: "pay", distinctId: "ann", time: at("09") },
  { event: "visit", distinctId: "bob", time: at("08") },
];

describe("computed in the event store", () => {
  useStores();
  beforeAll(async () => {
    await stores.load(events);
  });
  const compute = (query: JsonObject, weekStartDay?: 0 | 1 | null) =>
    stores.ask(
      (store) => computeInsight(store, { projectId: 1, query, timezone: "UTC", now, weekStartDay }),
      // biome-ignore lint/suspicious/noExplicitAny: results of every kind.
    ) as any;

  const cases: [name: string, query: JsonObject, bySunday: unknown, byMonday: unknown][] = [
    [
      "a trend",
      trend,
      [
        ["2026-11-01", 1],
        ["2026-11-08", 2],
        ["2026-11-15", 0],
      ],
      [
        ["2026-11-02", 3],
        ["2026-11-09", 0],
      ],
    ],
    [
      "a funnel by week",
      funnel,
      [
        ["2026-11-01", 1],
        ["2026-11-08", 2],
        ["2026-11-15", 0],
      ],
      [
        ["2026-11-02", 2],
        ["2026-11-09", 0],
      ],
    ],
    [
      "who is new, by week",
      lifecycle,
      [
        ["2026-11-01", 1],
        ["2026-11-08", 1],
        ["2026-11-15", 0],
      ],
      [
        ["2026-11-02", 2],
        ["2026-11-09", 0],
      ],
    ],
    [
      "a stickiness",
      stickiness,
      [
        [1, 1],
        [2, 1],
        [3, 0],
      ],
      [
        [1, 2],
        [2, 0],
      ],
    ],
    [
      "a retention",
      retention,
      [
        ["2026-11-01", [1, 1, 0]],
        ["2026-11-08", [2, 0]],
        ["2026-11-15", [0]],
      ],
      [
        ["2026-10-26", [0, 0, 0]],
        ["2026-11-02", [2, 0]],
        ["2026-11-09", [0]],
      ],
    ],
  ];
  for (const [name, query, bySunday, byMonday] of cases) {
    test(`${name}: the query's day precedes the project's, Monday by default`, async () => {
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      const shown = (found: any[]) =>
        query.kind === "RetentionQuery"
          ? found.map(({ date, values }) => [date, values.map(({ count }: { count: number }) => count)])
          : found[0].days.map((day: string, place: number) => [
              day,
              (found[0].reached_from_step_count ?? found[0].data)[place],
            ]);
      for (const [own, project, wanted] of [
        [0, undefined, bySunday],
        [0, 1, bySunday],
        [undefined, 0, bySunday],
        [null, 0, bySunday],
        [1, 0, byMonday],
        [undefined, null, byMonday],
        [undefined, undefined, byMonday],
      ] as const) {
        const asked = own === undefined ? query : { ...query, weekStartDay: own };
        expect([own, project, shown(await compute(asked, project))]).toEqual([own, project, wanted]);
      }
    });
    test(`${name}: another day, or one in another place, is rejected by name`, async () => {
      for (const weekStartDay of [2, -1, 6, 0.5, "0", "monday", true, [], {}]) {
        await expect(compute({ ...query, weekStartDay })).rejects.toThrow(/weekStartDay/);
      }
      for (const part of [
        "trendsFilter",
        "funnelsFilter",
        "retentionFilter",
        "stickinessFilter",
        "dateRange",
      ]) {
        const inside = { ...((query[part] as JsonObject | undefined) ?? {}), weekStartDay: 0 };
        await expect(compute({ ...query, [part]: inside })).rejects.toThrow(`${part}.weekStartDay`);
      }
      const around = { kind: "InsightVizNode", source: query, weekStartDay: 0 };
      await expect(compute(around)).rejects.toThrow("Set weekStartDay in the `source`");
    });
  }

  test("the period before has the same weeks", async () => {
    const query = { ...trend, dateRange: { date_from: "-1wStart", date_to: "-1wEnd" } };
    const compared = { ...query, weekStartDay: 0, compareFilter: { compare: true } };
    const found = await compute(compared);
    expect(found.map(({ days, data }: JsonObject) => [days, data])).toEqual([
      [["2026-11-08"], [2]],
      [["2026-11-01"], [1]],
    ]);
  });
});

test("over HTTP: the project's day, the query's, saved insights and dashboards", async () => {
  await using server = await ServerProcess.start();
  const path = `/api/projects/${server.initialized.project.id}/`;
  await server.batch(
    events.map(({ event, distinctId, time }) => ({
      event,
      distinct_id: distinctId,
      timestamp: new Date(time).toISOString(),
      properties: {},
    })),
  );
  await server.eventsWhenStored(events.length);
  const api = async (method: string, rest: string, body?: unknown) => {
    const answer = await server.api(`${path}${rest}`, { method, ...(body === undefined ? {} : { body }) });
    // biome-ignore lint/suspicious/noExplicitAny: answers of every kind.
    return { status: answer.status, body: (await answer.json()) as any };
  };
  const days = async (query: JsonObject) => (await api("POST", "query/", { query })).body.results[0].days;
  const sundays = ["2026-11-01", "2026-11-08", "2026-11-15"];
  const mondays = ["2026-11-02", "2026-11-09"];
  expect(await days(trend)).toEqual(mondays);
  const dashboard = (await api("POST", "dashboards/", { name: "Weeks" })).body;
  const saved = (
    await api("POST", "insights/", { name: "By week", query: trend, dashboards: [dashboard.id] })
  ).body;
  const own = { kind: "InsightVizNode", source: { ...trend, weekStartDay: 1 } };
  const withOwn = (await api("POST", "insights/", { name: "By Monday", query: own })).body;
  expect(withOwn.query).toEqual(own);
  const read = async (id: number) => (await api("GET", `insights/${id}/`)).body.result[0].days;
  expect(await read(saved.id)).toEqual(mondays);
  expect(await api("PATCH", "", { week_start_day: 0 })).toMatchObject({
    status: 200,
    body: { week_start_day: 0 },
  });
  // What was computed with the other weeks is not right any more.
  expect(await read(saved.id)).toEqual(sundays);
  expect((await api("GET", `dashboards/${dashboard.id}/`)).body.tiles[0].insight.result[0].days).toEqual(
    sundays,
  );
  expect(await read(withOwn.id)).toEqual(mondays);
  expect(await days(trend)).toEqual(sundays);
  expect(await days({ ...trend, weekStartDay: 1 })).toEqual(mondays);
  for (const query of [
    { ...trend, weekStartDay: 7 },
    { ...retention, weekStartDay: "Sunday" },
  ]) {
    const { status, body } = await api("POST", "query/", { query });
    expect([status, body.type, body.attr]).toEqual([400, "validation_error", "query"]);
    expect(body.detail).toContain("weekStartDay");
  }
});
