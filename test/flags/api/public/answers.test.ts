/** What the answers of `/flags` and `/decide` hold, by version. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { SubjectReader } from "../../../../src/persons/person-reader.ts";
import { dependsOn, inCohort, person, when } from "../../make.ts";
import { clientConfig, fixedNow, TestEvaluation } from "../support.ts";

let server: TestEvaluation;
beforeAll(() => {
  server = new TestEvaluation();
});
afterAll(() => server[Symbol.dispose]());

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const stamp = {
  errorsWhileComputingFlags: false,
  requestId: expect.stringMatching(uuidForm),
  evaluatedAt: fixedNow.getTime(),
};
/** What answers carry on top of flags. */
const configSent = { ...clientConfig, config: { enable_collect_everything: true } };

describe("shapes by route and version", () => {
  let ids: Record<string, number>;
  beforeAll(() => {
    server = new TestEvaluation();
    const on = server.flag("on", { ...when([]), payloads: { true: '{"a":1}' } });
    const off = server.flag("off", { ...when([], 0), payloads: { true: "1" } });
    const split = server.flag("split", {
      ...when([]),
      multivariate: { variants: [{ key: "test", rollout_percentage: 100 }] },
      payloads: { test: '"x"' },
    });
    server.flag("inactive", when([]), { active: false });
    server.change(server.flag("gone", when([])), { deleted: true });
    ids = { on: on.id, off: off.id, split: split.id };
    server.change(on, { name: "changed" });
  });

  const details = () => ({
    on: {
      key: "on",
      enabled: true,
      variant: null,
      reason: { code: "condition_match", condition_index: 0, description: "Matched condition set 1" },
      metadata: { id: ids.on!, version: 2, description: null, payload: '{"a":1}' },
    },
    off: {
      key: "off",
      enabled: false,
      variant: null,
      reason: { code: "out_of_rollout_bound", condition_index: 0, description: "Out of rollout bound" },
      metadata: { id: ids.off!, version: 1, description: null, payload: null },
    },
    split: {
      key: "split",
      enabled: true,
      variant: "test",
      reason: { code: "condition_match", condition_index: 0, description: "Matched condition set 1" },
      metadata: { id: ids.split!, version: 1, description: null, payload: '"x"' },
    },
  });
  const legacy = {
    featureFlags: { on: true, off: false, split: "test" },
    featureFlagPayloads: { on: '{"a":1}', split: '"x"' },
  };

  const forms: { path: string; flags: () => object; hasConfig: boolean }[] = [
    { path: "/flags/?v=2", flags: () => ({ flags: details() }), hasConfig: false },
    { path: "/flags?v=2", flags: () => ({ flags: details() }), hasConfig: false },
    { path: "/flags/?version=2", flags: () => ({ flags: details() }), hasConfig: false },
    { path: "/flags/?v=3", flags: () => ({ flags: details() }), hasConfig: false },
    { path: "/flags/?v=2&config=true", flags: () => ({ flags: details() }), hasConfig: true },
    { path: "/flags/?v=2&config=1", flags: () => ({ flags: details() }), hasConfig: true },
    { path: "/flags/?v=2&config=false", flags: () => ({ flags: details() }), hasConfig: false },
    { path: "/flags/", flags: () => ({ flags: details() }), hasConfig: true },
    { path: "/flags/?", flags: () => ({ flags: details() }), hasConfig: true },
    { path: "/flags/?v=1", flags: () => legacy, hasConfig: false },
    { path: "/flags/?v=x", flags: () => legacy, hasConfig: false },
    { path: "/flags/?v=1&config=true", flags: () => legacy, hasConfig: true },
    { path: "/decide/", flags: () => ({ featureFlags: ["on", "split"] }), hasConfig: true },
    { path: "/decide/?v=1", flags: () => ({ featureFlags: ["on", "split"] }), hasConfig: true },
    {
      path: "/decide/?v=2",
      flags: () => ({ featureFlags: { on: true, split: "test" } }),
      hasConfig: true,
    },
    { path: "/decide/?v=3", flags: () => legacy, hasConfig: true },
    { path: "/decide?v=3&ip=1&_=1795233509747&ver=1.57.2", flags: () => legacy, hasConfig: true },
    { path: "/decide/?v=4", flags: () => ({ flags: details() }), hasConfig: true },
    { path: "/decide/?v=4&config=false", flags: () => ({ flags: details() }), hasConfig: false },
  ];
  for (const { path, flags, hasConfig } of forms) {
    test(path, async () => {
      const body = await server.ask({ distinct_id: "u1" }, path);
      const config = hasConfig ? { token: server.token, ...configSent } : {};
      const expected = { ...stamp, ...config, ...flags() };
      if ("featureFlags" in body && Array.isArray(body.featureFlags)) body.featureFlags.sort();
      expect(body).toEqual(expected);
      expect(body).not.toHaveProperty("quotaLimited");
    });
  }

  test("a UUID in X-Request-Id is returned, anything else is not", async () => {
    const id = "0192d6a1-7b1e-7c3a-9d4f-aabbccddeeff";
    const body = { distinct_id: "a" };
    expect((await server.ask(body, "/flags/?v=2", { "x-request-id": id })).requestId).toBe(id);
    for (const given of ["", "17", `${id}0`, '"><script>']) {
      const { requestId } = await server.ask(body, "/flags/?v=2", { "x-request-id": given });
      expect(requestId).toMatch(uuidForm);
    }
    const first = await server.ask(body);
    const second = await server.ask(body);
    expect(first.requestId).not.toBe(second.requestId);
  });

  test("a response without flags has an empty object", async () => {
    using empty = new TestEvaluation();
    expect(await empty.ask({ distinct_id: "a" })).toEqual({ ...stamp, flags: {} });
    expect(await empty.ask({ distinct_id: "a" }, "/decide/?v=3&config=false")).toEqual({
      ...stamp,
      featureFlags: {},
      featureFlagPayloads: {},
    });
  });

  test("a change shows in the next response", async () => {
    using own = new TestEvaluation();
    const flag = own.flag("f", when([], 0));
    expect(await own.values({ distinct_id: "a" })).toEqual({ f: false });
    const changed = own.change(flag, { filters: when([], 100) });
    expect(await own.values({ distinct_id: "a" })).toEqual({ f: true });
    own.change(changed, { active: false });
    expect(await own.values({ distinct_id: "a" })).toEqual({});
  });

  test("secret payloads are not shown", async () => {
    using own = new TestEvaluation();
    own.flag(
      "secret",
      { ...when([]), payloads: { true: '"s3cret"' } },
      { isRemoteConfiguration: true, hasEncryptedPayloads: true },
    );
    const text = JSON.stringify(await own.ask({ distinct_id: "a" }));
    expect(text).toContain("encrypted");
    expect(text).not.toContain("s3cret");
  });
});

