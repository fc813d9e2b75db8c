import { describe, expect, test } from "bun:test";
import { recordFeatureViews, recordFlagCalls } from "../../../src/flags/store/flag-usage.ts";
import { flagsPath, TestServer, withFlags } from "../../support/management-server.ts";

const dayMs = 86_400_000;
const on = { groups: [{ properties: [], rollout_percentage: 100 }] };

describe("status", () => {
  for (const [name, body, days, calledDaysAgo, status, reason] of [
    ["new", {}, 0, null, "active", "Flag has no usage data yet"],
    [
      "old, for some",
      { filters: { groups: [{ rollout_percentage: 50 }] } },
      40,
      null,
      "active",
      "Flag has no usage data yet",
    ],
    ["old, for all", { filters: on }, 40, null, "stale", 'This boolean flag will always evaluate to "true"'],
    ["called", { filters: on }, 40, 0, "active", "Flag was called today"],
    ["called before", { filters: on }, 40, 2, "active", "Flag was last called 2 days ago"],
    ["forgotten", {}, 40, 33, "stale", "Flag has not been called in 33 days"],
    [
      "off",
      { filters: on, active: false },
      40,
      null,
      "active",
      "Flag is disabled (not evaluated for staleness)",
    ],
    ["deleted", { deleted: true }, 0, null, "deleted", "Flag has been deleted"],
  ] as const) {
    test(name, async () => {
      using server = await withFlags({ key: "a", ...body });
      server.now = new Date(server.now.getTime() + days * dayMs);
      if (calledDaysAgo !== null) {
        recordFlagCalls(server.metadata, 1, [
          { key: "a", at: new Date(server.now.getTime() - calledDaysAgo * dayMs) },
        ]);
      }
      const answer = await server.ask("GET", `${flagsPath}1/status/`);
      expect(answer).toMatchObject({ status: 200, body: { status, reason } });
      expect((await server.ask("GET", `${flagsPath}1/`)).body.status).toBe(status.toUpperCase());
    });
  }
  test("unknown", async () => {
    using server = new TestServer();
    expect(await server.ask("GET", `${flagsPath}9/status/`)).toMatchObject({
      status: 404,
      body: { status: "unknown", reason: "Flag could not be found" },
    });
  });
});

describe("effects of usage on a flag", () => {
  test("the newest call counts; nothing else changes", async () => {
    using server = await withFlags({ key: "a" });
    const before = (await server.ask("GET", `${flagsPath}1/`)).body;
    recordFlagCalls(server.metadata, 1, [
      { key: "a", at: new Date("2026-03-01T11:00:00Z") },
      { key: "a", at: new Date("2026-03-01T10:00:00Z") },
      { key: "unknown", at: new Date("2026-03-01T10:00:00Z") },
    ]);
    recordFlagCalls(server.metadata, 2, [{ key: "a", at: new Date("2026-03-01T12:00:00Z") }]);
    const after = (await server.ask("GET", `${flagsPath}1/`)).body;
    expect(after).toEqual({ ...before, last_called_at: "2026-03-01T11:00:00.000000Z" });
    expect((await server.ask("GET", `${flagsPath}1/activity/`)).body.total_count).toBe(1);
  });

  test("views enrich the usage dashboard once", async () => {
    using server = await withFlags({ key: "a" });
    const { usage_dashboard: dashboard } = (await server.ask("GET", `${flagsPath}1/`)).body;
    const names = async () =>
      (await server.ask("GET", `/api/projects/1/dashboards/${dashboard}/`)).body.tiles.map(
        (tile: { insight: { name: string } }) => tile.insight.name,
      );
    const enrich = () => server.ask("POST", `${flagsPath}1/enrich_usage_dashboard/`, { body: { any: 1 } });
    expect(await names()).toEqual([
      "Feature Flag Called Total Volume",
      "Feature Flag calls made by unique users per variant",
    ]);
    expect(await enrich()).toMatchObject({
      status: 400,
      body: { success: false, error: "No enriched analytics available for this feature flag" },
    });
    recordFeatureViews(server.metadata, 1, ["a", "unknown"]);
    recordFeatureViews(server.metadata, 1, ["a"]);
    expect((await names()).slice(2)).toEqual([
      "Feature Viewed Total Volume",
      "Feature Interaction Total Volume",
    ]);
    expect((await server.ask("GET", `${flagsPath}1/`)).body).toMatchObject({
      has_enriched_analytics: true,
      version: 1,
    });
    // A dashboard that is enriched already stays as it is.
    for (let times = 0; times < 2; times++)
      expect(await enrich()).toMatchObject({
        status: 200,
        body: { success: true, usage_dashboard: dashboard },
      });
    expect(await names()).toHaveLength(4);
  });
});

describe("usage dashboard", () => {
  test("is created with the flag unless disabled, and kept when requested again", async () => {
    using server = await withFlags({ key: "a" }, { key: "b", _should_create_usage_dashboard: false });
    const usage = async (id: number) => (await server.ask("GET", `${flagsPath}${id}/`)).body.usage_dashboard;
    const make = (id: number) => server.ask("POST", `${flagsPath}${id}/dashboard/`);
    const first = await usage(1);
    expect(await usage(2)).toBeNull();
    expect((await server.ask("POST", `${flagsPath}2/enrich_usage_dashboard/`)).body).toEqual({
      success: false,
      error: "Usage dashboard not found",
    });
    expect(await make(1)).toMatchObject({ status: 200, body: { success: true } });
    expect(await usage(1)).toBe(first);
    expect((await make(2)).body).toEqual({ success: true });
    expect(await usage(2)).toBeGreaterThan(first);

    await server.ask("PATCH", `/api/projects/1/dashboards/${first}/`, { body: { deleted: true } });
    await make(1);
    expect(await usage(1)).toBeGreaterThan(first);
    await server.ask("PATCH", `${flagsPath}1/`, { body: { deleted: true } });
    expect(await make(1)).toMatchObject({
      status: 400,
      body: {
        success: false,
        error: "This feature flag has been deleted. Restore it before generating a usage dashboard.",
      },
    });
  });

  test("shows the calls of the flag", async () => {
    using server = await withFlags({ key: "a" });
    const id = (await server.ask("GET", `${flagsPath}1/`)).body.usage_dashboard;
    const { body } = await server.ask("GET", `/api/projects/1/dashboards/${id}/`);
    expect(body).toMatchObject({
      name: "Generated Dashboard: a Usage",
      description: "This dashboard was generated by the feature flag with key (a)",
      creation_mode: "template",
      filters: { date_from: "-30d" },
      tags: ["feature flags"],
      tiles: [
        { color: "blue", order: 0, layouts: { sm: { x: 0, y: 0, w: 6, h: 5 } } },
        { color: "green", order: 1, layouts: { sm: { x: 6, y: 0, w: 6, h: 5 } } },
      ],
    });
    const source = body.tiles[1].insight.query.source;
    expect(source.series).toMatchObject([{ event: "$feature_flag_called", math: "dau" }]);
    expect(source.breakdownFilter).toEqual({ breakdown: "$feature_flag_response", breakdown_type: "event" });
  });
});
