import { describe, expect, test } from "bun:test";
import {
  firstFlagPath,
  flagsPath,
  TestServer,
  withFlag,
  withFlags,
} from "../../support/management-server.ts";

describe("two people edit one flag", () => {
  test("the same field: the later one is rejected", async () => {
    using it = await withFlag();
    await it.patch({ name: "b" });
    const rejected = await it.patch({ name: "c", version: 1, original_flag: it.flag });
    expect(rejected).toMatchObject({
      status: 409,
      body: {
        type: "server_error",
        code: "conflict",
        detail:
          "The feature flag was updated by ann@example.com since you started editing it. Please refresh and try again.",
        attr: null,
      },
    });
    expect((await it.server.ask("GET", firstFlagPath)).body).toMatchObject({ name: "b", version: 2 });
  });
  test("different fields: both stay, even when the later one sends the whole flag", async () => {
    using it = await withFlag();
    await it.patch({ name: "b" });
    const both = await it.patch({ ...it.flag, active: false, original_flag: it.flag });
    expect(both).toMatchObject({ status: 200, body: { name: "b", active: false, version: 3 } });
  });
  for (const [name, change] of [
    ["without the copy the client had", { name: "c", version: 1 }],
    ["with an empty copy", { name: "c", version: 1, original_flag: {} }],
    ["without a version", { name: "c", original_flag: { name: "a" } }],
    ["with version -1", { name: "c", version: -1, original_flag: { name: "a" } }],
    ["to the same value", { name: "b", version: 1, original_flag: { name: "a" } }],
  ] as const) {
    test(`accepted: ${name}`, async () => {
      using it = await withFlag();
      await it.patch({ name: "b" });
      expect((await it.patch(change)).body).toMatchObject({ name: change.name, version: 3 });
    });
  }
  test("a rollback that was never noted is no conflict", async () => {
    using it = await withFlag();
    await it.patch({ name: "b" });
    const noted = await it.patch({ performed_rollback: true, version: 1, original_flag: it.flag });
    expect(noted).toMatchObject({ status: 200, body: { name: "b", performed_rollback: true } });
  });
  test("the names of cohorts, which are shown only, are no conflict", async () => {
    using it = await withFlag();
    const cohort = await it.server.ask("POST", "/api/projects/1/cohorts/", {
      body: { name: "Old name", is_static: true },
    });
    const property = { key: "id", type: "cohort", value: cohort.body.id };
    const read = (await it.patch({ filters: { groups: [{ properties: [property] }] } })).body;
    expect(read.filters.groups[0].properties[0].cohort_name).toBe("Old name");
    await it.server.ask("PATCH", `/api/projects/1/cohorts/${cohort.body.id}/`, {
      body: { name: "New name" },
    });
    await it.patch({ name: "b" });
    const filters = { groups: [{ ...read.filters.groups[0], rollout_percentage: 50 }] };
    const again = await it.patch({ filters, active: false, version: 2, original_flag: read });
    expect(again).toMatchObject({ status: 200, body: { name: "b", active: false } });
    expect(again.body.filters.groups[0].properties[0].cohort_name).toBe("New name");
  });
  test("each of twenty concurrent edits is applied or rejected, and none is lost", async () => {
    using it = await withFlag({ tags: [] });
    const fields = Array.from({ length: 20 }, (_, n) => n);
    const answers = await Promise.all(
      fields.map((n) => it.patch({ name: `n${n}`, version: 1, original_flag: it.flag })),
    );
    const accepted = answers.filter(({ status }) => status === 200);
    expect(accepted).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19);
    const { body } = await it.server.ask("GET", firstFlagPath);
    expect(body).toMatchObject({ version: 2, name: accepted[0]!.body.name });

    const plain = await Promise.all(fields.map((n) => it.patch({ name: `m${n}` })));
    const versions = plain.map((answer) => answer.body.version).sort((a, b) => a - b);
    expect(versions).toEqual(fields.map((n) => n + 3));
    const log = await it.server.ask("GET", `${firstFlagPath}activity/?limit=100`);
    expect(log.body.total_count).toBe(22);
  });
});