describe("flags in the response", () => {
  let own: TestEvaluation;
  beforeAll(() => {
    own = new TestEvaluation();
    own.flag("every", when([]));
    own.flag("browser", when([]), { evaluationRuntime: "client" });
    own.flag("backend", when([]), { evaluationRuntime: "server" });
    own.flag("survey-targeting-x", when([]));
    own.flag("site", when([]), { tags: ["app"], evaluationContexts: ["site"] });
    const base = own.flag("base", when([]));
    own.flag("above", when([dependsOn(String(base.id))]));
  });
  afterAll(() => own[Symbol.dispose]());

  const keysFor = async (body: object, headers: Record<string, string>, query = "") => {
    const response = await own.send(`/flags/?v=2${query}`, {
      body: JSON.stringify({ token: own.token, distinct_id: "a", ...body }),
      headers,
    });
    const { flags } = (await response.json()) as { flags: Record<string, unknown> };
    return Object.keys(flags).sort();
  };
  const ALWAYS = ["above", "base", "every", "site", "survey-targeting-x"];
  const runtimes: { name: string; headers?: Record<string, string>; body?: object; adds: string[] }[] = [
    { name: "a browser", headers: { "user-agent": "Mozilla/5.0 (X11) Chrome/156.0" }, adds: ["browser"] },
    ...[
      "posthog-python/7.5",
      "posthog-node/5.7",
      "posthog-go/1.2",
      "posthog-ruby/3.2",
      "posthog-php/4.1",
    ].map((agent) => ({ name: agent, headers: { "user-agent": agent }, adds: ["backend"] })),
    { name: "curl", headers: { "user-agent": "curl/8.9" }, adds: ["backend"] },
    { name: "posthog-ios", headers: { "user-agent": "posthog-ios/3.6" }, adds: ["browser"] },
    { name: "posthog-android", headers: { "user-agent": "posthog-android/3.6" }, adds: ["browser"] },
    { name: "a page's origin", headers: { origin: "https://a.example" }, adds: ["browser"] },
    { name: "a page's address", headers: { referer: "https://a.example/" }, adds: ["browser"] },
    { name: "Sec-Fetch-Mode", headers: { "sec-fetch-mode": "cors" }, adds: ["browser"] },
    { name: "an unknown client", headers: { "user-agent": "okhttp/4" }, adds: [] },
    { name: "nothing", adds: [] },
    {
      name: "what the body says before what the headers say",
      headers: { "user-agent": "Mozilla/5.0" },
      body: { evaluation_runtime: "server" },
      adds: ["backend"],
    },
    { name: "all", body: { evaluation_runtime: "all" }, adds: ["backend", "browser"] },
    {
      name: "a word that is no runtime",
      headers: { "user-agent": "curl/8" },
      body: { evaluation_runtime: "edge" },
      adds: ["backend"],
    },
  ];
  for (const { name, headers = {}, body = {}, adds } of runtimes) {
    test(`runtime from ${name}`, async () => {
      expect(await keysFor(body, headers)).toEqual([...ALWAYS, ...adds].sort());
    });
  }

  test("contexts: flags without any, and flags with one in common", async () => {
    for (const name of ["evaluation_contexts", "evaluation_environments"]) {
      expect(await keysFor({ [name]: ["other"] }, {})).toEqual([
        "above",
        "base",
        "every",
        "survey-targeting-x",
      ]);
      expect(await keysFor({ [name]: ["other", "site"] }, {})).toEqual(ALWAYS);
      expect(await keysFor({ [name]: [" SITE"] }, {})).toEqual(ALWAYS);
    }
  });

  test("the survey switch", async () => {
    const query = "&only_evaluate_survey_feature_flags=true";
    expect(await keysFor({}, {}, query)).toEqual(["survey-targeting-x"]);
    expect(await keysFor({}, {}, "&only_evaluate_survey_feature_flags=false")).toEqual(ALWAYS);
  });

  test("a requested flag includes its dependencies", async () => {
    expect(await keysFor({ flag_keys: ["above"] }, {})).toEqual(["above", "base"]);
    expect(await own.values({ distinct_id: "a", flag_keys: ["above"] })).toEqual({ above: true, base: true });
  });
});

