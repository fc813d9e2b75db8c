/** Early access features. Source: contract, experiments 1.4. */

import { expect, test } from "bun:test";
import { flagkeep, until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

async function api(path: string, init: { method?: string; body?: object } = {}) {
  const response = await server.api(`/api/projects/1${path}`, init);
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  return { status: response.status, body: (await response.json().catch(() => undefined)) as any };
}
const create = (body: object) => api("/early_access_feature/", { method: "POST", body });
const change = (id: string, body: object) => api(`/early_access_feature/${id}/`, { method: "PATCH", body });

async function listed(query = "") {
  const response = await fetch(`${server.url}/api/early_access_features/?token=${server.token}${query}`);
  const { earlyAccessFeatures } = (await response.json()) as {
    earlyAccessFeatures: Record<string, unknown>[];
  };
  return earlyAccessFeatures;
}

async function isOn(key: string, distinctId: string) {
  const response = await server.post("/flags?v=2", { token: server.token, distinct_id: distinctId });
  const { flags } = (await response.json()) as { flags: Record<string, { enabled: boolean }> };
  return flags[key]?.enabled;
}

test("a released feature follows the person's enrollment, and leaving the stage ends it", async () => {
  const { status, body: feature } = await create({ name: "New editor", stage: "draft", payload: { a: 1 } });
  expect({ status, key: feature.feature_flag.key }).toEqual({ status: 201, key: "new-editor" });
  expect(feature.feature_flag).toMatchObject({
    creation_context: "early_access_features",
    features: { [feature.id]: { id: feature.id, name: "New editor", stage: "draft", flagKey: "new-editor" } },
  });
  expect(await listed()).toEqual([]);

  const released = await change(feature.id, { stage: "beta" });
  expect(released.body.feature_flag.filters.super_groups).toEqual([
    {
      properties: [
        { key: "$feature_enrollment/new-editor", type: "person", operator: "exact", value: ["true"] },
      ],
      rollout_percentage: 100,
    },
  ]);
  expect(await listed()).toEqual([
    {
      id: feature.id,
      name: "New editor",
      description: "",
      stage: "beta",
      documentationUrl: "",
      flagKey: "new-editor",
      payload: { a: 1 },
    },
  ]);
  expect(await isOn("new-editor", "ann")).toBeFalse();
  const enroll = (enrolled: boolean) =>
    api(`/early_access_feature/${feature.id}/enroll/`, {
      method: "POST",
      body: { distinct_id: "ann", enrolled },
    });
  expect((await enroll(true)).body).toEqual({ distinct_id: "ann", enrolled: true });
  await until(async () => await isOn("new-editor", "ann"), "the flag is on for the enrolled person");
  const enrollment = (await api(`/early_access_feature/${feature.id}/enrollment/`)).body;
  expect(enrollment).toMatchObject({ enrolled: 1, opted_out: 0, persons: [{ distinct_id: "ann" }] });
  await enroll(false);
  await until(async () => !(await isOn("new-editor", "ann")), "the flag is off again");
  await enroll(true);
  await until(async () => await isOn("new-editor", "ann"), "the flag is on again");

  const archived = await change(feature.id, { stage: "archived" });
  expect(archived.body.feature_flag.filters.super_groups ?? null).toBeNull();
  expect(await isOn("new-editor", "ann")).toBeFalse();
  expect(await listed("&stage=archived")).toEqual([]);
});

test("visitors get the stages they ask for, with an entity tag", async () => {
  const { body: concept } = await create({ name: "Idea", stage: "concept" });
  const { body: general } = await create({ name: "Done", stage: "general-availability" });
  const ids = async (query: string) => (await listed(query)).map(({ id }) => id);
  expect(await ids("&stage=concept")).toEqual([concept.id]);
  expect(await ids("&stage=concept&stage=general-availability")).toEqual([concept.id, general.id]);
  expect(await ids("&stage=draft")).toEqual([]);
  const url = `${server.url}/api/early_access_features?token=${server.token}&stage=concept`;
  const first = await fetch(url, { headers: { Origin: "https://shop.example" } });
  expect(first.headers.get("access-control-allow-origin")).toBe("https://shop.example");
  expect(first.headers.get("cache-control")).toContain("max-age=60");
  const tag = first.headers.get("etag")!;
  expect((await fetch(url, { headers: { "If-None-Match": tag } })).status).toBe(304);
  await change(concept.id, { name: "Another idea" });
  const changed = await fetch(url, { headers: { "If-None-Match": tag } });
  expect(changed.status).toBe(200);
  expect(await changed.text()).toContain("Another idea");
});

test("an unknown or missing project key is 401", async () => {
  for (const [query, code] of [
    ["", "missing_api_key"],
    ["?token=phc_unknown", "invalid_api_key"],
  ]) {
    const response = await fetch(`${server.url}/api/early_access_features/${query}`);
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ type: "authentication_error", code });
  }
});