test("maps and ids that other products keep in a flag are kept", async () => {
  using it = await withFlag();
  const retained = { surveys: { a: { id: 1 } }, features: { b: [2] }, experiment_set: [5, 3] };
  expect((await it.patch(retained)).body).toMatchObject(retained);
  expect((await it.server.ask("GET", firstFlagPath)).body).toMatchObject(retained);
  const created = await it.server.ask("POST", flagsPath, { body: { key: "kept", ...retained } });
  expect(created.body).toMatchObject(retained);
  expect((await it.patch({ surveys: null, features: null, experiment_set: null })).body).toMatchObject({
    surveys: {},
    features: {},
    experiment_set: [],
  });
  for (const wrong of [
    { experiment_set: ["x"] },
    { experiment_set: 5 },
    { surveys: [1] },
    { features: "x" },
  ]) {
    expect((await it.patch(wrong)).status).toBe(400);
  }
});

test("flags by the cohort they use", async () => {
  using it = await withFlag();
  const conditions = {
    type: "OR",
    values: [{ key: "plan", type: "person", value: "pro", operator: "exact" }],
  };
  const created = await it.server.ask("POST", "/api/projects/1/cohorts/", {
    body: { name: "Pro", filters: { properties: conditions } },
  });
  const about = { groups: [{ properties: [{ key: "id", type: "cohort", value: created.body.id }] }] };
  await it.server.ask("POST", flagsPath, { body: { key: "pro-only", name: "P", filters: about } });
  const byCohort = async () => (await it.server.ask("GET", `${flagsPath}by_cohort/`)).body;
  expect(await byCohort()).toEqual({
    [created.body.id]: { count: 1, flags: [{ id: 2, key: "pro-only", name: "P" }], critical_flags: [] },
  });
  const needs = { key: "2", type: "flag", operator: "flag_evaluates_to", value: true };
  const careful = { key: "careful", tags: ["critical"], filters: { groups: [{ properties: [needs] }] } };
  const { id: carefulId } = (await it.server.ask("POST", flagsPath, { body: careful })).body;
  expect((await byCohort())[created.body.id]).toMatchObject({ count: 1, critical_flags: ["careful"] });
  await it.server.ask("PATCH", `${flagsPath}${carefulId}/`, { body: { deleted: true } });
  for (let number = 0; number < 101; number++) {
    await it.server.ask("POST", flagsPath, { body: { key: `pro-${number}`, filters: about } });
  }
  const { count, flags } = (await byCohort())[created.body.id];
  expect([count, flags.length]).toEqual([102, 100]);
  for (let id = 4; id < 105; id++)
    await it.server.ask("PATCH", `${flagsPath}${id}/`, { body: { deleted: true } });
  await it.server.ask("PATCH", `${flagsPath}2/`, { body: { deleted: true } });
  expect(await byCohort()).toEqual({});
});

describe("flags that need other flags", () => {
  test("hold them in place", async () => {
    using it = await withFlag();
    const needs = {
      groups: [{ properties: [{ key: "1", type: "flag", operator: "flag_evaluates_to", value: true }] }],
    };
    await it.server.ask("POST", flagsPath, { body: { key: "child", name: "C", filters: needs } });
    expect((await it.server.ask("GET", `${firstFlagPath}dependent_flags/`)).body).toEqual([
      { id: 2, key: "child", name: "C" },
    ]);
    expect((await it.patch({ deleted: true })).body.detail).toBe(
      "Cannot delete this feature flag because other flags depend on it: child (ID: 2). Please update or delete the dependent flags first.",
    );
    expect((await it.patch({ active: false })).body).toMatchObject({
      code: "invalid_input",
      attr: null,
      detail:
        "Cannot disable this feature flag because other flags depend on it: child (ID: 2). Please update or disable the dependent flags first.",
    });
    const child = (body: object) => it.server.ask("PATCH", `${flagsPath}2/`, { body });
    expect((await child({ active: false })).status).toBe(200);
    expect((await it.patch({ active: false })).status).toBe(200);
    expect((await child({ active: true })).body.detail).toBe(
      "Cannot enable this feature flag because it depends on disabled flags: pay (ID: 1). Please enable the dependency flags first.",
    );
    const loop = await it.patch({
      filters: {
        groups: [{ properties: [{ key: "2", type: "flag", operator: "flag_evaluates_to", value: true }] }],
      },
    });
    expect(loop.status).toBe(400);
  });
});

