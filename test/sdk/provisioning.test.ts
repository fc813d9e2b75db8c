/**
 * Flags, dashboards, layouts, insights, projects and members as PostHog's Terraform provider manages them: the requests
 * it sends, in its order, and what it needs of each response. A tool that keeps a state fails when a response differs
 * from what it wrote, when a member has another type than its client decodes, or when reading again shows a difference.
 *
 * Source: contract, management-api 9.
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { flagkeep, ServerProcess } from "../support/server.ts";

let server: ServerProcess;
let organization: string;
beforeAll(async () => {
  server = await ServerProcess.start();
  organization = server.initialized.organization.id;
});
afterAll(() => server[Symbol.asyncDispose]());

type Json = Record<string, unknown>;

/** Its headers are the same for each request, also for one without a body. */
async function send(method: string, path: string, body?: object): Promise<{ status: number; body: Json }> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
      "User-Agent": "posthog/terraform-provider; version: test",
    },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : JSON.parse(text) };
}

/** The response of a request that must succeed. */
async function done(method: string, path: string, body?: object): Promise<Json> {
  const answer = await send(method, path, body);
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** What a typed client decodes; every member may be null or absent, except those with `!`. */
type Shape = {
  [member: string]: "int" | "int!" | "text" | "text!" | "bool" | "texts" | "ints" | "object" | Shape;
};

function findProblems(value: Json, shape: Shape, path = "$"): string[] {
  return Object.entries(shape).flatMap(([name, kind]) => {
    const found = value[name];
    const place = `${path}.${name}`;
    if (found === null || found === undefined)
      return String(kind).endsWith("!") ? [`${place} is missing`] : [];
    if (typeof kind === "object") return findProblems(found as Json, kind, place);
    return fits(found, kind.replace("!", "")) ? [] : [`${place} is ${JSON.stringify(found)}, not ${kind}`];
  });
}
function fits(value: unknown, kind: string): boolean {
  if (kind === "texts") return Array.isArray(value) && value.every((each) => typeof each === "string");
  if (kind === "ints") return Array.isArray(value) && value.every((each) => Number.isInteger(each));
  if (kind === "object") return typeof value === "object" && !Array.isArray(value);
  if (kind === "int") return Number.isInteger(value);
  return typeof value === (kind === "text" ? "string" : "boolean");
}

interface Resource {
  path: string;
  shape: Shape;
  /** Added to every change. */
  always?: Json;
  /** Members that are sent and not read back. */
  writeOnly?: string[];
}

/** Sends a resource, and checks that the response and the next read both say what was sent. */
async function applied(method: "POST" | "PATCH", of: Resource, id: unknown, sent: Json): Promise<Json> {
  const path = method === "POST" ? of.path : `${of.path}${id}/`;
  const answer = await done(method, path, { ...sent, ...of.always });
  const read = await done("GET", `${of.path}${method === "POST" ? answer.id : id}/`);
  for (const body of [answer, read]) {
    expect(findProblems(body, of.shape)).toEqual([]);
    for (const [name, value] of Object.entries({ ...sent, ...of.always })) {
      if (of.writeOnly?.includes(name)) continue;
      const found = name === "tags" ? [...(body.tags as string[])].sort() : body[name];
      expect([name, found]).toEqual([name, name === "tags" ? [...(value as string[])].sort() : value]);
    }
  }
  return read;
}

const everyone = { properties: [], rollout_percentage: 100 };
const email = (value: string[]) => ({ key: "email", operator: "exact", type: "person", value });

describe("flags", () => {
  const flags: Resource = {
    path: "/api/projects/1/feature_flags/",
    shape: {
      id: "int!",
      key: "text!",
      name: "text",
      active: "bool",
      deleted: "bool",
      filters: "object",
      rollout_percentage: "int",
      tags: "texts",
    },
    always: { deleted: false },
  };
  async function destroy(id: unknown): Promise<void> {
    const { key } = await done("GET", `${flags.path}${id}/`);
    expect(await done("PATCH", `${flags.path}${id}/`, { key, deleted: true })).toMatchObject({
      deleted: true,
    });
  }

  test("with a key alone: what was not chosen is sent empty, a condition set too", async () => {
    const sent = { key: "tf-basic", name: "", active: false, filters: { groups: [{}] } };
    const { id, filters } = await applied("POST", flags, undefined, sent);
    await applied("PATCH", flags, id, { ...sent, filters: filters as Json });
    await destroy(id);
    // The key is free again.
    const again = await applied("POST", flags, undefined, { ...sent, name: "Again" });
    expect(again.id).not.toBe(id);
    await destroy(again.id);
  });

  test("a rollout is changed by its condition set, and read as an integer", async () => {
    const sent = (percentage: number) => ({
      key: "tf-rollout",
      name: "Rollout",
      active: true,
      filters: { groups: [{ rollout_percentage: percentage }] },
    });
    const { id } = await applied("POST", flags, undefined, sent(50));
    for (const percentage of [100, 0, 33]) {
      const read = await applied("PATCH", flags, id, sent(percentage));
      expect(read.rollout_percentage).toBe(percentage);
    }
    await destroy(id);
  });

  for (const [name, groups] of [
    ["one condition set", [everyone]],
    ["a rollout inside", [{ properties: [], rollout_percentage: 75 }]],
    [
      "properties",
      [
        {
          ...everyone,
          properties: [email(["a@example.com", "b@example.com"]), { ...email(["Chrome"]), key: "$browser" }],
        },
      ],
    ],
    [
      "two condition sets",
      [
        { ...everyone, properties: [email(["a@example.com"])] },
        { properties: [], rollout_percentage: 10 },
      ],
    ],
  ] as const) {
    test(`filters with ${name} are returned as sent`, async () => {
      const key = `tf-filters-${name.replaceAll(" ", "-")}`;
      const sent = { key, name, active: true, filters: { groups } };
      const { id } = await applied("POST", flags, undefined, sent);
      await applied("PATCH", flags, id, { ...sent, active: false });
      await destroy(id);
    });
  }

  test("variants and payloads are returned as sent", async () => {
    const variants = [
      { key: "control", name: "Control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ];
    const filters = { groups: [everyone], multivariate: { variants }, payloads: { test: '{"a":1}' } };
    const { id } = await applied("POST", flags, undefined, {
      key: "tf-variants",
      name: "V",
      active: true,
      filters,
    });
    await destroy(id);
  });

  test("tags are a set; name and switch are changed separately", async () => {
    const sent = { key: "tf-tags", name: "Tags", active: true, filters: { groups: [everyone] } };
    const { id } = await applied("POST", flags, undefined, { ...sent, tags: ["tag2", "tag1"] });
    for (const change of [
      { tags: ["tag1", "tag2", "tag3"] },
      { tags: ["tag1"] },
      { tags: ["managed-by:terraform", "env:test"] },
      { name: "Other" },
      { active: false },
      { active: true },
    ]) {
      await applied("PATCH", flags, id, { ...sent, ...change });
    }
    await destroy(id);
    // Applying the same configuration restores it.
    await applied("PATCH", flags, id, sent);
    await destroy(id);
  });
});

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
/** Deletes by PATCH; what is deleted is not found. */
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
    // Not computed, and kept all the same.
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

  test("place insights and texts, clear what is not declared, and leave the insights", async () => {
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

    // A color that is not declared is sent as an empty one.
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

    // A text is changed by its tile, another one is added, and a layout that is not declared is left.
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

describe("projects", () => {
  const shape: Shape = {
    id: "int!",
    name: "text",
    organization: "text",
    api_token: "text",
    timezone: "text",
  };

  test("are created, renamed and deleted in an organization, which is named by id, slug or @current", async () => {
    const { id, slug } = await done("GET", "/api/organizations/@current/");
    expect(id).toBe(organization);
    const { results, next } = await done("GET", "/api/organizations/");
    expect([results, next]).toEqual([
      [expect.objectContaining({ id, slug, name: expect.any(String) })],
      null,
    ]);
    const projects: Resource = { path: `/api/organizations/${organization}/projects/`, shape };
    const created = await applied("POST", projects, undefined, { name: "tf" });
    expect(created).toMatchObject({ timezone: "UTC", organization });
    expect(created.api_token).toMatch(/^phc_/);
    const changed = await applied("PATCH", projects, created.id, { name: "tf-2", timezone: "Europe/London" });
    expect(changed.api_token).toBe(created.api_token);
    const listed = (await done("GET", projects.path)).results as Json[];
    expect(listed.map((project) => project.id)).toEqual([1, created.id]);
    // Flags of the new project, by its id.
    const flag = await done("POST", `/api/projects/${created.id}/feature_flags/`, { key: "in-it" });
    expect(flag).toMatchObject({ key: "in-it" });
    expect((await send("DELETE", `${projects.path}${created.id}/`)).status).toBe(204);
    for (const method of ["GET", "DELETE"]) {
      expect((await send(method, `${projects.path}${created.id}/`)).status).toBe(404);
    }
  });
});

describe("members", () => {
  const shape: Shape = {
    id: "text!",
    level: "int",
    joined_at: "text",
    is_2fa_enabled: "bool",
    user: { uuid: "text!", email: "text", first_name: "text", last_name: "text", is_email_verified: "bool" },
  };

  test("are found in the list by the user's uuid, change their level, and are removed", async () => {
    const path = `/api/organizations/${organization}/members/`;
    const added = await flagkeep([
      "users",
      "create",
      "bob@example.com",
      "--level",
      "member",
      "--data-dir",
      server.dataDir,
    ]);
    expect({ code: added.code, stderr: added.stderr }).toMatchObject({ code: 0 });
    const members = async () => {
      const { results, next } = await done("GET", path);
      expect(next).toBeNull();
      for (const member of results as Json[]) expect(findProblems(member, shape)).toEqual([]);
      return results as { id: string; level: number; user: { uuid: string; email: string } }[];
    };
    const bob = (await members()).find(({ user }) => user.email === "bob@example.com")!;
    for (const level of [8, 15, 1]) {
      const changed = await done("PATCH", `${path}${bob.user.uuid}/`, { level });
      expect(changed).toMatchObject({ id: bob.id, level, user: { uuid: bob.user.uuid } });
      expect((await members()).find(({ id }) => id === bob.id)?.level).toBe(level);
    }
    expect((await send("DELETE", `${path}${bob.user.uuid}/`)).status).toBe(204);
    expect((await members()).map(({ id }) => id)).not.toContain(bob.id);
  });
});
