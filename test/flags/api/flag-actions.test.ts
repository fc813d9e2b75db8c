import { describe, expect, test } from "bun:test";
import { addGroup, addPerson } from "../../support/management-people.ts";
import { firstFlagPath, flagsPath, TestServer, withFlags } from "../../support/management-server.ts";
import { expectWithin } from "../../support/times.ts";

const on = { groups: [{ properties: [], rollout_percentage: 100 }] };

describe("activity", () => {
  test("a note gives the reason; it is no field of the flag", async () => {
    using server = await withFlags({ key: "a" });
    const patch = (body: object) => server.ask("PATCH", `${flagsPath}1/`, { body });
    const { status, body } = await patch({ active: false, note: "Requested by support." });
    expect([status, Object.hasOwn(body, "note")]).toEqual([200, false]);
    await patch({ active: true, note: "" });
    const { results } = (await server.ask("GET", `${flagsPath}1/activity/`)).body;
    expect(results.map((entry: { detail: { note?: string } }) => entry.detail.note)).toEqual([
      undefined,
      "Requested by support.",
      undefined,
    ]);
    expect(await patch({ note: "x".repeat(2_001) })).toMatchObject({ status: 400, body: { attr: "note" } });
    expect(await patch({ note: {} })).toMatchObject({ status: 400, body: { attr: "note" } });
  });

  test("a page that would fill the memory is rejected; a shorter one is not", async () => {
    using server = await withFlags({ key: "a" });
    const { $client } = server.metadata.db;
    const copies = Array.from({ length: 70 }, () => crypto.randomUUID());
    const others = "scope, activity, item_id, project_id, organization_id, user_id, is_system, created_at";
    const detail = "json_set(detail, '$.name', hex(zeroblob(524288)))";
    for (const id of copies)
      $client.run(
        `INSERT INTO activity (id, ${others}, detail)
        SELECT ?, ${others}, ${detail} FROM activity WHERE scope = 'FeatureFlag' LIMIT 1`,
        [id],
      );
    for (const path of [
      `${flagsPath}activity/`,
      `${flagsPath}1/activity/`,
      "/api/projects/1/activity_log/",
    ]) {
      expect(await server.ask("GET", `${path}?limit=100000000`)).toMatchObject({
        status: 400,
        body: { code: "max_value", attr: "limit" },
      });
      expect((await server.ask("GET", `${path}?limit=11`)).body.results).toHaveLength(11);
    }
  });

  test("lists changes and authors, newest first, in pages", async () => {
    using server = await withFlags({ key: "a" }, { key: "b" });
    for (const body of [
      { name: "x" },
      { name: "" },
      { active: false },
      { deleted: true },
      { deleted: false },
      {},
    ]) {
      server.now = new Date(server.now.getTime() + 1_000);
      await server.ask("PATCH", `${flagsPath}1/`, { body });
    }
    const { body } = await server.ask("GET", `${flagsPath}1/activity/?limit=4`);
    expect(body.total_count).toBe(7);
    expect(body.next).toBe(`http://localhost${flagsPath}1/activity/?limit=4&page=2`);
    const entries = body.results.map(
      (entry: { activity: string; detail: { changes: { field: string }[] } }) => [
        entry.activity,
        ...entry.detail.changes.map((change) => change.field),
      ],
    );
    expect(entries).toEqual([
      ["updated", "version"],
      ["restored", "deleted", "version"],
      ["deleted", "deleted", "version"],
      ["updated", "active", "version"],
    ]);
    const second = await server.ask("GET", `${flagsPath}1/activity/?limit=4&page=2`);
    expect(second.body).toMatchObject({
      next: null,
      previous: `http://localhost${flagsPath}1/activity/?limit=4&page=1`,
      results: [
        { detail: { changes: [{ action: "deleted", field: "name", before: "x", after: null }, {}] } },
        { detail: { changes: [{ action: "created", field: "name", before: null, after: "x" }, {}] } },
        {
          user: { first_name: "ann", email: "ann@example.com" },
          activity: "created",
          scope: "FeatureFlag",
          item_id: "1",
          detail: { changes: [], trigger: null, type: null, name: "a", short_id: null },
        },
      ],
    });
    expect((await server.ask("GET", `${flagsPath}activity/`)).body.total_count).toBe(8);
    expect((await server.ask("GET", `${flagsPath}1/activity/?page=99`)).body).toMatchObject({
      results: [],
      total_count: 7,
    });
  });
  for (const [query, code, attr] of [
    ["limit=0", "min_value", "limit"],
    ["limit=x", "invalid_input", "limit"],
    ["page=-1", "min_value", "page"],
  ] as const) {
    test(`refuses ${query}`, async () => {
      using server = await withFlags({ key: "a" });
      expect(await server.ask("GET", `${flagsPath}1/activity/?${query}`)).toMatchObject({
        status: 400,
        body: { code, attr },
      });
    });
  }
  test("returns 404 for unknown ids", async () => {
    using server = new TestServer();
    expect((await server.ask("GET", `${flagsPath}9/activity/`)).status).toBe(404);
  });
});

