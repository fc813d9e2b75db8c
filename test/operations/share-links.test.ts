/** Share links: what they show, to whom, and how they end. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { createUser, setUserActive } from "../../src/accounts/users.ts";
import type { InsightQueries } from "../../src/dashboards/api/compute-insight.ts";
import { sharedRoutes } from "../../src/dashboards/api/shared.ts";
import { TestServer } from "../support/management-server.ts";

const path = "/api/projects/1/share_links/";
const trends = {
  kind: "InsightVizNode",
  source: { kind: "TrendsQuery", trendsFilter: { display: "ActionsBar" } },
};

const insights: InsightQueries = {
  run: async (_, query) => ({
    results: [{ label: "$pageview", data: [1, 2], asked: query as never }],
    computedAt: Date.UTC(2026, 2, 1),
    isCached: true,
  }),
};

/** A server with a dashboard of three tiles, and another one. */
async function prepared() {
  const routes = sharedRoutes({
    get metadata() {
      return server.metadata;
    },
    insights,
  });
  const server: TestServer = new TestServer({ deps: { insights }, routes });
  const post = async (path: string, body: object) =>
    (await server.ask("POST", `/api/projects/1/${path}/`, { body })).body;
  const dashboard = await post("dashboards", { name: "Orders", filters: { date_from: "-7d" } });
  const other = await post("dashboards", { name: "Secret" });
  const insight = await post("insights", { name: "Views", query: trends, dashboards: [dashboard.id] });
  await post("insights", {
    name: "Rows",
    query: { kind: "HogQLQuery", query: "SELECT * FROM persons" },
    dashboards: [dashboard.id],
  });
  const patched = await server.ask("PATCH", `/api/projects/1/dashboards/${dashboard.id}/`, {
    body: { tiles: [{ text: { body: "Hello" } }] },
  });
  expect(patched.status).toBe(200);
  const share = async (body: object, key?: string) => await server.ask("POST", path, { body, key });
  const open = async (token: string | null, headers: Record<string, string> = {}) =>
    await server.ask("GET", "/api/shared/", { key: token, headers });
  return { server, dashboard, other, insight, share, open, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

test("shows a dashboard and nothing else", async () => {
  using it = await prepared();
  const { server, dashboard, share, open } = it;
  const created = await share({ dashboard_id: dashboard.id, name: "Wall" });
  expect(created).toMatchObject({
    status: 201,
    body: {
      dashboard_id: dashboard.id,
      insight_id: null,
      name: "Wall",
      has_password: false,
      expires_at: null,
    },
  });
  const { token, url } = created.body;
  expect(url).toBe(`http://localhost/console/shared#${token}`);
  const { status, body } = await open(token);
  expect(status).toBe(200);
  expect(body).toMatchObject({ kind: "dashboard", name: "Orders", project: "Shop", timezone: "UTC" });
  expect(
    body.tiles.map(({ text, insight }: never) => [text, (insight as { name: string } | null)?.name]),
  ).toEqual([
    ["Hello", undefined],
    [null, "Views"],
    [null, "Rows"],
  ]);
  const [, views, rows] = body.tiles;
  expect(views.insight).toMatchObject({ kind: "TrendsQuery", display: "ActionsBar", problem: null });
  expect(views.insight.result[0].data).toEqual([1, 2]);
  expect(rows.insight).toMatchObject({ result: null, problem: "Share links do not show SQL." });
  const text = JSON.stringify(body);
  for (const hidden of ["ann@example.com", "persons", "Secret", "created_by"])
    expect(text).not.toContain(hidden);
  // The token opens nothing else.
  for (const other of ["/api/projects/1/dashboards/", "/api/projects/", "/api/users/@me/", path])
    expect([other, (await server.ask("GET", other, { key: token })).status]).toEqual([other, 401]);
  expect((await server.ask("GET", path)).body.results[0]).not.toHaveProperty("token");
  expect((await server.ask("GET", `/api/projects/1/dashboards/${dashboard.id}/`)).body.is_shared).toBe(true);
  expect((await server.ask("GET", `/api/projects/1/dashboards/${it.other.id}/`)).body.is_shared).toBe(false);
  const stored = JSON.stringify(server.metadata.db.$client.query("SELECT * FROM share_link").all());
  expect(stored).not.toContain(token);
});

test("shows an insight", async () => {
  using it = await prepared();
  const { token } = (await it.share({ insight_id: it.insight.id })).body;
  const { body } = await it.open(token);
  expect(body).toMatchObject({ kind: "insight", name: "Views" });
  expect(body.tiles).toHaveLength(1);
});

describe("ends", () => {
  const ends: Record<string, (it: Awaited<ReturnType<typeof prepared>>, id: number) => unknown> = {
    "when it is revoked": ({ server }, id) => server.ask("DELETE", `${path}${id}/`),
    "when it expires": ({ server }) => {
      server.now = new Date(server.now.getTime() + 3_600_000);
    },
    "when the dashboard is deleted": ({ server, dashboard }) =>
      server.ask("PATCH", `/api/projects/1/dashboards/${dashboard.id}/`, { body: { deleted: true } }),
    "when its creator is deactivated": ({ server }) =>
      setUserActive(server.metadata, "bob@example.com", false),
    "when its creator is removed": async ({ server }) => {
      const members = "/api/organizations/@current/members/";
      const { results } = (await server.ask("GET", members)).body;
      const bob = results.find(({ user }: { user: { email: string } }) => user.email === "bob@example.com");
      expect((await server.ask("DELETE", `${members}${bob.user.uuid}/`)).status).toBe(204);
    },
    "when the project is archived": ({ server }) => {
      server.metadata.db.$client.run("UPDATE project SET archived_at = 1 WHERE id = 1");
      server.metadata.db.$client.run("UPDATE revision SET value = value + 1");
      server.metadata.changes.expect();
    },
  };
  test.each(Object.entries(ends))("%s", async (_, end) => {
    using it = await prepared();
    const { server } = it;
    createUser(server.metadata, {
      email: "bob@example.com",
      organizationId: server.first.organization.id,
      level: "member",
    });
    const key = createKey(
      server.metadata,
      { userEmail: "bob@example.com", label: "x", scopes: ["*"] },
      { now: server.now },
    );
    const body = { dashboard_id: it.dashboard.id, expires_at: "2026-03-01T13:00:00Z" };
    const created = await it.share(body, key.value);
    expect(created.status).toBe(201);
    expect((await it.open(created.body.token)).status).toBe(200);
    await end(it, created.body.id);
    const closed = await it.open(created.body.token);
    expect([closed.status, closed.body.code]).toEqual([401, "authentication_failed"]);
  });
});

test("a password", async () => {
  using it = await prepared();
  const { body: link } = await it.share({ dashboard_id: it.dashboard.id, password: "grün und blau" });
  expect(link.has_password).toBe(true);
  const opened = async (password?: string) => {
    const { status, body } = await it.open(
      link.token,
      password === undefined ? {} : { "X-Flagkeep-Share-Password": encodeURIComponent(password) },
    );
    return [status, body.code ?? body.name];
  };
  expect(await opened()).toEqual([401, "password_required"]);
  expect(await opened("wrong")).toEqual([401, "authentication_failed"]);
  expect(await opened("grün und blau")).toEqual([200, "Orders"]);
  // Guessing is slowed down, also if requests without a password come between.
  for (let guess = 0; guess < 5; guess++) {
    await opened();
    await opened(`guess ${guess}`);
  }
  expect(await opened("grün und blau")).toEqual([429, "throttled"]);
});

test("the requests of a link are limited, and unknown tokens per address", async () => {
  using it = await prepared();
  const { token } = (await it.share({ dashboard_id: it.dashboard.id })).body;
  const statuses = new Map<number, number>();
  for (let count = 0; count < 125; count++) {
    const { status } = await it.open(token);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  expect([...statuses]).toEqual([
    [200, 120],
    [429, 5],
  ]);
  let last = 0;
  for (let count = 0; count < 25; count++) last = (await it.open(`phl_unknown${count}`)).status;
  expect(last).toBe(429);
  expect((await it.open(null)).status).toBe(401);
  expect((await it.open(it.server.first.personal_api_key)).status).toBe(401);
});

describe("rejected", () => {
  test.each([
    [{}, "dashboard_id"],
    [{ dashboard_id: 1, insight_id: 1 }, "dashboard_id"],
    [{ dashboard_id: 999 }, "dashboard_id"],
    [{ insight_id: 999 }, "insight_id"],
    [{ dashboard_id: 1, password: "short" }, "password"],
    [{ dashboard_id: 1, expires_at: "2026-03-01T11:00:00Z" }, "expires_at"],
    [{ dashboard_id: 1, expires_at: "soon" }, "expires_at"],
    [{ dashboard_id: 1, name: "x".repeat(201) }, "name"],
  ])("%j", async (body, attr) => {
    using it = await prepared();
    const answer = await it.share(body);
    expect([answer.status, answer.body.attr]).toEqual([400, attr]);
  });

  test("more than 200 links; a filter that is no id", async () => {
    using it = await prepared();
    for (let count = 0; count < 200; count++) await it.share({ dashboard_id: it.dashboard.id });
    const answer = await it.share({ dashboard_id: it.dashboard.id });
    expect([answer.status, answer.body.code]).toEqual([400, "limit_reached"]);
    const list = async (query: string) => await it.server.ask("GET", `${path}?${query}`);
    expect((await list("dashboard_id=x")).body.attr).toBe("dashboard_id");
    expect((await list(`dashboard_id=${it.other.id}`)).body.count).toBe(0);
    expect((await list(`dashboard_id=${it.dashboard.id}`)).body.count).toBe(200);
  });
});

test("activity names who created and revoked a link, without its token", async () => {
  using it = await prepared();
  const { body: link } = await it.share({ dashboard_id: it.dashboard.id, name: "Wall" });
  await it.server.ask("DELETE", `${path}${link.id}/`);
  expect((await it.server.ask("DELETE", `${path}${link.id}/`)).status).toBe(404);
  const { body } = await it.server.ask("GET", "/api/projects/1/activity_log/?scope=ShareLink");
  expect(
    body.results.map(({ activity, detail }: never) => [activity, (detail as { name: string }).name]),
  ).toEqual([
    ["deleted", "Wall"],
    ["created", "Wall"],
  ]);
  expect(JSON.stringify(body)).not.toContain(link.token);
});

test("shows Overview with the filters that it was shared with", async () => {
  using it = await prepared();
  const { server, share, open, dashboard } = it;
  const overview = {
    dateRange: { date_from: "-7d" },
    properties: [{ type: "event", key: "$browser", value: "Firefox" }],
    conversionGoal: { goalName: "Signup" },
  };
  const { status, body: link } = await share({ overview });
  expect([status, link.overview, link.dashboard_id]).toEqual([201, overview, null]);
  await share({ dashboard_id: dashboard.id });
  const listed = await server.ask("GET", `${path}?overview=true`);
  expect(listed.body.results.map(({ id }: { id: number }) => id)).toEqual([link.id]);
  const { body } = await open(link.token);
  expect([body.kind, body.project]).toEqual(["overview", "Shop"]);
  const asked = body.tiles.map(
    ({ insight }: { insight: { result: { asked: object }[] } }) => insight.result[0]!.asked,
  );
  const { conversionGoal: _, ...ofTrend } = overview;
  expect(asked.slice(0, 2)).toEqual([
    { kind: "WebOverviewQuery", ...ofTrend },
    { kind: "WebTrendsQuery", interval: "day", ...ofTrend },
  ]);
  expect(asked).toContainEqual({
    kind: "WebStatsTableQuery",
    breakdownBy: "Page",
    includeBounceRate: true,
    limit: 10,
    ...overview,
  });
  const other = await share({ overview: { kind: "HogQLQuery", query: "SELECT 1", source: {} } });
  expect(other.body.overview).toEqual({});
  for (const wrong of [
    { overview, dashboard_id: dashboard.id },
    { overview: { properties: Array(21).fill({}) } },
    { overview: 1 },
  ])
    expect((await share(wrong)).status).toBe(400);
});