describe("other fields", () => {
  test("tags are trimmed, lower-cased, unique and sorted; null leaves them alone", async () => {
    using it = await withFlag({ tags: ["B", " a", "b"], evaluation_tags: ["A"] });
    expect(it.flag).toMatchObject({ tags: ["a", "b"], evaluation_tags: ["a"] });
    expect((await it.patch({ tags: null })).body.tags).toEqual(["a", "b"]);
    expect((await it.patch({ tags: ["b"] })).body).toMatchObject({ tags: ["b"], evaluation_tags: [] });
  });
  test("evaluation contexts: both names return the list, whichever was sent, and the log records it once", async () => {
    using it = await withFlag({ tags: ["a"], evaluation_contexts: ["Web", "a"] });
    const shown = (flag: { evaluation_tags: string[]; evaluation_contexts: string[] }) => [
      flag.evaluation_tags,
      flag.evaluation_contexts,
    ];
    const both = (contexts: string[]) => [contexts, contexts];
    expect(shown(it.flag)).toEqual(both(["a", "web"]));
    const echoed = await it.patch({ ...it.flag, name: "b", original_flag: it.flag });
    expect([echoed.status, ...shown(echoed.body)]).toEqual([200, ...both(["a", "web"])]);
    expect(shown((await it.patch({ tags: [] })).body)).toEqual(both(["web"]));
    expect(shown((await it.patch({ evaluation_contexts: null })).body)).toEqual(both(["web"]));
    expect(shown((await it.patch({ evaluation_contexts: ["app"] })).body)).toEqual(both(["app"]));
    const { body } = await it.server.ask("GET", `${firstFlagPath}activity/`);
    const fields = body.results[0].detail.changes.map(({ field }: { field: string }) => field);
    expect(fields.sort()).toEqual(["evaluation_tags", "version"]);
    const reverted = await it.server.ask("POST", `${firstFlagPath}revert/`, {
      body: { activity_id: body.results[0].id },
    });
    expect(shown(reverted.body)).toEqual(both(["web"]));
  });
  test("evaluation contexts that two people changed are a conflict", async () => {
    using it = await withFlag({ evaluation_contexts: ["web"] });
    await it.patch({ evaluation_contexts: ["app"] });
    const change = { version: 1, original_flag: it.flag };
    expect((await it.patch({ ...it.flag, ...change, evaluation_contexts: ["ios"] })).status).toBe(409);
    const other = await it.patch({ ...it.flag, ...change, active: false });
    expect(other).toMatchObject({ status: 200, body: { active: false, evaluation_contexts: ["app"] } });
  });
  for (const [name, evaluation_contexts, attr, detail] of [
    [
      "51",
      Array.from({ length: 51 }, (_, n) => `c${n}`),
      "evaluation_contexts",
      "Ensure this field has no more than 50 elements.",
    ],
    [
      "a long one",
      ["x".repeat(256)],
      "evaluation_contexts__0",
      "Ensure this field has no more than 255 characters.",
    ],
  ] as const) {
    test(`evaluation contexts that are rejected: ${name}`, async () => {
      using it = await withFlag();
      const rejected = await it.patch({ evaluation_contexts });
      expect(rejected).toMatchObject({ status: 400, body: { code: "max_length", attr, detail } });
    });
  }
  test("free-form objects and rollback conditions are returned as sent", async () => {
    using it = await withFlag({ surveys: { x: 1 }, features: {}, rollback_conditions: [{ threshold: 1 }] });
    expect(it.flag).toMatchObject({
      surveys: { x: 1 },
      features: {},
      rollback_conditions: [{ threshold: 1 }],
    });
    expect((await it.patch({ surveys: [] })).body.surveys).toEqual({});
  });
  test("switching on undoes a rollback", async () => {
    using it = await withFlag({ performed_rollback: true, active: false });
    expect(it.flag.performed_rollback).toBe(true);
    expect((await it.patch({ name: "x" })).body.performed_rollback).toBe(true);
    expect((await it.patch({ active: true })).body).toMatchObject({
      active: true,
      performed_rollback: false,
    });
  });
  test("read-only fields are ignored", async () => {
    using it = await withFlag();
    const sent = {
      id: 9,
      created_at: "2000-01-01T00:00:00Z",
      status: "STALE",
      can_edit: false,
      created_by: null,
    };
    const { version: _, updated_at: __, ...before } = it.flag;
    expect((await it.patch({ ...sent, last_called_at: "2000-01-01T00:00:00Z" })).body).toMatchObject(before);
  });
  test("a renamed flag renames its usage dashboard, unless a user edited it", async () => {
    using it = await withFlag();
    const tiles = async () =>
      (await it.server.ask("GET", `/api/projects/1/dashboards/${it.flag.usage_dashboard}/`)).body.tiles.map(
        (tile: { insight: { description: string; query: unknown } }) => tile.insight,
      );
    const [first] = await tiles();
    await it.server.ask("PATCH", `/api/projects/1/insights/${first.id}/`, { body: { description: "Mine" } });
    await it.patch({ key: "pay-more" });
    const after = await tiles();
    expect(after.map((insight: { description: string }) => insight.description)).toEqual([
      "Mine",
      "Shows the number of unique user calls made on feature flag per variant with key: pay-more",
    ]);
    expect(JSON.stringify(after[0].query)).toContain('"pay"');
    expect(JSON.stringify(after[1].query)).toContain('"pay-more"');
  });
});