describe("failures of single flags", () => {
  test("a cohort that does not exist: failed, and the response is marked as partial", async () => {
    using own = new TestEvaluation();
    const cohortId = own.cohort({ name: "c", filters: { properties: { type: "AND", values: [] } } });
    own.flag("plain", when([]));
    own.flag("by-cohort", when([inCohort(cohortId)]));
    own.metadata.db.$client.run("UPDATE cohort SET deleted = 1");
    own.metadata.db.$client.run("UPDATE revision SET value = value + 1");
    own.metadata.changes.expect();
    const body = await own.ask({ distinct_id: "a" });
    expect(body.errorsWhileComputingFlags).toBe(true);
    expect(body.flags["by-cohort"]).toMatchObject({
      enabled: false,
      failed: true,
      reason: { code: "dependency_not_found_cohort", condition_index: null },
    });
    expect(body.flags.plain).not.toHaveProperty("failed");
    const legacy = await own.ask({ distinct_id: "a" }, "/decide/?v=3&config=false");
    expect(legacy).toMatchObject({ errorsWhileComputingFlags: true, featureFlags: { plain: true } });
    expect(legacy.featureFlags).not.toHaveProperty("by-cohort");
  });

  test("an unreadable store: flags that need it fail, the others are evaluated", async () => {
    const broken = {
      $client: {
        query: () => {
          throw new Error("disk I/O error");
        },
      },
    };
    // A store that answers later fails later.
    const later = (persons: SubjectReader): SubjectReader => ({
      hasHashKeyOverrides: async () => persons.hasHashKeyOverrides(),
      subject: async (query) => await persons.subject(query),
    });
    for (const reading of [undefined, later]) {
      using own = new TestEvaluation({ people: broken, reading });
      own.flag("plain", when([]));
      own.flag("plan", when([person("plan", "exact", "pro")]));
      own.flag("not-plan", when([person("plan", "is_not", "pro")]));
      const body = await own.ask({ distinct_id: "a" });
      expect(body.errorsWhileComputingFlags).toBe(true);
      expect(body.flags.plain).toMatchObject({ enabled: true });
      for (const key of ["plan", "not-plan"]) {
        expect(body.flags[key]).toMatchObject({
          enabled: false,
          failed: true,
          reason: { code: "database_error", condition_index: null },
        });
      }
      expect(own.errors).toHaveLength(1);
    }
  });
});
