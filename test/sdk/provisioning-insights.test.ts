/** Dashboards, insights and layouts as PostHog's Terraform provider manages them. */

import { describe, expect, test } from "bun:test";
import { useServer } from "../support/use-server.ts";
import {
  applied,
  done,
  findProblems,
  type Json,
  type Resource,
  type Shape,
  send,
} from "./provider-requests.ts";

useServer();

const dashboards: Resource = {
  path: "/api/projects/1/dashboards/",
  shape: { id: "int!", name: "text", description: "text", pinned: "bool", tags: "texts", deleted: "bool" },
};
const insights: Resource = {
  path: "/api/projects/1/insights/",
  shape: {
    id: "int!",
    short_id: "text!",
    name: "text",
    derived_name: "text",
    description: "text",
    query: "object",
    tags: "texts",
    dashboards: "ints",
    deleted: "bool",
    favorited: "bool",
  },
  writeOnly: ["_create_in_folder"],
};
/** Deletes a resource by PATCH and expects that it is not found. */
async function destroyed({ path }: Resource, id: unknown): Promise<void> {
  expect(await done("PATCH", `${path}${id}/`, { deleted: true })).toMatchObject({ deleted: true });
  expect((await send("GET", `${path}${id}/`)).status).toBe(404);
}
const pageviews = {
  kind: "InsightVizNode",
  source: {
    kind: "TrendsQuery",
    series: [{ kind: "EventsNode", name: "$pageview", event: "$pageview", math: "total" }],
  },
};

test("dashboards are created, changed field by field, and deleted", async () => {
  const basic = await applied("POST", dashboards, undefined, { name: "tf" });
  expect(basic).toMatchObject({ description: "", pinned: false, tags: [] });
  await destroyed(dashboards, basic.id);
  const all = {
    name: "tf",
    description: "All of it",
    pinned: true,
    tags: ["managed-by:terraform", "env:test"],
  };
  const { id } = await applied("POST", dashboards, undefined, all);
  for (const change of [
    { name: "tf-2" },
    { description: "Other" },
    { description: "" },
    { pinned: false },
    { tags: ["x"] },
  ]) {
    await applied("PATCH", dashboards, id, { ...all, ...change, deleted: false });
  }
  await destroyed(dashboards, id);
});

describe("insights", () => {
  for (const [name, query] of [
    ["trends", pageviews],
    [
      "trends with options",
      {
        ...pageviews,
        source: {
          ...pageviews.source,
          trendsFilter: { showLegend: true, display: "ActionsLineGraph" },
          interval: "day",
        },
      },
    ],
    [
      "a funnel",
      {
        kind: "InsightVizNode",
        source: {
          kind: "FunnelsQuery",
          series: ["$pageview", "$autocapture"].map((event) => ({ kind: "EventsNode", name: event, event })),
          funnelsFilter: { funnelVizType: "steps" },
        },
      },
    ],
    [
      "retention",
      {
        kind: "InsightVizNode",
        source: {
          kind: "RetentionQuery",
          retentionFilter: {
            targetEntity: { id: "$pageview", name: "$pageview", type: "events" },
            returningEntity: { id: "$pageview", name: "$pageview", type: "events" },
            retentionType: "retention_first_time",
            period: "Day",
            totalIntervals: 7,
          },
        },
      },
    ],
    ["lifecycle", { ...pageviews, source: { ...pageviews.source, kind: "LifecycleQuery" } }],
    // Stored although it is not computed.
    [
      "paths",
      {
        kind: "InsightVizNode",
        source: { kind: "PathsQuery", pathsFilter: { includeEventTypes: ["$pageview"] } },
      },
    ],
    [
      "SQL",
      { kind: "DataVisualizationNode", source: { kind: "HogQLQuery", query: "SELECT count(*) FROM events" } },
    ],
  ] as const) {
    test(`of ${name} keep their query as it was sent`, async () => {
      const { id } = await applied("POST", insights, undefined, { name, query });
      await applied("PATCH", insights, id, { name, query, description: "Changed" });
      await destroyed(insights, id);
    });
  }

  test("keep all their fields, and are found by short id", async () => {
    const sent = {
      name: "tf",
      derived_name: "Custom derived name",
      description: "All of it",
      query: pageviews,
      tags: ["managed-by:terraform", "env:test"],
      _create_in_folder: "Terraform",
    };
    const { id, short_id } = await applied("POST", insights, undefined, sent);
    expect(await done("GET", `${insights.path}${short_id}/`)).toMatchObject({ id });
    for (const change of [
      { name: "tf-2" },
      { description: "" },
      { derived_name: "Other" },
      { favorited: true },
      { tags: ["x"] },
    ]) {
      await applied("PATCH", insights, id, { ...sent, ...change, deleted: false });
    }
    await destroyed(insights, id);
  });

  test("are put on dashboards", async () => {
    const ids = [];
    for (const name of ["one", "two"]) ids.push((await done("POST", dashboards.path, { name })).id as number);
    const sent = { name: "tf", query: pageviews, dashboards: ids };
    const { id } = await applied("POST", insights, undefined, sent);
    await applied("PATCH", insights, id, { ...sent, dashboards: ids.slice(1) });
    await destroyed(insights, id);
    for (const dashboard of ids) await destroyed(dashboards, dashboard);
  });
});

