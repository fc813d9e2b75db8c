/** Dashboards and insights over the API. */

import { describe, expect, test } from "bun:test";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";

describe("dashboards and insights", () => {
  test("are created, filled, pinned, shown with results, and deleted", async () => {
    const asked: unknown[] = [];
    const result = [{ label: "x", count: 3, data: [1, 2], days: ["a", "b"] }];
    using server = new TestServer({
      deps: {
        insights: {
          run: async (projectId, query, { timezone, refresh, now }) => {
            asked.push([projectId, query, timezone, refresh]);
            if (query.kind === "broken") throw new Error("no such query");
            if (query.kind === "Unknown") throw new InvalidFieldError("query", "invalid_input", "not known");
            if (refresh === "force_cache") return { results: null, computedAt: null, isCached: false };
            return { results: result, computedAt: now.getTime(), isCached: refresh === "blocking" };
          },
        },
      },
    });
    const board = await server.ask("POST", "/api/projects/1/dashboards/", {
      body: { name: "D", tags: ["T"] },
    });
    expect(board).toMatchObject({ status: 201, body: { id: 1, tags: ["t"], tiles: [] } });
    const query = { kind: "TrendsQuery" };
    for (const kind of ["TrendsQuery", "broken", "Unknown"]) {
      await server.ask("POST", "/api/projects/1/insights/", {
        body: { name: kind, query: { kind }, dashboards: [1] },
      });
    }
    const insight = await server.ask("GET", "/api/projects/1/insights/1/");
    expect(insight.body).toMatchObject({
      result,
      dashboards: [1],
      query,
      last_refresh: "2026-03-01T12:00:00.000000Z",
    });
    expect(asked.splice(0)).toEqual([[1, query, "UTC", "blocking"]]);
    for (const [name, refresh] of [
      ["true", "force_blocking"],
      ["force_async", "force_blocking"],
      ["async", "blocking"],
      ["", "blocking"],
      ["false", "force_cache"],
      ["force_cache", "force_cache"],
    ] as const) {
      const { body } = await server.ask("GET", `/api/projects/1/insights/1/?refresh=${name}`);
      expect(asked.splice(0)).toEqual([[1, query, "UTC", refresh]]);
      expect([body.is_cached, body.result]).toEqual([
        refresh === "blocking",
        refresh === "force_cache" ? null : result,
      ]);
    }
    for (const path of ["insights/1", "dashboards/1"]) {
      expect(await server.ask("GET", `/api/projects/1/${path}/?refresh=toString`)).toMatchObject({
        status: 400,
        body: { attr: "refresh", code: "invalid_choice" },
      });
    }
    expect(asked).toEqual([]);
    expect((await server.ask("GET", `/api/projects/1/insights/${insight.body.short_id}/`)).body.id).toBe(1);
    expect((await server.ask("GET", "/api/projects/1/insights/2/")).status).toBe(500);
    expect(await server.ask("GET", "/api/projects/1/insights/3/")).toMatchObject({
      status: 200,
      body: {
        name: "Unknown",
        result: null,
        last_refresh: null,
        query_status: { complete: true, error: true, error_message: "not known" },
      },
    });
    const shown = await server.ask("GET", "/api/projects/1/dashboards/1/");
    expect(shown.body.tiles.map((tile: { insight: { result: unknown } }) => tile.insight.result)).toEqual([
      result,
      null,
      null,
    ]);
    const moved = await server.ask("PATCH", "/api/projects/1/insights/3/", {
      body: { dashboards: [], tags: ["B", "a "] },
    });
    expect(moved.body).toMatchObject({ dashboards: [], tags: ["a", "b"], name: "Unknown" });
    const back = { dashboards: [1, 1], tags: [] };
    expect((await server.ask("PATCH", "/api/projects/1/insights/3/", { body: back })).body).toMatchObject({
      dashboards: [1],
      tags: [],
    });
    expect(
      await server.ask("PATCH", "/api/projects/1/insights/3/", { body: { dashboards: [9] } }),
    ).toMatchObject({
      status: 400,
      body: { code: "does_not_exist", attr: "dashboards" },
    });
    await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { deleted: true } });
    expect((await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { name: "x" } })).status).toBe(
      404,
    );
    const restored = await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { deleted: false } });
    expect([restored.status, restored.body.deleted, restored.body.name]).toEqual([200, false, "broken"]);
    await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { deleted: true } });
    expect((await server.ask("GET", "/api/projects/1/dashboards/1/")).body.tiles).toHaveLength(2);
    expect((await server.ask("GET", "/api/projects/1/insights/?search=trend")).body.count).toBe(1);
    await server.ask("PATCH", "/api/projects/1/insights/3/", { body: { name: "Größe 100%" } });
    for (const [search, count] of [
      ["GRÖSSE", 0],
      ["GRÖß", 1],
      ["0%", 1],
      ["_", 0],
      [" größe ", 1],
    ] as const) {
      const path = `/api/projects/1/insights/?search=${encodeURIComponent(search)}`;
      expect([search, (await server.ask("GET", path)).body.count]).toEqual([search, count]);
    }
    const tiles = async () =>
      (await server.ask("GET", "/api/projects/1/dashboards/1/")).body.tiles as {
        id: number;
        color: string;
      }[];
    const [one, two] = (await tiles()).map(({ id }) => id);
    const arrange = (places: object[]) =>
      server.ask("PATCH", "/api/projects/1/dashboards/1/", { body: { tiles: places } });
    const arranged = await arrange([{ id: two, color: "blue", layouts: { sm: { x: 0 } } }]);
    expect(arranged.body.tiles).toMatchObject([
      { id: two, order: 0, color: "blue", layouts: { sm: { x: 0 } } },
      { id: one, order: 1 },
    ]);
    expect(await arrange([{ id: one }, { id: two }])).toMatchObject({ status: 200 });
    expect(await tiles()).toMatchObject([{ id: one }, { id: two, color: "blue" }]);
    expect(await arrange([{ id: one }, { id: 99 }])).toMatchObject({ status: 400, body: { attr: "tiles" } });
    expect((await arrange(Array.from({ length: 1_001 }, () => ({ id: one })))).status).toBe(400);
    await server.ask("POST", "/api/projects/1/dashboards/", { body: { name: "E" } });
    for (const path of ["dashboards", "insights"]) {
      const deleted = await server.ask("POST", `/api/projects/1/${path}/`, { body: { deleted: true } });
      expect([path, deleted.status, deleted.body.deleted]).toEqual([path, 201, true]);
    }
    await server.ask("PATCH", "/api/projects/1/dashboards/1/", { body: { pinned: true } });
    const list = await server.ask("GET", "/api/projects/1/dashboards/");
    expect(list.body.results.map(({ id }: { id: number }) => id)).toEqual([1, 2]);
    await server.ask("PATCH", "/api/projects/1/dashboards/1/", { body: { deleted: true } });
    expect((await server.ask("GET", "/api/projects/1/dashboards/1/")).status).toBe(404);
    const flag = await server.ask("POST", flagsPath, { body: { key: "a", analytics_dashboards: [2] } });
    expect(flag.body.analytics_dashboards).toEqual([2]);
    await server.ask("PATCH", "/api/projects/1/dashboards/2/", { body: { deleted: true } });
    const echoed = await server.ask("PATCH", `${flagsPath}1/`, { body: { ...flag.body, name: "echoed" } });
    expect([echoed.status, echoed.body.analytics_dashboards]).toEqual([200, [2]]);
    const replaced = await server.ask("PATCH", `${flagsPath}1/`, { body: { analytics_dashboards: [] } });
    expect(replaced.body.analytics_dashboards).toEqual([]);
    expect(
      await server.ask("PATCH", `${flagsPath}1/`, { body: { analytics_dashboards: [2] } }),
    ).toMatchObject({ status: 400, body: { attr: "analytics_dashboards" } });
  });

  test("dashboards are found by a part of their name, separately from those created with flags", async () => {
    using server = new TestServer();
    for (const name of ["Ärger", "Orders"]) {
      await server.ask("POST", "/api/projects/1/dashboards/", { body: { name } });
    }
    await server.ask("POST", flagsPath, { body: { key: "order-flow" } });
    const names = async (query: string) => {
      const { body } = await server.ask("GET", `/api/projects/1/dashboards/?${query}`);
      const found = body.results.map(({ name }: { name: string }) => name);
      expect(body.count).toBe(query.includes("limit") ? 2 : found.length);
      return found;
    };
    const generated = "Generated Dashboard: order-flow Usage";
    expect((await names("")).toSorted()).toEqual([generated, "Orders", "Ärger"]);
    expect(await names("search=ORDER&creation_mode=default")).toEqual(["Orders"]);
    expect(await names("search=ärg")).toEqual(["Ärger"]);
    expect(await names("exclude_generated=true")).toEqual(["Orders", "Ärger"]);
    expect(await names("exclude_generated=true&limit=1&offset=1")).toEqual(["Ärger"]);
    expect(await names("creation_mode=template")).toEqual([generated]);
    expect(await names("search=nothing")).toEqual([]);
  });

  test("a copy shows the same insights, with its own arrangement and texts", async () => {
    using server = new TestServer();
    const post = (path: string, body: object) => server.ask("POST", `/api/projects/1/${path}/`, { body });
    await post("dashboards", { name: "A", description: "Of A", tags: ["x"], filters: { date_from: "-7d" } });
    await post("insights", { name: "I", query: { kind: "TrendsQuery" }, dashboards: [1] });
    const sm = { x: 3, y: 0, w: 4, h: 5 };
    const filled = await server.ask("PATCH", "/api/projects/1/dashboards/1/", {
      body: { tiles: [{ text: { body: "Read this" }, color: "blue" }] },
    });
    const insightTile = filled.body.tiles.find(({ insight }: { insight: object | null }) => insight).id;
    await server.ask("PATCH", "/api/projects/1/dashboards/1/", {
      body: { tiles: [{ id: insightTile, layouts: { sm } }] },
    });
    const copy = await post("dashboards", { name: "B", use_dashboard: 1 });
    expect(copy).toMatchObject({
      status: 201,
      body: {
        id: 2,
        name: "B",
        description: "Of A",
        tags: ["x"],
        filters: { date_from: "-7d" },
        tiles: [
          { layouts: { sm }, insight: { id: 1, dashboards: [1, 2] }, text: null },
          { insight: null, text: { body: "Read this" }, color: "blue" },
        ],
      },
    });
    expect(copy.body.tiles[0].id).not.toBe(insightTile);
    expect(await post("dashboards", { name: "C", use_dashboard: 9 })).toMatchObject({
      status: 400,
      body: { code: "does_not_exist", attr: "use_dashboard" },
    });
    const { body } = await server.ask("GET", "/api/projects/1/dashboards/");
    expect(body.count).toBe(2);
  });

  test("the dates of a dashboard are those of its insights there", async () => {
    const asked: unknown[] = [];
    using server = new TestServer({
      deps: {
        insights: {
          run: async (_, query, { now }) => {
            asked.push(query);
            return { results: [], computedAt: now.getTime(), isCached: false };
          },
        },
      },
    });
    const insights = "/api/projects/1/insights/";
    const dashboard = "/api/projects/1/dashboards/1/";
    await server.ask("POST", "/api/projects/1/dashboards/", { body: { filters: { date_from: "-90d" } } });
    const trends = { kind: "TrendsQuery", dateRange: { date_from: "-7d" } };
    const funnel = { kind: "InsightVizNode", source: { kind: "FunnelsQuery" } };
    for (const query of [trends, funnel, {}])
      await server.ask("POST", insights, { body: { query, dashboards: [1] } });
    const shown = (await server.ask("GET", dashboard)).body;
    const dateRange = { date_from: "-90d", date_to: null };
    expect(asked.splice(0)).toEqual([
      { ...trends, dateRange },
      { ...funnel, source: { ...funnel.source, dateRange } },
    ]);
    expect(shown.tiles[0].insight.query).toEqual(trends);
    await server.ask("GET", `${insights}1/`);
    await server.ask("PATCH", dashboard, { body: { filters: { date_to: null } } });
    expect(asked.splice(0)).toEqual([trends, trends, funnel]);
  });

  test("a deleted dashboard is nowhere until it is restored, with its tiles", async () => {
    using server = new TestServer({});
    const send = (method: "POST" | "PATCH", path: string, body: object) =>
      server.ask(method, `/api/projects/1/${path}`, { body });
    for (const name of ["D", "E"]) await send("POST", "dashboards/", { name });
    const created = await send("POST", "insights/", { name: "I", dashboards: [1, 2] });
    expect(created.body.dashboards).toEqual([1, 2]);
    expect((await send("PATCH", "dashboards/2/", { deleted: true })).status).toBe(200);
    for (const body of [{ name: "F" }, { deleted: true }, {}])
      expect((await send("PATCH", "dashboards/2/", body)).status).toBe(404);
    const alone = await server.ask("GET", "/api/projects/1/insights/1/");
    expect(alone.body.dashboards).toEqual([1]);
    // What was read can be sent, as it is for a copy.
    const { name, dashboards } = alone.body;
    expect((await send("POST", "insights/", { name, dashboards })).status).toBe(201);
    expect((await send("PATCH", "insights/1/", { dashboards })).status).toBe(200);
    const back = await send("PATCH", "dashboards/2/", { deleted: false });
    expect([back.status, back.body.name, back.body.tiles.length]).toEqual([200, "E", 1]);
    expect((await server.ask("GET", "/api/projects/1/insights/1/")).body.dashboards).toEqual([1, 2]);
  });
});