describe("evaluation for one person", () => {
  const STAFF = {
    groups: [{ properties: [{ key: "email", type: "person", operator: "icontains", value: "@staff.com" }] }],
  };
  const COMPANY = {
    aggregation_group_type_index: 0,
    groups: [
      { properties: [{ key: "plan", type: "group", operator: "exact", value: "pro", group_type_index: 0 }] },
    ],
  };
  test("reasons", async () => {
    using server = await withFlags({ key: "staff", filters: STAFF }, { key: "off", active: false });
    addGroup(server, 0, "acme", { plan: "pro" }, "company");
    await server.ask("POST", flagsPath, { body: { key: "firm", filters: COMPANY } });
    addPerson(server, ["kim"], { email: "kim@staff.com" });
    const ask = async (query: string) =>
      (await server.ask("GET", `${flagsPath}evaluation_reasons/?${query}`)).body;
    expect(await ask("distinct_id=kim")).toMatchObject({
      staff: { value: true, evaluation: { reason: "condition_match", condition_index: 0 } },
      off: { value: false, evaluation: { reason: "disabled", condition_index: null } },
      firm: { value: false, evaluation: { reason: "no_group_type" } },
    });
    expect((await ask("distinct_id=lee")).staff).toMatchObject({
      value: false,
      evaluation: { reason: "no_condition_match" },
    });
    const groups = encodeURIComponent('{"company":"acme"}');
    expect((await ask(`distinct_id=lee&groups=${groups}`)).firm.value).toBe(true);
    expect(Object.keys(await ask('distinct_id=kim&flag_keys=["staff"]'))).toEqual(["staff"]);
  });
  for (const [query, code, attr, detail] of [
    ["distinct_id=a&groups={", "invalid_input", "groups", "Invalid JSON in groups parameter"],
    ["distinct_id=a&groups=[]", "invalid_input", "groups", "groups must be a JSON object"],
  ] as const) {
    test(`rejects "${query}"`, async () => {
      using server = new TestServer();
      expect(await server.ask("GET", `${flagsPath}evaluation_reasons/?${query}`)).toMatchObject({
        status: 400,
        body: { code, attr, detail },
      });
    });
  }
  test("without a distinct id they are the caller's own", async () => {
    using server = await withFlags({ key: "staff", filters: STAFF });
    const me = (await server.ask("GET", "/api/users/@me/")).body.distinct_id as string;
    addPerson(server, [me], { email: "ann@staff.com" });
    for (const query of ["", "?distinct_id=", `?distinct_id=${me}`]) {
      const { status, body } = await server.ask("GET", `${flagsPath}evaluation_reasons/${query}`);
      expect([status, body.staff.value]).toEqual([200, true]);
    }
    expect((await server.ask("GET", `${flagsPath}evaluation_reasons/?distinct_id=x`)).body.staff.value).toBe(
      false,
    );
  });
  test("my flags are a bare list, newest first", async () => {
    using server = await withFlags({ key: "on", filters: on }, { key: "off", active: false });
    const { body } = await server.ask("GET", `${flagsPath}my_flags/`);
    expect(body).toMatchObject([
      { feature_flag: { key: "off", team_id: 1 }, value: false },
      { feature_flag: { key: "on" }, value: true },
    ]);
  });
});