describe("writes that are rejected", () => {
  test("filters that would make those of the whole project longer than the memory bears", async () => {
    using server = await withFlags({ key: "long" }, { key: "short" }, { key: "gone" });
    const path = (id: number) => `${flagsPath}${id}/`;
    const patch = (id: number, body: object) => server.ask("PATCH", path(id), { body });
    const getFilters = (length: number) => ({
      groups: [{ properties: [], rollout_percentage: 100 }],
      payloads: { true: JSON.stringify("x".repeat(length)) },
    });
    await patch(3, { filters: getFilters(20_000) });
    await patch(3, { deleted: true });
    // As long as a hundred and more of the longest ones.
    const longest = JSON.stringify(getFilters(64 * 1024 * 1024 - 10_000));
    server.metadata.db.$client.run("UPDATE flag SET filters = ? WHERE id = 1", [longest]);
    const rejected = { status: 400, body: { code: "invalid_input", attr: "filters" } };
    const long = { key: "more", filters: getFilters(20_000) };
    expect(await server.ask("POST", flagsPath, { body: long })).toMatchObject(rejected);
    expect(await patch(2, { filters: getFilters(20_000) })).toMatchObject(rejected);
    expect(await patch(3, { deleted: false })).toMatchObject(rejected);
    expect(await patch(2, { name: "still a name" })).toMatchObject({ status: 200 });
    expect(await patch(2, { filters: getFilters(10) })).toMatchObject({ status: 200 });
    expect(await server.ask("POST", flagsPath, { body: { key: "small" } })).toMatchObject({ status: 201 });
    expect(await patch(1, { filters: getFilters(30_000) })).toMatchObject({ status: 200 });
    expect(await server.ask("POST", flagsPath, { body: long })).toMatchObject({ status: 201 });
    expect(await patch(3, { deleted: false })).toMatchObject({ status: 200 });
  });

  test("leave no trace: no flag, no tags, no log, no dashboard", async () => {
    using server = new TestServer();
    const body = { key: "a", tags: ["t"], analytics_dashboards: [99] };
    expect((await server.ask("POST", flagsPath, { body })).status).toBe(400);
    const count = (table: string) =>
      (server.metadata.db.$client.query(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
    expect(["flag", "tag", "dashboard", "insight", "tile"].map(count)).toEqual([0, 0, 0, 0, 0]);
    expect((await server.ask("GET", `${flagsPath}activity/`)).body.total_count).toBe(0);
  });
});
