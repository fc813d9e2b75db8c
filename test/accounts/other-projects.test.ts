/** Objects of one project through the paths of another: every route with the id of an object answers 404. */

import { expect, test } from "bun:test";
import { createProject } from "../../src/accounts/projects.ts";
import type { Route } from "../../src/http/route.ts";
import { TestServer } from "../support/management-server.ts";
import { P } from "./expected-scopes.ts";

/** Bodies that create an object, by the path below the project. @param ids of the objects before it */
const created: Record<string, object | ((ids: Record<string, unknown>) => object)> = {
  feature_flags: { key: "theirs", filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
  cohorts: { name: "theirs", is_static: true },
  experiments: { name: "theirs", feature_flag_key: "tested" },
  experiment_holdouts: { name: "theirs", filters: [{ properties: [], rollout_percentage: 10 }] },
  experiment_saved_metrics: {
    name: "theirs",
    query: { kind: "ExperimentMetric", metric_type: "mean", source: { kind: "EventsNode", event: "paid" } },
  },
  early_access_feature: { name: "theirs", stage: "beta" },
  surveys: { name: "theirs", type: "api", questions: [{ type: "open", question: "Why?" }] },
  dashboards: { name: "theirs" },
  insights: { name: "theirs", query: { kind: "TrendsQuery", series: [{ event: "seen" }] } },
  annotations: { content: "theirs", scope: "project" },
  webhooks: { url: "https://hooks.slack.com/services/T0/B0/abcdefghijklmnopqrstuvwx" },
  web_experiments: {
    name: "theirs",
    variants: {
      control: { rollout_percentage: 50 },
      test: {
        rollout_percentage: 50,
        transforms: [{ selector: "#buy", text: "Buy" }],
      },
    },
  },
  scheduled_changes: ({ feature_flags: record_id }) => ({
    record_id,
    payload: { operation: "update_status", value: false },
    scheduled_at: "2099-03-05T09:00:00.000000Z",
  }),
  change_requests: ({ feature_flags: flag_id }) => ({ flag_id, changes: { active: false } }),
  share_links: ({ dashboards: dashboard_id }) => ({ dashboard_id }),
};

/** Paths with the id of an object of a project, or below it. Persons, events and imports have ids of another form. */
const named = /^\/(\w+)\/:(id|feature_flag_id)(\/|$)/;

function prepared() {
  const server: TestServer = new TestServer();
  const { organization } = server.first;
  const theirs = createProject(server.metadata, { organizationId: organization.id, name: "Theirs" }, null);
  return { server, theirs, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

/** The objects of a project, so that what a foreign request changed would show. */
async function read(server: TestServer, projectId: number, kind: string) {
  return (await server.ask("GET", `/api/projects/${projectId}/${kind}/`)).body;
}

const subPath = (route: Route) => route.path.slice(P.length);

test("routes with the id of another project's object answer 404 and change nothing", async () => {
  using it = prepared();
  const { server, theirs } = it;
  const routes = server.routes.filter(({ path }) => path.startsWith(P) && named.test(path.slice(P.length)));
  const kinds = new Set(routes.map((route) => named.exec(subPath(route))![1]!));
  expect([...kinds].filter((kind) => !(kind in created))).toEqual([]);
  const ids: Record<string, unknown> = {};
  const others: string[] = [];
  for (const [kind, input] of Object.entries(created)) {
    const body = typeof input === "function" ? input(ids) : input;
    const { status, body: object } = await server.ask("POST", `/api/projects/${theirs.id}/${kind}/`, {
      body,
    });
    expect([kind, status, object]).toEqual([kind, 201, expect.objectContaining({ id: expect.anything() })]);
    ids[kind] = object.id;
    const before = await read(server, theirs.id, kind);
    for (const route of routes.filter((route) => named.exec(subPath(route))![1] === kind)) {
      const path = route.path
        .replace(":project_id", "1")
        .replace(/:(id|feature_flag_id)/, String(object.id))
        .replace(/:\w*id/, "1")
        .concat("?distinct_id=ann&metric_uuid=m&fingerprint=f");
      const { status } = await server.ask(route.method, path, {
        body: route.bodyExample ?? (route.body ? {} : undefined),
      });
      if (status !== 404) others.push(`${status} ${route.method} ${subPath(route)}`);
    }
    expect(await read(server, theirs.id, kind)).toEqual(before);
  }
  expect(others).toEqual([
    // Deletion by DELETE is rejected for every id; enrollment needs an engine.
    "405 DELETE /feature_flags/:id",
    "405 DELETE /cohorts/:id",
    "405 DELETE /experiments/:id",
    "400 GET /early_access_feature/:id/enrollment",
  ]);
});