describe("local evaluation", () => {
  test("the same body at every address, for both kinds of key", async () => {
    using server = await withFlags({ key: "b", filters: on }, { key: "a", active: false });
    const token = server.first.project.api_key;
    const project = { "x-posthog-project-api-key": token };
    const first = (await server.ask("GET", `${flagsPath}local_evaluation`)).body;
    expect(first.flags.map((flag: { key: string }) => flag.key)).toEqual(["a", "b"]);
    expect(first).toMatchObject({ group_type_mapping: {}, cohorts: {} });
    for (const key of [server.first.personal_api_key, server.first.project.secret_api_key]) {
      for (const [path, headers] of [
        [`/flags/definitions?token=${token}&send_cohorts`, {}],
        ["/flags/definitions/?send_cohorts", project],
        [`/api/feature_flag/local_evaluation/?token=${token}&send_cohorts=true`, {}],
        [`/api/feature_flag/local_evaluation?token=${token}`, {}],
        [`${flagsPath}local_evaluation/?send_cohorts=false`, {}],
      ] as const) {
        const answer = await server.ask("GET", path, { key, headers });
        expect([path, answer.status, answer.body]).toEqual([path, 200, first]);
      }
    }
    expect((await server.ask("GET", "/flags/definitions", { key: token })).status).toBe(401);
    const other = await server.ask("POST", "/api/projects/", { body: { name: "Other" } });
    const foreign = await server.ask("GET", `/flags/definitions?token=${other.body.api_token}`, {
      key: server.first.project.secret_api_key,
    });
    expect(foreign.status).toBe(403);
  });

  test("returns 304 until something changes", async () => {
    using server = await withFlags({ key: "a", filters: on });
    const path = `${flagsPath}local_evaluation/`;
    const first = await server.ask("GET", path);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^W\/"[0-9a-f]+"$/);
    expect(first.headers.get("cache-control")).toBe("private, must-revalidate");
    const again = (tag: string) => server.ask("GET", path, { headers: { "if-none-match": tag } });
    for (const tag of [etag, etag.replace("W/", "")]) {
      const answer = await again(tag);
      expect(answer).toMatchObject({ status: 304, body: "" });
      expect(answer.headers.get("etag")).toBe(etag);
    }
    expect((await again('W/"other"')).status).toBe(200);
    await server.ask("PATCH", `${flagsPath}1/`, { body: { active: false } });
    const changed = await again(etag);
    expect(changed).toMatchObject({ status: 200, body: { flags: [{ key: "a", active: false }] } });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { deleted: true } });
    expect((await again(changed.headers.get("etag") ?? "")).body.flags).toEqual([]);
  });

  test("has the cohorts of the flags on request", async () => {
    using server = new TestServer();
    const values = [{ key: "email", type: "person", operator: "icontains", value: "@x" }];
    const filters = { properties: { type: "OR", values: [{ type: "AND", values }] } };
    await server.ask("POST", "/api/projects/1/cohorts/", { body: { name: "X", filters } });
    const inCohort = { groups: [{ properties: [{ key: "id", type: "cohort", value: 1, operator: "in" }] }] };
    await server.ask("POST", flagsPath, { body: { key: "a", filters: inCohort } });
    const ask = async (query: string) =>
      (await server.ask("GET", `${flagsPath}local_evaluation/${query}`)).body;
    expect(Object.keys((await ask("?send_cohorts")).cohorts)).toEqual(["1"]);
    expect(await ask("")).toMatchObject({
      cohorts: {},
      flags: [{ filters: { groups: [{ properties: [{ key: "email", type: "person" }] }] } }],
    });
  });
});

