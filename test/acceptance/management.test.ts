/** What the management API computes from real events and persons, over HTTP against the compiled executable. */

import { beforeAll, describe, expect, test } from "bun:test";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

const api = async (path: string, init?: { method?: string; body?: unknown }) => {
  const response = await server.api(`/api/projects/1${path}`, init);
  return { status: response.status, body: (await response.json().catch(() => undefined)) as never as Body };
};
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes, checked by the expectations
type Body = any;

async function createFlag(body: Record<string, unknown>): Promise<Body> {
  const { status, body: flag } = await api("/feature_flags/", { method: "POST", body });
  expect(status).toBe(201);
  return flag;
}

async function everythingReadable(): Promise<void> {
  const uuid = Bun.randomUUIDv7();
  await server.capture({ event: "marker", distinct_id: "marker", uuid });
  await until(async () => (await server.events(`uuid=${uuid}`)).length === 1, "the marker is readable");
}

describe("flags and events", () => {
  test("the usage dashboard of a flag counts its calls, in total and by users", async () => {
    const flag = await createFlag({ key: "used-flag" });
    const call = (distinctId: string, response: unknown) =>
      server.capture({
        event: "$feature_flag_called",
        distinct_id: distinctId,
        properties: { $feature_flag: "used-flag", $feature_flag_response: response },
      });
    await call("a", true);
    await call("a", true);
    await call("b", "control");
    await everythingReadable();
    const { body: dashboard } = await api(`/dashboards/${flag.usage_dashboard}/`);
    expect(dashboard.tiles).toHaveLength(2);
    const results = await Promise.all(
      dashboard.tiles.map(async (tile: Body) => (await api(`/insights/${tile.insight.id}/`)).body.result),
    );
    const sums = results.map((result) =>
      Object.fromEntries(result.map((one: Body) => [one.label, one.count])),
    );
    expect(sums).toEqual([
      { true: 2, control: 1 },
      { true: 1, control: 1 },
    ]);
  });

  test("last_called_at, has_enriched_analytics and the enriched dashboard come from events", async () => {
    const flag = await createFlag({ key: "called-flag" });
    expect(flag.last_called_at).toBeNull();
    await server.capture({
      event: "$feature_flag_called",
      distinct_id: "a",
      properties: { $feature_flag: "called-flag", $feature_flag_response: true },
    });
    await server.capture({
      event: "$feature_view",
      distinct_id: "a",
      properties: { feature_flag: "called-flag" },
    });
    const seen = await until(async () => {
      const { body } = await api(`/feature_flags/${flag.id}/`);
      return body.has_enriched_analytics && body.last_called_at !== null && body;
    }, "the flag knows of its use");
    expect(Math.abs(Date.parse(seen.last_called_at) - Date.now())).toBeLessThan(60_000);
    const { body: status } = await api(`/feature_flags/${flag.id}/status/`);
    expect(status).toMatchObject({ status: "active", reason: "Flag was called today" });
    const enrich = await api(`/feature_flags/${flag.id}/enrich_usage_dashboard/`, {
      method: "POST",
      body: {},
    });
    expect(enrich).toMatchObject({ status: 200, body: { success: true } });
    const { body: dashboard } = await api(`/dashboards/${seen.usage_dashboard}/`);
    expect(dashboard.tiles.map((tile: Body) => tile.insight.name)).toContain("Feature Viewed Total Volume");
  });
});

describe("persons as a whole", () => {
  beforeAll(async () => {
    await server.batch(
      Array.from({ length: 20 }, (_, index) => ({
        event: "$set",
        properties: {
          distinct_id: `person-${index}`,
          $set: { email: `p${index}@${index % 4 === 0 ? "acme.com" : "example.com"}` },
        },
      })),
    );
    await everythingReadable();
  });

  test("the blast radius of a condition", async () => {
    const radius = async (condition: unknown) =>
      (await api("/feature_flags/user_blast_radius/", { method: "POST", body: { condition } })).body;
    const email = { key: "email", type: "person", operator: "icontains", value: "@ACME.com" };
    const all = await radius({ properties: [] });
    const some = await radius({ properties: [email], rollout_percentage: 10 });
    expect(some.users_affected).toBe(5);
    expect(some.total_users).toBe(all.total_users);
    expect(all.users_affected).toBe(all.total_users);
    expect(some).toMatchObject({ affected: 5, total: all.total_users });
  });

  test("a dynamic cohort has the persons it describes; a static one those of a flag", async () => {
    const filters = {
      properties: {
        type: "OR",
        values: [
          { type: "AND", values: [{ key: "email", type: "person", operator: "icontains", value: "acme" }] },
        ],
      },
    };
    const created = await api("/cohorts/", { method: "POST", body: { name: "Acme", filters } });
    expect(created.status).toBe(201);
    const counted = await until(async () => {
      const { body } = await api(`/cohorts/${created.body.id}/`);
      return !body.is_calculating && body.count !== null && body;
    }, "the cohort is counted");
    expect(counted.count).toBe(5);
    const { body: persons } = await api(`/cohorts/${created.body.id}/persons/`);
    expect(persons.results).toHaveLength(5);

    const flag = await createFlag({
      key: "acme-only",
      filters: {
        groups: [
          {
            properties: [{ key: "id", type: "cohort", value: created.body.id, operator: "in" }],
            rollout_percentage: 100,
          },
        ],
      },
    });
    const filled = await api(`/feature_flags/${flag.id}/create_static_cohort_for_flag/`, {
      method: "POST",
      body: {},
    });
    expect(filled.status).toBe(201);
    const cohort = await until(async () => {
      const { body } = await api(`/cohorts/${filled.body.cohort.id}/`);
      return !body.is_calculating && body.count !== null && body;
    }, "the static cohort is filled");
    expect(cohort).toMatchObject({ count: 5, is_static: true });
  });
});

test("insights that cannot be computed report the reason", async () => {
  const { body: insight } = await api("/insights/", {
    method: "POST",
    body: { name: "x", query: { kind: "PathsQuery" } },
  });
  const answer = await api(`/insights/${insight.id}/`);
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({
    name: "x",
    result: null,
    query_status: { error: true, error_message: 'Queries of kind "PathsQuery" are not supported.' },
  });
});

test("concurrent edits of one flag: every writer's field is there at the end, and every edit is counted", async () => {
  const flag = await createFlag({
    key: "busy",
    filters: { groups: [{ properties: [], rollout_percentage: 0 }] },
  });
  const names = Array.from({ length: 20 }, (_, index) => `name ${index}`);
  const answers = await Promise.all(
    names.map((name) =>
      api(`/feature_flags/${flag.id}/`, { method: "PATCH", body: { name, version: 1, original_flag: flag } }),
    ),
  );
  const accepted = answers.filter(({ status }) => status === 200);
  const conflicts = answers.filter(({ status }) => status === 409);
  expect(accepted.length + conflicts.length).toBe(20);
  expect(accepted.length).toBe(1);
  const { body: now } = await api(`/feature_flags/${flag.id}/`);
  expect(now.version).toBe(1 + accepted.length);
  expect(now.name).toBe(accepted[0]!.body.name);
});

test("the documentation is there without the internet", async () => {
  const schema = await fetch(`${server.url}/api/schema/`);
  expect(schema.status).toBe(200);
  const document = (await schema.json()) as { openapi: string; paths: Record<string, unknown> };
  expect(document.openapi).toStartWith("3.1");
  expect(Object.keys(document.paths).length).toBeGreaterThan(40);
  const docs = await (await fetch(`${server.url}/docs`)).text();
  expect(docs).not.toMatch(/(src|href)="https?:\/\//);
});
