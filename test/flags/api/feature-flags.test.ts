import { describe, expect, test } from "bun:test";
import { flagsPath, TestServer } from "../../support/management-server.ts";

/** Every field of the requirement's table and the type it must have. */
const fieldTypes: Record<string, string> = {
  id: "number",
  name: "string",
  key: "string",
  filters: "object",
  deleted: "boolean",
  active: "boolean",
  created_by: "object",
  created_at: "string",
  is_simple_flag: "boolean",
  rollout_percentage: "number",
  ensure_experience_continuity: "boolean",
  experiment_set: "array",
  surveys: "object",
  features: "object",
  rollback_conditions: "null",
  performed_rollback: "boolean",
  can_edit: "boolean",
  tags: "array",
  usage_dashboard: "number",
  analytics_dashboards: "array",
  has_enriched_analytics: "boolean",
  user_access_level: "string",
  creation_context: "string",
  is_remote_configuration: "boolean",
  status: "string",
};

function getType(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

describe("a flag's life", () => {
  test("create, read, list, change, delete, restore", async () => {
    using server = new TestServer();
    const created = await server.ask("POST", flagsPath, {
      body: {
        key: "pay",
        name: "Payments",
        filters: { groups: [{ properties: [], rollout_percentage: 40 }] },
      },
    });
    expect(created.status).toBe(201);
    for (const [field, type] of Object.entries(fieldTypes)) {
      expect([field, getType(created.body[field])]).toEqual([field, type]);
    }
    expect(created.body).toMatchObject({
      id: 1,
      key: "pay",
      name: "Payments",
      version: 1,
      active: true,
      deleted: false,
      is_simple_flag: true,
      rollout_percentage: 40,
      creation_context: "feature_flags",
      created_at: "2026-03-01T12:00:00.000000Z",
      created_by: { id: 1, email: "ann@example.com" },
      user_access_level: "manager",
    });
    expect((await server.ask("GET", `${flagsPath}1/`)).body).toEqual(created.body);
    expect((await server.ask("GET", flagsPath)).body).toEqual({
      count: 1,
      next: null,
      previous: null,
      results: [created.body],
    });

    const changed = await server.ask("PATCH", `${flagsPath}1/`, { body: { name: "Pay", active: false } });
    expect(changed.body).toMatchObject({ name: "Pay", active: false, version: 2, key: "pay" });

    const rejected = await server.ask("DELETE", `${flagsPath}1/`);
    expect(rejected.status).toBe(405);
    expect(rejected.body).toMatchObject({ type: "invalid_request", code: "method_not_allowed", attr: null });
    expect(rejected.body.detail).toContain("PATCH");
    expect(rejected.headers.get("allow")).toBe("GET, PATCH, HEAD, OPTIONS");
    expect((await server.ask("GET", `${flagsPath}1/`)).body).toEqual(changed.body);
    expect((await server.ask("DELETE", `${flagsPath}999/`)).status).toBe(405);

    expect((await server.ask("PATCH", `${flagsPath}1/`, { body: { deleted: true } })).body.deleted).toBe(
      true,
    );
    expect((await server.ask("GET", flagsPath)).body.count).toBe(0);
    expect((await server.ask("GET", `${flagsPath}1/`)).body.deleted).toBe(true);
    const restored = await server.ask("PATCH", `${flagsPath}1/`, { body: { deleted: false } });
    expect(restored.body).toMatchObject({ key: "pay", deleted: false, version: 4 });
  });

  test("PATCH is the only way to delete one", async () => {
    using server = new TestServer();
    const { body: flag } = await server.ask("POST", flagsPath, { body: { key: "pay" } });
    for (const [method, path, body] of [
      ["PUT", `${flagsPath}1/`, { ...flag, deleted: true }],
      ["PUT", flagsPath, [{ ...flag, deleted: true }]],
      ["DELETE", `${flagsPath}1/`, undefined],
      ["DELETE", flagsPath, { ids: [1] }],
      ["POST", `${flagsPath}bulk_delete/`, { ids: [1] }],
      ["POST", `${flagsPath}bulk_delete/`, { filters: { search: "pay" } }],
      ["POST", `${flagsPath}1/`, { deleted: true }],
    ] as const) {
      const { status } = await server.ask(method, path, { body });
      expect([method, path, [404, 405].includes(status)]).toEqual([method, path, true]);
    }
    expect((await server.ask("GET", `${flagsPath}1/`)).body).toEqual(flag);
  });
});

describe("keys of deleted flags", () => {
  test("are free for a new flag, and are restored with the flag", async () => {
    using server = new TestServer();
    const make = async () => (await server.ask("POST", flagsPath, { body: { key: "pay" } })).body;
    const remove = (id: number) => server.ask("PATCH", `${flagsPath}${id}/`, { body: { deleted: true } });
    const restore = async (id: number) =>
      (await server.ask("PATCH", `${flagsPath}${id}/`, { body: { deleted: false } })).body.key;
    expect((await make()).id).toBe(1);
    await remove(1);
    expect((await make()).id).toBe(2);
    expect((await server.ask("GET", `${flagsPath}1/`)).body.key).toBe("pay:deleted:1");
    expect(await restore(1)).toBe("pay-2");
    await remove(1);
    await remove(2);
    expect((await make()).id).toBe(3);
    await remove(3);
    // The holder of the key is deleted, so the restored flag gets it.
    expect(await restore(2)).toBe("pay");
    const third = (await server.ask("GET", `${flagsPath}3/`)).body;
    expect(third.key).toBe("pay:deleted:3");
    const echoed = await server.ask("PATCH", `${flagsPath}3/`, { body: { ...third, deleted: false } });
    expect(echoed).toMatchObject({ status: 200, body: { key: "pay-2", deleted: false } });
    const invalid = await server.ask("PATCH", `${flagsPath}3/`, { body: { key: "other:deleted:3" } });
    expect(invalid.body).toMatchObject({ code: "invalid_key", attr: "key" });
  });

  test("rename dependent names when they are restored under another key", async () => {
    using server = new TestServer();
    const enrolled = (key: string) => ({
      groups: [{ properties: [{ key, type: "person", operator: "exact", value: ["true"] }] }],
    });
    const filters = { groups: [{}], super_groups: enrolled("$feature_enrollment/pay").groups };
    const first = (await server.ask("POST", flagsPath, { body: { key: "pay", filters } })).body;
    const edit = async (body: object) =>
      (await server.ask("PATCH", `${flagsPath}${first.id}/`, { body })).body;
    await edit({ deleted: true });
    await server.ask("POST", flagsPath, { body: { key: "pay" } });
    const named = async () => {
      const path = `/api/projects/1/dashboards/${first.usage_dashboard}/`;
      const { tiles } = (await server.ask("GET", path)).body;
      return tiles.map(({ insight }: { insight: { description: string; query: object } }) => [
        insight.description.split(": ")[1],
        /"\$feature_flag".*?"value":"(.*?)"/.exec(JSON.stringify(insight.query))?.[1],
      ]);
    };
    const retained = await edit({ name: "still deleted" });
    expect(retained.filters.super_groups).toEqual(filters.super_groups);
    expect(await named()).toEqual([
      ["pay", "pay"],
      ["pay", "pay"],
    ]);
    const restored = await edit({ deleted: false });
    expect([restored.key, restored.filters.super_groups]).toEqual([
      "pay-2",
      enrolled("$feature_enrollment/pay-2").groups,
    ]);
    expect(await named()).toEqual([
      ["pay-2", "pay-2"],
      ["pay-2", "pay-2"],
    ]);
  });
});

describe("what a write rejects", () => {
  for (const [name, body, code, attr, detail] of [
    ["no key", {}, "required", "key", "This field is required."],
    ["null key", { key: null }, "null", "key", "This field may not be null."],
    ["blank key", { key: " " }, "blank", "key", "This field may not be blank."],
    [
      "long key",
      { key: "k".repeat(401) },
      "max_length",
      "key",
      "Ensure this field has no more than 400 characters.",
    ],
    [
      "odd key",
      { key: "a b" },
      "invalid_key",
      "key",
      "Only letters, numbers, hyphens (-) & underscores (_) are allowed.",
    ],
    ["taken key", { key: "taken" }, "unique", "key", "There is already a feature flag with this key."],
    ["active", { key: "a", active: "maybe" }, "invalid_input", "active", "Must be a valid boolean."],
    [
      "context",
      { key: "a", creation_context: "toys" },
      "invalid_choice",
      "creation_context",
      '"toys" is not a valid choice.',
    ],
    [
      "filters",
      { key: "a", filters: "all" },
      "not_a_dict",
      "filters",
      'Expected a dictionary of items but got type "str".',
    ],
    [
      "surveys",
      { key: "a", surveys: "s" },
      "not_a_dict",
      "surveys",
      'Expected a dictionary of items but got type "str".',
    ],
    ["tags", { key: "a", tags: "t" }, "not_a_list", "tags", 'Expected a list of items but got type "str".'],
    ["tag", { key: "a", tags: ["x", {}] }, "invalid_input", "tags__1", "Not a valid string."],
    [
      "evaluation tags",
      { key: "a", tags: ["x"], evaluation_tags: ["y"] },
      "invalid_input",
      null,
      "Evaluation tags must be a subset of tags. Invalid evaluation tags: y",
    ],
    [
      "dashboards",
      { key: "a", analytics_dashboards: [99] },
      "does_not_exist",
      "analytics_dashboards",
      'Invalid pk "99" - object does not exist.',
    ],
    ["a list", [], "invalid_input", null, "Invalid data. Expected a dictionary, but got list."],
  ] as const) {
    test(name, async () => {
      using server = new TestServer();
      await server.ask("POST", flagsPath, { body: { key: "taken" } });
      const answer = await server.ask("POST", flagsPath, { body });
      expect(answer).toMatchObject({ status: 400, body: { type: "validation_error", code, detail, attr } });
      expect((await server.ask("GET", flagsPath)).body.count).toBe(1);
    });
  }
});