describe("remote configuration", () => {
  const CONFIG = { is_remote_configuration: true, filters: { payloads: { true: { color: "red" } } } };
  test("the payload as a JSON string, by key or id, for both kinds of key", async () => {
    using server = await withFlags({ key: "settings", ...CONFIG }, { key: "plain" });
    for (const key of [server.first.personal_api_key, server.first.project.secret_api_key]) {
      for (const name of ["settings", "1"]) {
        const path = `/api/projects/@current/feature_flags/${name}/remote_config?token=${server.first.project.api_key}`;
        const answer = await server.ask("GET", path, { key });
        expect([name, answer.status, answer.body]).toEqual([name, 200, '{"color":"red"}']);
        expect(answer.headers.get("content-type")).toContain("application/json");
      }
    }
    for (const name of ["plain", "2", "unknown", "99"]) {
      expect(await server.ask("GET", `${flagsPath}${name}/remote_config/`)).toMatchObject({
        status: 404,
        body: "",
      });
    }
  });
});

describe("the tag of a remote configuration", () => {
  test("changes with the payload; with it, an unchanged one is 304", async () => {
    using server = await withFlags({
      key: "settings",
      is_remote_configuration: true,
      filters: { payloads: { true: { color: "red" } } },
    });
    const read = (tag?: string, name = "settings") =>
      server.ask("GET", `${flagsPath}${name}/remote_config/`, {
        headers: tag === undefined ? {} : { "If-None-Match": tag },
      });
    const first = await read();
    const tag = first.headers.get("etag")!;
    expect([first.status, tag]).toEqual([200, expect.stringMatching(/^W\/"[0-9a-f]{32}"$/)]);
    for (const same of [tag, tag.slice(2), "*", `"x", ${tag}`]) {
      const unchanged = await read(same, "1");
      expect([unchanged.status, unchanged.body]).toEqual([304, ""]);
      expect(unchanged.headers.get("etag")).toBe(tag);
    }
    expect((await read('"other"')).status).toBe(200);
    await server.ask("PATCH", firstFlagPath, { body: { name: "Renamed" } });
    expect((await read(tag)).status).toBe(304);
    await server.ask("PATCH", firstFlagPath, { body: { filters: { payloads: { true: '"blue"' } } } });
    const changed = await read(tag);
    expect([changed.status, changed.body]).toEqual([200, '"blue"']);
    expect(changed.headers.get("etag")).not.toBe(tag);
    await server.ask("PATCH", firstFlagPath, { body: { filters: { payloads: null } } });
    const none = await read(tag);
    expect([none.status, none.body]).toEqual([200, null]);
    expect((await read(none.headers.get("etag")!)).status).toBe(304);
    expect((await read("*", "unknown")).status).toBe(404);
  });
});

describe("many together", () => {
  test("keys by id", async () => {
    using server = await withFlags({ key: "a" }, { key: "b" });
    const ask = (body: unknown) => server.ask("POST", `${flagsPath}bulk_keys/`, { body });
    expect((await ask({ ids: [1, "2", 99] })).body).toEqual({ keys: { "1": "a", "2": "b" } });
    expect((await ask({ ids: [1, "x"] })).body).toMatchObject({
      keys: { "1": "a" },
      warning: expect.any(String),
    });
    for (const ids of ["x", ["x"], 5]) {
      expect(await ask({ ids })).toMatchObject({ status: 400, body: { error: "Invalid flag IDs provided" } });
    }
  });
  test("keys of the maximum number of ids, while others continue", async () => {
    using server = await withFlags(...Array.from({ length: 1_000 }, (_, n) => ({ key: `f${n}` })));
    const ids = Array.from({ length: 10_000 }, (_, n) => (n % 1_000) + 1);
    await expectWithin(100, async () => {
      const { body } = await server.ask("POST", `${flagsPath}bulk_keys/`, { body: { ids } });
      expect(Object.keys(body.keys)).toHaveLength(1_000);
    });
  });
  test("ids of flags that a list would show", async () => {
    using server = await withFlags({ key: "a" }, { key: "b", active: false }, { key: "ab" });
    expect((await server.ask("GET", `${flagsPath}matching_ids/?search=a`)).body).toEqual({
      ids: [3, 1],
      total: 2,
    });
  });
});