test("an existing flag: without variants, groups and another feature", async () => {
  const flag = async (key: string, filters: object) =>
    (await api("/feature_flags/", { method: "POST", body: { key, filters } })).body.id as number;
  const groups = [{ properties: [], rollout_percentage: 10 }];
  const plain = await flag("plain", { groups });
  expect((await create({ name: "Plain", stage: "beta", feature_flag_id: plain })).status).toBe(201);
  const variants = [
    { key: "a", rollout_percentage: 50 },
    { key: "b", rollout_percentage: 50 },
  ];
  for (const [id, detail] of [
    [plain, "Linked feature flag plain already has a feature attached to it."],
    [
      await flag("variants", { groups, multivariate: { variants } }),
      "Multivariate feature flags are not supported for Early Access Features.",
    ],
    [
      await flag("by-group", { groups, aggregation_group_type_index: 0 }),
      "Group-based feature flags are not supported for Early Access Features.",
    ],
    [999_999, "Feature Flag with this ID does not exist"],
  ] as const)
    expect(await create({ name: "x", stage: "beta", feature_flag_id: id })).toMatchObject({
      status: 400,
      body: { detail },
    });
});

test("a flag with a live feature is not deleted; deleting the feature leaves the flag", async () => {
  const { body: feature } = await create({
    name: "Held",
    stage: "alpha",
    documentation_url: "https://example.com",
  });
  const path = `/feature_flags/${feature.feature_flag.id}/`;
  const rejected = await api(path, { method: "PATCH", body: { deleted: true } });
  expect(rejected.status).toBe(400);
  expect(rejected.body.detail).toContain('early access feature "Held"');
  expect((await api(`/early_access_feature/${feature.id}/`, { method: "DELETE" })).status).toBe(204);
  const { body: flag } = await api(path);
  expect(flag).toMatchObject({ deleted: false, features: {} });
  expect(flag.filters.super_groups ?? null).toBeNull();
});

test("invalid input", async () => {
  for (const body of [
    { name: "", stage: "beta" },
    { name: "x", stage: "gamma" },
    { name: "x" },
    { name: "x".repeat(201), stage: "beta" },
    { name: "x", stage: "beta", documentation_url: "javascript:alert(1)" },
    { name: "x", stage: "beta", documentation_url: `https://example.com/${"x".repeat(800)}` },
    { name: "x", stage: "beta", payload: [1] },
  ])
    expect({ body, status: (await create(body)).status }).toEqual({ body, status: 400 });
});

test("the command enrolls on a server only", async () => {
  await create({ name: "By command", stage: "beta" });
  const remote = ["--url", server.url, "--key", server.initialized.personal_api_key];
  const enrolled = await flagkeep(["features", "enroll", "by-command", "kim", ...remote]);
  expect(enrolled).toMatchObject({ stdout: "kim is enrolled.\n", stderr: "", code: 0 });
  await until(async () => await isOn("by-command", "kim"), "the flag is on");
  const local = await flagkeep(["features", "enroll", "by-command", "kim", "--data-dir", server.dataDir]);
  expect(local.code).toBe(2);
  expect(local.stderr).toContain("--url");
});
