import { describe, expect, test } from "bun:test";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { createUser } from "../../../src/accounts/users.ts";
import { recordFlagCalls } from "../../../src/flags/store/flag-usage.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";

const onForAll = { groups: [{ properties: [], rollout_percentage: 100 }] };
const twoVariants = {
  groups: [{ properties: [], rollout_percentage: 50 }],
  multivariate: {
    variants: [
      { key: "a", rollout_percentage: 50 },
      { key: "b", rollout_percentage: 50 },
    ],
  },
};
const dayMs = 86_400_000;

/** Flags of two people, made one second apart; returns a function that lists keys. */
async function stocked() {
  const server = new TestServer();
  createUser(server.metadata, {
    email: "bob@example.com",
    organizationId: server.first.organization.id,
    level: "member",
  });
  const bob = createKey(
    server.metadata,
    { userEmail: "bob@example.com", label: "b", scopes: ["*"] },
    { now: server.now },
  ).value;
  const make = async (body: object, key?: string) => {
    server.now = new Date(server.now.getTime() + 1_000);
    const { status } = await server.ask("POST", flagsPath, { body, key });
    expect(status).toBe(201);
  };
  await make({ key: "new-checkout_page", name: "Überraschung", tags: ["Web", "shop"] });
  await make({ key: "colors", filters: twoVariants, tags: ["web"], evaluation_tags: ["web"] }, bob);
  await make({ key: "off", name: "100% off_sale", active: false, evaluation_runtime: "server" });
  await make({
    key: "settings",
    is_remote_configuration: true,
    filters: { ...onForAll, payloads: { true: "{}" } },
  });
  await make({ key: "survey-targeting-abc" });
  await make({ key: "gone" });
  await server.ask("PATCH", `${flagsPath}6/`, { body: { deleted: true } });
  const keys = async (query: string): Promise<string[]> => {
    const { status, body } = await server.ask("GET", `${flagsPath}?${query}`);
    expect([query, status]).toEqual([query, 200]);
    expect(body.count).toBe(body.results.length);
    return body.results.map((flag: { key: string }) => flag.key);
  };
  return { server, keys, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

const all = ["settings", "off", "colors", "new-checkout_page"];

describe("the list of flags", () => {
  for (const [query, expected] of [
    ["", all],
    ["unknown=1", all],
    ["search=CHECK", ["new-checkout_page"]],
    ["search=überr", ["new-checkout_page"]],
    ["search=new%20checkout%20page", ["new-checkout_page"]],
    ["search=%20page%20", ["new-checkout_page"]],
    ["search=100%25", ["off"]],
    ["search=_s", ["off"]],
    ["search=%25", ["off"]],
    ["search=%00", []],
    ["search=checkout%00", []],
    ["search=", all],
    ["active=true", ["settings", "colors", "new-checkout_page"]],
    ["active=TRUE", ["settings", "colors", "new-checkout_page"]],
    ["active=false", ["off"]],
    ["active=1", ["settings", "colors", "new-checkout_page"]],
    ["active=Yes", ["settings", "colors", "new-checkout_page"]],
    ["active=%20on", ["settings", "colors", "new-checkout_page"]],
    ["active=0", ["off"]],
    ["active=NO", ["off"]],
    ["active=off", ["off"]],
    ["active=", all],
    ["created_by_id=1", ["settings", "off", "new-checkout_page"]],
    ["created_by_id=2", ["colors"]],
    ["created_by=2", ["colors"]],
    ["created_by=2,1", all],
    ["created_by_id=2,1", all],
    ["created_by_id=[2]", ["colors"]],
    ["created_by_id=-1", []],
    ["created_by_id=1000000000000000", []],
    ["created_by=9007199254740993", []],
    ["type=boolean", ["settings", "off", "new-checkout_page"]],
    ["type=multivariant", ["colors"]],
    ["type=experiment", []],
    ["type=remote_config", ["settings"]],
    ["type=boolean&type=multivariant", ["colors"]],
    ["evaluation_runtime=server", ["off"]],
    ['excluded_properties=["off","colors"]', ["settings", "new-checkout_page"]],
    ['tags=["WEB"]', ["colors", "new-checkout_page"]],
    ['tags=["shop","nothing"]', ["new-checkout_page"]],
    ["tags=shop", ["new-checkout_page"]],
    ['tags="web"', ["colors", "new-checkout_page"]],
    ["tags=nothing", []],
    ["tags=[]", all],
    ["type=", all],
    ["created_by=", all],
    ["excluded_tags=shop", ["settings", "off", "colors"]],
    ["excluded_properties=off", ["settings", "colors", "new-checkout_page"]],
    ["nonsense=zzz", all],
    ['excluded_tags=["shop"]', ["settings", "off", "colors"]],
    ["has_evaluation_tags=true", ["colors"]],
    ["has_evaluation_tags=", all],
    ["has_evaluation_contexts=true", ["colors"]],
    ["has_evaluation_tags=No", ["settings", "off", "new-checkout_page"]],
    ["key=OFF", ["off"]],
    ["order=key", ["colors", "new-checkout_page", "off", "settings"]],
    ["order=-key", ["settings", "off", "new-checkout_page", "colors"]],
    ["order=created_at", ["new-checkout_page", "colors", "off", "settings"]],
    ["order=active", ["off", "new-checkout_page", "colors", "settings"]],
    ["order=constructor", all],
    ["order=filters;drop", all],
  ] as const) {
    test(query || "everything", async () => {
      using it = await stocked();
      expect(await it.keys(query)).toEqual([...expected]);
    });
  }

  test("last_called_after and last_called_before: by the last evaluation, never evaluated ones with the latter", async () => {
    using it = await stocked();
    const at = new Date(it.server.now.getTime() - dayMs);
    recordFlagCalls(it.server.metadata, 1, [{ key: "off", at }]);
    const time = (ms: number) => encodeURIComponent(new Date(at.getTime() + ms).toISOString());
    expect(await it.keys(`last_called_after=${time(0)}`)).toEqual(["off"]);
    expect(await it.keys(`last_called_after=${time(1)}`)).toEqual([]);
    expect(await it.keys(`last_called_before=${time(0)}`)).not.toContain("off");
    expect((await it.keys(`last_called_before=${time(1)}`)).length).toBe((await it.keys("")).length);
    const { status, body } = await it.server.ask("GET", `${flagsPath}?last_called_after=yesterday`);
    expect([status, body.attr]).toEqual([400, "last_called_after"]);
  });

  test("deleted=true: only deleted flags, also by their former key", async () => {
    using it = await stocked();
    const byKey = "key=off&order=id";
    const id = (await it.server.ask("GET", `${flagsPath}?${byKey}`)).body.results[0].id;
    expect(await it.keys("deleted=true")).toEqual(["gone"]);
    await it.server.ask("PATCH", `${flagsPath}${id}/`, { body: { deleted: true } });
    expect(await it.keys("deleted=true&order=id")).toEqual(["off", "gone"]);
    await it.server.ask("POST", flagsPath, { body: { key: "off" } });
    expect(await it.keys(`deleted=true&${byKey}`)).toEqual([`off:deleted:${id}`]);
    expect(await it.keys(`deleted=false&${byKey}`)).toEqual(["off"]);
    expect(await it.keys(byKey)).toEqual(["off"]);
  });

  const isChoice = /^(?:type|evaluation_runtime)=/;
  for (const query of [
    "deleted=perhaps",
    "active=perhaps",
    "active=2",
    "active=stale",
    "has_evaluation_tags=x",
    "has_evaluation_contexts=x",
    "type=zzz",
    "type=Boolean",
    "evaluation_runtime=both",
    "created_by=abc",
    "created_by_id=junk",
    "created_by_id=2,x",
    "created_by_id=1.5",
    "created_by=[2",
    "tags=[broken",
    'tags=["a",1]',
    'tags={"a":1}',
    "excluded_tags=[1]",
    "excluded_properties=[broken",
  ]) {
    test(`refused: ${query}`, async () => {
      using it = await stocked();
      const [attr] = query.split("=");
      expect(await it.server.ask("GET", `${flagsPath}?${query}`)).toMatchObject({
        status: 400,
        body: {
          type: "validation_error",
          attr,
          code: isChoice.test(query) ? "invalid_choice" : "invalid_input",
        },
      });
      const ids = await it.server.ask("GET", `${flagsPath}matching_ids/?${query}`);
      expect(ids).toMatchObject({ status: 400, body: { attr } });
    });
  }

  test("type=experiment: flags with experiments, or created for one", async () => {
    using it = await stocked();
    const { server, keys } = it;
    expect(await keys("type=experiment")).toEqual([]);
    await server.ask("PATCH", `${flagsPath}2/`, { body: { experiment_set: [7, 9] } });
    await server.ask("POST", flagsPath, { body: { key: "trial", creation_context: "experiments" } });
    expect(await keys("type=experiment")).toEqual(["trial", "colors"]);
    expect((await server.ask("GET", `${flagsPath}2/`)).body.experiment_set).toEqual([7, 9]);
    await server.ask("PATCH", `${flagsPath}2/`, { body: { experiment_set: [] } });
    expect(await keys("type=experiment")).toEqual(["trial"]);
  });

  test("a search over 200 characters is rejected", async () => {
    using it = await stocked();
    expect(await it.server.ask("GET", `${flagsPath}?search=${"x".repeat(201)}`)).toMatchObject({
      status: 400,
      body: { code: "invalid_input", detail: "Search term cannot exceed 200 characters", attr: "search" },
    });
  });

  test("STALE: not called for 30 days, or never called and the same for everyone since then", async () => {
    using it = await stocked();
    const { server, keys } = it;
    expect(await keys("active=STALE")).toEqual([]);
    const later = server.now.getTime() + 31 * dayMs;
    recordFlagCalls(server.metadata, 1, [
      { key: "new-checkout_page", at: new Date(later - 31 * dayMs) },
      { key: "colors", at: new Date(later - dayMs) },
    ]);
    server.now = new Date(later);
    // Switched off flags are never stale, however long no one asks.
    expect(await keys("active=STALE")).toEqual(["settings", "new-checkout_page"]);
  });

  test("flags of another project are not shown", async () => {
    using it = await stocked();
    const other = await it.server.ask("POST", "/api/projects/", { body: { name: "Other" } });
    expect((await it.server.ask("GET", `/api/projects/${other.body.id}/feature_flags/`)).body.count).toBe(0);
    expect((await it.server.ask("GET", `/api/projects/${other.body.id}/feature_flags/1/`)).status).toBe(404);
  });
});