describe("layouts", () => {
  const tileShape: Shape = {
    id: "int!",
    insight: { id: "int!" },
    text: { id: "int!", body: "text" },
    layouts: "object",
    color: "text",
    show_description: "bool",
    deleted: "bool",
  };
  interface Tile {
    id: number;
    insight: { id: number } | null;
    text: { id: number; body: string } | null;
    layouts: Json;
    color: string | null;
    show_description: boolean | null;
  }
  const getTiles = (body: Json): Tile[] => {
    const tiles = body.tiles as Tile[];
    for (const tile of tiles) expect(findProblems(tile as unknown as Json, tileShape)).toEqual([]);
    return tiles;
  };

  test("place insights and texts, clear undeclared ones, and preserve the insights", async () => {
    const { id: dashboard } = await done("POST", dashboards.path, { name: "layout" });
    const path = `${dashboards.path}${dashboard}/`;
    const created: Json[] = [];
    for (const name of ["placed", "moved", "unmanaged"]) {
      created.push(await done("POST", insights.path, { name, query: pageviews, dashboards: [dashboard] }));
    }
    const [placed, moved, unmanaged] = created.map(({ id }) => id as number);
    const read = async () => getTiles(await done("GET", path));
    const getTile = async (insight: number | undefined) =>
      (await read()).find((tile) => tile.insight?.id === insight)!;
    const layouts = (y: number) => ({ sm: { x: 0, y, w: 6, h: 5, minW: 3 }, xs: { x: 0, y, w: 1, h: 5 } });

    // An undeclared color is sent as an empty one.
    const first = getTiles(
      await done("PATCH", path, {
        tiles: [
          { id: (await getTile(moved)).id, color: "blue", layouts: layouts(5), show_description: true },
          { color: "", layouts: layouts(0), text: { body: "# Title" }, show_description: null },
          { id: (await getTile(placed)).id, color: "", layouts: layouts(9), show_description: null },
        ],
      }),
    );
    expect(first.slice(0, 3)).toMatchObject([
      { insight: { id: moved }, text: null, color: "blue", layouts: layouts(5), show_description: true },
      { insight: null, text: { body: "# Title" }, color: "", layouts: layouts(0), show_description: null },
      { insight: { id: placed }, color: "", layouts: layouts(9) },
    ]);
    expect(first[3]).toMatchObject({ insight: { id: unmanaged }, layouts: {} });
    expect(await read()).toEqual(first);

    // A text is changed by its tile, another one is added, and an undeclared layout is preserved.
    const text = first[1]!;
    const second = getTiles(
      await done("PATCH", path, {
        tiles: [
          { id: text.id, color: "", text: { body: "# Other" } },
          { color: "green", text: { body: "Footer" } },
          { id: first[0]!.id, layouts: {} },
        ],
      }),
    );
    expect(second.slice(0, 3)).toMatchObject([
      { id: text.id, text: { body: "# Other" }, layouts: layouts(0) },
      { insight: null, text: { body: "Footer" }, color: "green", layouts: {} },
      { insight: { id: moved }, layouts: {} },
    ]);

    // An insight that was removed from the dashboard is added again.
    await done("PATCH", `${insights.path}${placed}/`, { dashboards: [] });
    expect(await getTile(placed)).toBeUndefined();
    const { dashboards: known } = await done("GET", `${insights.path}${placed}/`);
    await done("PATCH", `${insights.path}${placed}/`, { dashboards: [...(known as number[]), dashboard] });
    expect((await getTile(placed)).layouts).toEqual({});

    // Destroying the layout removes texts and clears layouts.
    const rest = await read();
    const left = getTiles(
      await done("PATCH", path, {
        tiles: rest
          .filter((tile) => tile.text !== null || Object.keys(tile.layouts).length > 0)
          .map((tile) =>
            tile.text === null ? { id: tile.id, layouts: {} } : { id: tile.id, deleted: true },
          ),
      }),
    );
    expect(left.map((tile) => [tile.text, tile.layouts])).toEqual(left.map(() => [null, {}]));
    expect(left.map((tile) => tile.insight?.id).sort()).toEqual([placed, moved, unmanaged].sort());
  });
});