describe("tiles", () => {
  const path = "/api/projects/1/dashboards/1/";

  async function board() {
    const server = new TestServer();
    await server.ask("POST", "/api/projects/1/dashboards/", { body: { name: "D" } });
    await server.ask("POST", "/api/projects/1/insights/", { body: { name: "I", dashboards: [1] } });
    const change = (tiles: object[]) => server.ask("PATCH", path, { body: { tiles } });
    return { server, change, [Symbol.dispose]: () => server[Symbol.dispose]() };
  }

  test("have a color, which may be empty, and store whether they show a description", async () => {
    using it = await board();
    const [{ id }] = (await it.server.ask("GET", path)).body.tiles;
    for (const [sent, retained] of [
      [
        { color: "blue", show_description: true },
        { color: "blue", show_description: true },
      ],
      [{}, { color: "blue", show_description: true }],
      [
        { color: "", show_description: null },
        { color: "", show_description: null },
      ],
      [
        { color: null, show_description: false },
        { color: null, show_description: false },
      ],
    ]) {
      const { status, body } = await it.change([{ id, ...sent }]);
      expect([status, body.tiles.length]).toEqual([200, 1]);
      expect(body.tiles[0]).toMatchObject({ ...retained, text: null, insight: { id: 1 } });
      expect((await it.server.ask("GET", path)).body.tiles).toEqual(body.tiles);
    }
  });

  test("with text are written, changed, arranged and removed", async () => {
    using it = await board();
    const [{ id }] = (await it.server.ask("GET", path)).body.tiles;
    const layouts = { sm: { x: 0, y: 0, w: 12, h: 1 } };
    const created = await it.change([
      { text: { body: "# Sales" }, color: "", layouts },
      { id },
      { text: { body: "" } },
    ]);
    expect(created.status).toBe(200);
    const [first, , last] = created.body.tiles;
    expect(created.body.tiles).toMatchObject([
      { insight: null, text: { body: "# Sales" }, color: "", layouts, order: 0 },
      { id, insight: { id: 1 }, text: null, order: 1 },
      { insight: null, text: { body: "" }, order: 2 },
    ]);
    expect(first.text.id).toEqual(expect.any(Number));
    const changed = await it.change([
      { id: last.id, text: { body: "Below" } },
      { id: first.id, deleted: true },
    ]);
    expect(changed.body.tiles).toMatchObject([{ id: last.id, text: { body: "Below" } }, { id }]);
    // A whole tile that was read may be sent back.
    const again = await it.change(changed.body.tiles);
    expect([again.status, again.body.tiles]).toEqual([200, changed.body.tiles]);
    // The insight of a tile that is removed remains.
    expect((await it.change([{ id, deleted: true }])).body.tiles).toMatchObject([{ id: last.id }]);
    expect((await it.server.ask("GET", "/api/projects/1/insights/1/")).body).toMatchObject({
      dashboards: [],
    });
  });

  for (const [name, tiles, code] of [
    ["neither id nor text", [{ color: "blue" }], "required"],
    ["neither id nor text, but null", [{ text: null }], "required"],
    ["the id of nothing", [{ id: 77, text: { body: "x" } }], "does_not_exist"],
    ["text for an insight", [{ id: 1, text: { body: "x" } }], "invalid_input"],
    ["a long text", [{ text: { body: "x".repeat(4_001) } }], "max_length"],
    ["a long color", [{ id: 1, color: "x".repeat(51) }], "max_length"],
    ["too many at once", Array.from({ length: 1_001 }, () => ({ text: { body: "x" } })), "max_length"],
    ["too many in all", Array.from({ length: 1_000 }, () => ({ text: { body: "x" } })), "max_length"],
  ] as const) {
    test(`are rejected with ${name}, and nothing is stored`, async () => {
      using it = await board();
      const { status, body } = await it.change([{ text: { body: "kept?" } }, ...tiles].slice(-1_001));
      expect([status, body.code]).toEqual([400, code]);
      expect((await it.server.ask("GET", path)).body.tiles).toHaveLength(1);
    });
  }
});

test("an insight keeps the name that a client derived", async () => {
  using server = new TestServer();
  const created = await server.ask("POST", "/api/projects/1/insights/", {
    body: { name: "", derived_name: "Pageview count" },
  });
  expect(created).toMatchObject({ status: 201, body: { name: "", derived_name: "Pageview count" } });
  const path = "/api/projects/1/insights/1/";
  for (const [sent, retained] of [
    [{ name: "Views" }, "Pageview count"],
    [{ derived_name: "Views" }, "Views"],
    [{ derived_name: "" }, ""],
    [{ derived_name: null }, null],
  ] as const) {
    expect((await server.ask("PATCH", path, { body: sent })).body.derived_name).toBe(retained);
    expect((await server.ask("GET", path)).body.derived_name).toBe(retained);
  }
  const long = await server.ask("PATCH", path, { body: { derived_name: "x".repeat(401) } });
  expect(long).toMatchObject({ status: 400, body: { attr: "derived_name" } });
  expect((await server.ask("GET", "/api/projects/1/insights/")).body.results[0].derived_name).toBeNull();
});
