/** Cohort definitions, projects, organisations, users, keys, persons, groups, dashboards, reports. */

import { describe, expect, test } from "bun:test";
import { InvalidField } from "../../src/lib/errors.ts";
import { addGroup, addPerson } from "../support/management-people.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";

const cohortsPath = "/api/projects/1/cohorts/";
const inCohort = (id: number) => ({ key: "id", type: "cohort", value: id, operator: "in" });
const rules = (...values: object[]) => ({ properties: { type: "OR", values: [{ type: "AND", values }] } });
const bought = { key: "bought", type: "behavioral", value: "performed_event" };
const named = { key: "name", type: "person", operator: "exact", value: "x" };

describe("cohort definitions", () => {
  for (const [name, body, code, attr, detail] of [
    ["no name", { filters: rules(named) }, "required", "name", "This field is required."],
    ["no filters", { name: "a" }, "invalid_input", "filters", undefined],
    ["no properties", { name: "a", filters: {} }, "invalid_input", "filters", undefined],
    [
      "a strange type",
      { name: "a", filters: rules({ type: "flag", key: "x" }) },
      "invalid_input",
      "filters",
      undefined,
    ],
    [
      "an unknown cohort",
      { name: "a", filters: rules(inCohort(9)) },
      "cohort_does_not_exist",
      "filters",
      "Cohort with id 9 does not exist",
    ],
  ] as const) {
    test(`refused: ${name}`, async () => {
      using server = new TestServer();
      const answer = await server.ask("POST", cohortsPath, { body });
      expect(answer).toMatchObject({ status: 400, body: { code, attr, ...(detail ? { detail } : {}) } });
    });
  }

  test("may not come back to themselves", async () => {
    using server = new TestServer();
    for (const filters of [rules(named), rules(inCohort(1)), rules(inCohort(2))]) {
      expect((await server.ask("POST", cohortsPath, { body: { name: "c", filters } })).status).toBe(201);
    }
    for (const [id, to] of [
      [1, 1],
      [1, 3],
      [2, 3],
    ] as const) {
      expect(
        await server.ask("PATCH", `${cohortsPath}${id}/`, { body: { filters: rules(inCohort(to)) } }),
      ).toMatchObject({
        status: 400,
        body: { detail: "Cohorts cannot reference other cohorts in a loop." },
      });
    }
    expect(
      (await server.ask("PATCH", `${cohortsPath}3/`, { body: { filters: rules(inCohort(1)) } })).status,
    ).toBe(200);
  });

  test("stay free of behaviour while an active flag uses them, directly or through another", async () => {
    using server = new TestServer();
    await server.ask("POST", cohortsPath, { body: { name: "inner", filters: rules(named) } });
    await server.ask("POST", cohortsPath, { body: { name: "outer", filters: rules(inCohort(1)) } });
    await server.ask("POST", flagsPath, {
      body: { key: "a", filters: { groups: [{ properties: [inCohort(2)] }] } },
    });
    const change = () => server.ask("PATCH", `${cohortsPath}1/`, { body: { filters: rules(bought) } });
    expect(await change()).toMatchObject({
      status: 400,
      body: {
        code: "behavioral_cohort_found",
        detail: "Behavioral filters cannot be added to cohorts used in feature flags.",
      },
    });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { active: false } });
    expect((await change()).status).toBe(200);
    const refused = await server.ask("POST", flagsPath, {
      body: { key: "b", filters: { groups: [{ properties: [inCohort(1)] }] } },
    });
    expect(refused.body).toMatchObject({
      code: "behavioral_cohort_found",
      detail: "Cohort 'inner' with filters on events cannot be used in feature flags.",
    });
  });

  test("are listed newest first, searched, hidden when behavioural, deleted by PATCH only", async () => {
    using server = new TestServer();
    for (const [name, filters] of [
      ["Staff", rules(named)],
      ["Buyers", rules(bought)],
    ] as const) {
      await server.ask("POST", cohortsPath, { body: { name, filters } });
    }
    const names = async (query = "") =>
      (await server.ask("GET", `${cohortsPath}${query}`)).body.results.map(
        (cohort: { name: string }) => cohort.name,
      );
    expect(await names()).toEqual(["Buyers", "Staff"]);
    expect(await names("?search=STAF")).toEqual(["Staff"]);
    expect(await names("?hide_behavioral_cohorts=true")).toEqual(["Staff"]);
    expect(await server.ask("PUT", `${cohortsPath}1/`, { body: { description: "d" } })).toMatchObject({
      status: 400,
      body: { code: "required", attr: "name" },
    });
    const put = await server.ask("PUT", `${cohortsPath}1/`, { body: { name: "renamed", description: "d" } });
    expect(put).toMatchObject({ status: 200, body: { name: "renamed", description: "d" } });
    expect(await server.ask("DELETE", `${cohortsPath}1/`)).toMatchObject({ status: 405 });
    expect((await server.ask("PATCH", `${cohortsPath}1/`, { body: { deleted: true } })).body.deleted).toBe(
      true,
    );
    expect(await names()).toEqual(["Buyers"]);
  });
});

describe("cohorts of an older generation", () => {
  test("say by groups of properties who belongs", async () => {
    using server = new TestServer();
    const groups = [{ properties: [{ key: "plan", value: "pro" }] }, { properties: [named] }];
    const made = await server.ask("POST", cohortsPath, { body: { name: "Old", groups } });
    expect(made).toMatchObject({ status: 201, body: { groups } });
    expect(made.body.filters).toEqual({
      properties: {
        type: "OR",
        values: [
          { type: "AND", values: [{ type: "person", key: "plan", value: "pro" }] },
          { type: "AND", values: [named] },
        ],
      },
    });
    for (const group of [{ action_id: 5 }, "x", { properties: ["x"] }]) {
      expect(await server.ask("POST", cohortsPath, { body: { name: "Odd", groups: [group] } })).toMatchObject(
        {
          status: 400,
          body: { attr: "filters" },
        },
      );
    }
  });
});

describe("projects", () => {
  test("are listed, read, made, changed; keys are replaced at once", async () => {
    using server = new TestServer();
    const first = server.first.project;
    const list = await server.ask("GET", "/api/projects/");
    expect(list.body).toMatchObject({
      count: 1,
      results: [{ id: 1, api_token: first.api_key, name: "Shop" }],
    });
    expect(JSON.stringify(list.body)).not.toContain(first.secret_api_key);
    expect((await server.ask("GET", "/api/projects/@current/")).body).toMatchObject({
      secret_api_token: first.secret_api_key,
      effective_membership_level: 15,
      group_types: [],
    });
    const made = await server.ask("POST", "/api/projects/", {
      body: { name: "Two", timezone: "Asia/Tokyo" },
    });
    expect(made).toMatchObject({ status: 201, body: { id: 2, name: "Two", timezone: "Asia/Tokyo" } });
    expect(made.body.api_token).toMatch(/^phc_/);
    const changed = await server.ask("PATCH", "/api/projects/1/", {
      body: { name: "Store", timezone: "Europe/Berlin", anonymize_ips: true },
    });
    expect(changed.body).toMatchObject({ name: "Store", timezone: "Europe/Berlin", anonymize_ips: true });
    expect(server.metadata.projects.findByToken(first.api_key)).toMatchObject({ timezone: "Europe/Berlin" });
    const organization = server.first.organization.id;
    for (const path of [
      `/api/organizations/${organization}/projects/1/`,
      "/api/organizations/@current/projects/1",
    ]) {
      expect(await server.ask("GET", path)).toMatchObject({ status: 200, body: { id: 1, name: "Store" } });
      expect((await server.ask("PATCH", path, { body: { name: "Store" } })).status).toBe(200);
    }
    const elsewhere = `/api/organizations/${crypto.randomUUID()}/projects/1/`;
    expect(await server.ask("GET", elsewhere)).toMatchObject({ status: 404, body: { code: "not_found" } });
    const rotated = await server.ask("PATCH", "/api/projects/1/reset_token/");
    expect(server.metadata.projects.findByToken(first.api_key)).toBeUndefined();
    expect(server.metadata.projects.findByToken(rotated.body.api_token)?.id).toBe(1);
    expect(rotated.body).toMatchObject({ api_token_backup: null, api_token_backup_use: null });
    // Which keys count is decided by the real time.
    server.now = new Date();
    const graceful = await server.ask("POST", "/api/projects/1/reset_token/", {
      body: { grace_seconds: 60 },
    });
    expect(graceful.body).toMatchObject({
      api_token_backup: rotated.body.api_token,
      api_token_backup_use: { requests: 0, requests_with_new: 0, last_used_at: null },
    });
    expect(server.metadata.projects.findByToken(rotated.body.api_token)?.id).toBe(1);
    expect((await server.ask("GET", "/api/projects/1/")).body.api_token_backup_use).toMatchObject({
      requests: 1,
    });
    expect(
      await server.ask("POST", "/api/projects/1/reset_token/", { body: { grace_seconds: 90 * 86_400 + 1 } }),
    ).toMatchObject({ status: 400, body: { attr: "grace_seconds" } });
    const ended = await server.ask("POST", "/api/projects/1/delete_token_backup/");
    expect(ended.body).toMatchObject({ api_token: graceful.body.api_token, api_token_backup: null });
    expect(server.metadata.projects.findByToken(rotated.body.api_token)).toBeUndefined();
    for (const days of [400, 0, null]) {
      const kept = await server.ask("PATCH", "/api/projects/1/", { body: { events_retention_days: days } });
      expect(kept.body).toMatchObject({ events_retention_days: days });
    }
    for (const wrong of [-1, 36_501, "soon"]) {
      expect(
        await server.ask("PATCH", "/api/projects/1/", { body: { events_retention_days: wrong } }),
      ).toMatchObject({ status: 400, body: { attr: "events_retention_days" } });
    }
    const secret = await server.ask("POST", "/api/projects/1/rotate_secret_token/");
    const poll = (key: string) => server.ask("GET", "/flags/definitions", { key });
    expect((await poll(first.secret_api_key)).status).toBe(401);
    expect((await poll(secret.body.secret_api_token)).status).toBe(200);
  });
  for (const [body, code, attr] of [
    [{}, "required", "name"],
    [{ name: "" }, "blank", "name"],
    [{ name: "x", timezone: "Mars/Base" }, "invalid_choice", "timezone"],
    [{ name: "x", organization: "0193d1a2-7b1c-7c3e-9f60-000000000000" }, "does_not_exist", "organization"],
  ] as const) {
    test(`refused: ${JSON.stringify(body)}`, async () => {
      using server = new TestServer();
      expect(await server.ask("POST", "/api/projects/", { body })).toMatchObject({
        status: 400,
        body: { code, attr },
      });
    });
  }
});

describe("the user behind a key", () => {
  test("tells who, and moves what @current means", async () => {
    using server = new TestServer();
    const me = await server.ask("GET", "/api/users/@me/");
    expect(me.body).toMatchObject({
      email: "ann@example.com",
      team: { id: 1 },
      organization: { name: "Acme", membership_level: 15 },
      organizations: [{ name: "Acme" }],
    });
    expect((await server.ask("GET", `/api/users/${me.body.uuid}/`)).body).toEqual(me.body);
    expect((await server.ask("GET", "/api/users/0193d1a2-7b1c-7c3e-9f60-000000000000/")).status).toBe(403);
    await server.ask("POST", "/api/projects/", { body: { name: "Two" } });
    await server.ask("PATCH", "/api/users/@me/", { body: { set_current_team: 2 } });
    expect((await server.ask("PATCH", "/api/users/@me/", { body: {} })).status).toBe(200);
    expect((await server.ask("GET", "/api/projects/@current/")).body.id).toBe(2);
    for (const [field, value] of [
      ["set_current_team", 99],
      ["set_current_organization", "0193d1a2-7b1c-7c3e-9f60-000000000000"],
    ] as const) {
      expect(await server.ask("PATCH", "/api/users/@me/", { body: { [field]: value } })).toMatchObject({
        status: 400,
        body: { code: "does_not_exist", attr: field },
      });
    }
  });
  test("can be described", async () => {
    using server = new TestServer();
    const described = {
      first_name: "Anna",
      last_name: "",
      role_at_organization: "founder",
      hedgehog_config: { color: "green" },
    };
    const changed = await server.ask("PATCH", "/api/users/@me/", { body: described });
    expect(changed).toMatchObject({ status: 200, body: described });
    const flag = await server.ask("POST", flagsPath, { body: { key: "a" } });
    expect(flag.body.created_by).toMatchObject(described);
    const cleared = await server.ask("PATCH", "/api/users/@me/", { body: { role_at_organization: null } });
    expect(cleared.body).toMatchObject({ first_name: "Anna", role_at_organization: "" });
    const bare = { role_at_organization: "", hedgehog_config: null };
    expect((await server.ask("PATCH", "/api/users/@me/", { body: bare })).body).toMatchObject({
      role_at_organization: "",
      hedgehog_config: {},
      is_email_verified: false,
    });
    expect(
      await server.ask("PATCH", "/api/users/@me/", { body: { role_at_organization: "boss" } }),
    ).toMatchObject({ status: 400, body: { code: "invalid_choice", attr: "role_at_organization" } });
  });
  test("a key for one project means that project by @current", async () => {
    using server = new TestServer();
    await server.ask("POST", "/api/projects/", { body: { name: "Two" } });
    const key = server.key(["*"], { projectIds: [2] });
    expect((await server.ask("GET", "/api/projects/@current/", { key })).body.id).toBe(2);
  });
});

describe("the list of projects", () => {
  test("is for every key, of the projects that it may use; short without the scope", async () => {
    using server = new TestServer();
    await server.ask("POST", "/api/projects/", { body: { name: "Two" } });
    const list = async (key: string) => (await server.ask("GET", "/api/projects/", { key })).body;
    const short = await list(server.key(["feature_flag:read"]));
    expect(short).toMatchObject({ count: 2, next: null, previous: null });
    expect(short.results[0]).toEqual({
      id: 1,
      uuid: expect.any(String),
      name: "Shop",
      organization: server.first.organization.id,
      api_token: server.first.project.api_key,
    });
    const narrow = await list(server.key(["cohort:read"], { projectIds: [2] }));
    expect(narrow).toMatchObject({ count: 1, results: [{ id: 2, name: "Two" }] });
    expect(narrow.results[0].timezone).toBeUndefined();
    const full = await list(server.key(["project:read"], { projectIds: [1] }));
    expect(full).toMatchObject({ count: 1, results: [{ id: 1, timezone: "UTC", is_demo: false }] });
    expect((await server.ask("GET", "/api/projects/", { key: null })).status).toBe(401);
  });
});

describe("organisations", () => {
  test("are read, renamed and have members", async () => {
    using server = new TestServer();
    const id = server.first.organization.id;
    expect((await server.ask("GET", "/api/organizations/")).body).toMatchObject({
      count: 1,
      results: [{ id, slug: "acme", feature_flags_access_level: 37 }],
    });
    const renamed = await server.ask("PATCH", `/api/organizations/${id}/`, { body: { name: "Acme Ltd" } });
    expect(renamed.body).toMatchObject({ name: "Acme Ltd", feature_flags_access_level: 37 });
    expect((await server.ask("GET", `/api/organizations/${id}/members/`)).body).toMatchObject({
      count: 1,
      results: [{ level: 15, user: { email: "ann@example.com" } }],
    });
    expect(
      await server.ask("PATCH", `/api/organizations/${id}/`, { body: { feature_flags_access_level: 30 } }),
    ).toMatchObject({ status: 400, body: { code: "invalid_choice", attr: "feature_flags_access_level" } });
  });
});

describe("personal keys", () => {
  const PATH = "/api/personal_api_keys/";
  const INPUT = { label: "ci", scopes: ["feature_flag:read"], scoped_teams: [], scoped_organizations: [] };
  test("are shown in clear once, replaced, limited and revoked", async () => {
    using server = new TestServer();
    const made = await server.ask("POST", PATH, { body: INPUT });
    expect(made).toMatchObject({ status: 201, body: { label: "ci", scopes: ["feature_flag:read"] } });
    const key = made.body.value;
    expect(made.body.mask_value).toBe(`phx_...${key.slice(-4)}`);
    expect((await server.ask("GET", flagsPath, { key })).status).toBe(200);
    const one = `${PATH}${made.body.id}/`;
    expect((await server.ask("GET", one)).body.value).toBeNull();
    expect((await server.ask("GET", PATH)).body.map((entry: { value: unknown }) => entry.value)).toEqual([
      null,
      null,
    ]);
    const changed = await server.ask("PATCH", one, { body: { scopes: ["cohort:read"] } });
    expect(changed.body.scopes).toEqual(["cohort:read"]);
    expect((await server.ask("GET", flagsPath, { key })).status).toBe(403);
    const rolled = await server.ask("POST", `${one}roll/`);
    expect((await server.ask("GET", cohortsPath, { key })).status).toBe(401);
    expect((await server.ask("GET", cohortsPath, { key: rolled.body.value })).status).toBe(200);
    expect((await server.ask("DELETE", one)).status).toBe(204);
    expect((await server.ask("GET", cohortsPath, { key: rolled.body.value })).status).toBe(401);
    expect((await server.ask("GET", one)).status).toBe(404);
  });
  test("show themselves, and nothing else, to keys that may not do everything", async () => {
    using server = new TestServer();
    const { value: key, id } = (await server.ask("POST", PATH, { body: INPUT })).body;
    expect((await server.ask("GET", `${PATH}@current/`, { key })).body).toMatchObject({ id, value: null });
    for (const limited of [
      key,
      server.key(["*"], { projectIds: [1] }),
      server.key(["*"], { organizationIds: [server.first.organization.id] }),
    ]) {
      expect((await server.ask("GET", PATH, { key: limited })).status).toBe(403);
    }
    expect((await server.ask("GET", PATH, { key })).body.detail).toBe(
      "This action does not support personal API key access",
    );
  });
  for (const [body, code, attr, detail] of [
    [{ ...INPUT, label: undefined }, "required", "label", "This field is required."],
    [{ ...INPUT, scopes: undefined }, "required", "scopes", "This field is required."],
    [{ ...INPUT, scopes: ["all"] }, "invalid_input", "scopes", "Invalid scope: all"],
    [
      { ...INPUT, scoped_teams: [9] },
      "invalid_input",
      "scoped_teams",
      "You must be a member of all teams that you are scoping the key to.",
    ],
  ] as const) {
    test(`refused: ${detail}`, async () => {
      using server = new TestServer();
      expect(await server.ask("POST", PATH, { body })).toMatchObject({
        status: 400,
        body: { code, attr, detail },
      });
    });
  }
  test("at most ten, and empty scopes mean everything", async () => {
    using server = new TestServer();
    for (let n = 0; n < 9; n++) {
      const made = await server.ask("POST", PATH, { body: { ...INPUT, scopes: [] } });
      expect(made.body.scopes).toEqual(["*"]);
    }
    expect(await server.ask("POST", PATH, { body: INPUT })).toMatchObject({
      status: 400,
      body: {
        detail: "You can only have 10 personal API keys. Remove an existing key before creating a new one.",
        attr: null,
      },
    });
  });
});

describe("the log of everything", () => {
  test("has role access, cohorts and the project beside flags, and names no secret", async () => {
    using server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "a" } });
    await server.ask("POST", cohortsPath, { body: { name: "C", is_static: true } });
    await server.ask("PATCH", "/api/projects/1/", { body: { timezone: "Europe/Berlin" } });
    const secret = await server.ask("POST", "/api/projects/1/rotate_secret_token/");
    const { body } = await server.ask("GET", "/api/projects/1/activity_log/");
    const lines = body.results.map(
      (entry: { scope: string; activity: string; detail: { changes: { field: string }[] } }) =>
        [entry.scope, entry.activity, ...entry.detail.changes.map(({ field }) => field)].join(" "),
    );
    expect(lines).toEqual([
      "Team updated secret_api_token",
      "Team updated timezone",
      "Cohort created",
      "FeatureFlag created",
      "Team created",
    ]);
    expect(JSON.stringify(body)).not.toContain(secret.body.secret_api_token);
    expect(
      (await server.ask("GET", "/api/projects/1/activity_log/?scope=Cohort&item_id=1")).body.total_count,
    ).toBe(1);
  });
  test("tells what changed about roles, organisations and keys, without values of keys", async () => {
    using server = new TestServer();
    const role = await server.ask("POST", "/api/organizations/@current/roles/", { body: { name: "R" } });
    await server.ask("PATCH", `/api/organizations/@current/roles/${role.body.id}/`, { body: { name: "S" } });
    await server.ask("PATCH", "/api/organizations/@current/", { body: { feature_flags_access_level: 21 } });
    await server.ask("PATCH", "/api/organizations/@current/", { body: { feature_flags_access_level: 21 } });
    const key = await server.ask("POST", "/api/personal_api_keys/", {
      body: { label: "ci", scopes: ["*"], scoped_teams: [], scoped_organizations: [] },
    });
    await server.ask("PATCH", `/api/personal_api_keys/${key.body.id}/`, { body: { scopes: ["flag:read"] } });
    await server.ask("PATCH", `/api/personal_api_keys/${key.body.id}/`, {
      body: { scopes: ["cohort:read"] },
    });
    const log = "/api/organizations/@current/activity_log/";
    const { body } = await server.ask("GET", log);
    const lines = body.results.map(
      (entry: { scope: string; activity: string; detail: { changes: { field: string }[] } }) =>
        [entry.scope, entry.activity, ...entry.detail.changes.map(({ field }) => field)].join(" "),
    );
    expect(lines).toEqual([
      "PersonalAPIKey updated scopes",
      "PersonalAPIKey created",
      "Organization updated feature_flags_access_level",
      "Role updated name",
      "Role created",
      "PersonalAPIKey created",
      "Team created",
    ]);
    expect(body.results[0].detail.changes[0]).toMatchObject({ before: ["*"], after: ["cohort:read"] });
    expect(JSON.stringify(body)).not.toContain(key.body.value);
    const roles = await server.ask("GET", `${log}?scope=Role&item_id=${role.body.id}&limit=1`);
    expect(roles.body).toMatchObject({
      total_count: 2,
      next: `http://localhost${log}?scope=Role&item_id=${role.body.id}&limit=1&page=2`,
    });
  });
});

describe("persons and groups", () => {
  test("persons are listed, searched, found by id", async () => {
    using server = new TestServer();
    const kim = addPerson(server, ["kim", "anon"], { email: "kim@x.com" });
    addPerson(server, ["lee"]);
    const list = await server.ask("GET", "/api/projects/1/persons/?limit=1");
    expect(list.body).toMatchObject({ previous: null, results: [{ name: "lee", distinct_ids: ["lee"] }] });
    const rest = await server.ask("GET", list.body.next.replace("http://localhost", ""));
    const expected = {
      id: kim,
      uuid: kim,
      name: "kim@x.com",
      distinct_ids: ["kim", "anon"],
      properties: { email: "kim@x.com" },
      is_identified: false,
      created_at: "2026-03-01T12:00:00.000000Z",
    };
    expect(rest.body).toMatchObject({ next: null, results: [expected] });
    const upper = kim.toUpperCase();
    for (const query of ["distinct_id=anon", "search=KIM@", `uuid=${upper}`, `search=${upper}`]) {
      expect((await server.ask("GET", `/api/projects/1/persons/?${query}`)).body.results).toEqual([expected]);
    }
    const own = crypto.randomUUID();
    addPerson(server, [own]);
    expect((await server.ask("GET", `/api/projects/1/persons/?search=${own}`)).body.results).toHaveLength(1);
    for (const query of ["distinct_id=x", "uuid=x", `uuid=${own}`]) {
      expect((await server.ask("GET", `/api/projects/1/persons/?${query}`)).body.results).toEqual([]);
    }
    expect((await server.ask("GET", `/api/projects/1/persons/${kim}/`)).body).toEqual(expected);
    expect((await server.ask("GET", "/api/projects/1/persons/x/")).status).toBe(404);
  });
  test("groups by type, in pages, and by key", async () => {
    using server = new TestServer();
    addGroup(server, 0, "acme", { plan: "pro" }, "company");
    addGroup(server, 0, "beta");
    expect((await server.ask("GET", "/api/projects/1/groups_types/")).body).toMatchObject([
      { group_type: "company", group_type_index: 0 },
    ]);
    const page = await server.ask("GET", "/api/projects/1/groups/?group_type_index=0&limit=1");
    expect(page.body.results).toMatchObject([{ group_key: "beta" }]);
    const next = await server.ask("GET", page.body.next.replace("http://localhost", ""));
    expect(next.body).toMatchObject({
      next: null,
      results: [{ group_key: "acme", group_properties: { plan: "pro" } }],
    });
    const found = await server.ask("GET", "/api/projects/1/groups/find?group_type_index=0&group_key=acme");
    expect(found.body.group_key).toBe("acme");
    expect(
      (await server.ask("GET", "/api/projects/1/groups/find?group_type_index=0&group_key=x")).status,
    ).toBe(404);
    expect(await server.ask("GET", "/api/projects/1/groups/")).toMatchObject({
      status: 400,
      body: { code: "required", detail: "This query parameter is required.", attr: "group_type_index" },
    });
    expect((await server.ask("GET", "/api/projects/1/")).body.group_types).toHaveLength(1);
  });
});

describe("dashboards and insights", () => {
  test("are made, filled, pinned, shown with results, and deleted", async () => {
    const asked: unknown[] = [];
    const result = [{ label: "x", count: 3, data: [1, 2], days: ["a", "b"] }];
    using server = new TestServer({
      deps: {
        insights: {
          run: async (projectId, query, { timezone, refresh, now }) => {
            asked.push([projectId, query, timezone, refresh]);
            if (query.kind === "broken") throw new Error("no such query");
            if (query.kind === "Unknown") throw new InvalidField("query", "invalid_input", "not known");
            if (refresh === "force_cache") return { results: null, computedAt: null, isCached: false };
            return { results: result, computedAt: now.getTime(), isCached: refresh === "blocking" };
          },
        },
      },
    });
    const board = await server.ask("POST", "/api/projects/1/dashboards/", {
      body: { name: "D", tags: ["T"] },
    });
    expect(board).toMatchObject({ status: 201, body: { id: 1, tags: ["t"], tiles: [] } });
    const query = { kind: "TrendsQuery" };
    for (const kind of ["TrendsQuery", "broken", "Unknown"]) {
      await server.ask("POST", "/api/projects/1/insights/", {
        body: { name: kind, query: { kind }, dashboards: [1] },
      });
    }
    const insight = await server.ask("GET", "/api/projects/1/insights/1/");
    expect(insight.body).toMatchObject({
      result,
      dashboards: [1],
      query,
      last_refresh: "2026-03-01T12:00:00.000000Z",
    });
    expect(asked.splice(0)).toEqual([[1, query, "UTC", "blocking"]]);
    for (const [name, refresh] of [
      ...[
        ["true", "force_blocking"],
        ["force_async", "force_blocking"],
        ["async", "blocking"],
        ["", "blocking"],
      ],
      ...[
        ["false", "force_cache"],
        ["force_cache", "force_cache"],
      ],
    ] as const) {
      const { body } = await server.ask("GET", `/api/projects/1/insights/1/?refresh=${name}`);
      expect(asked.splice(0)).toEqual([[1, query, "UTC", refresh]]);
      expect([body.is_cached, body.result]).toEqual([
        refresh === "blocking",
        refresh === "force_cache" ? null : result,
      ]);
    }
    for (const path of ["insights/1", "dashboards/1"]) {
      expect(await server.ask("GET", `/api/projects/1/${path}/?refresh=toString`)).toMatchObject({
        status: 400,
        body: { attr: "refresh", code: "invalid_choice" },
      });
    }
    expect(asked).toEqual([]);
    expect((await server.ask("GET", `/api/projects/1/insights/${insight.body.short_id}/`)).body.id).toBe(1);
    expect((await server.ask("GET", "/api/projects/1/insights/2/")).status).toBe(500);
    expect(await server.ask("GET", "/api/projects/1/insights/3/")).toMatchObject({
      status: 200,
      body: {
        name: "Unknown",
        result: null,
        last_refresh: null,
        query_status: { complete: true, error: true, error_message: "not known" },
      },
    });
    const shown = await server.ask("GET", "/api/projects/1/dashboards/1/");
    expect(shown.body.tiles.map((tile: { insight: { result: unknown } }) => tile.insight.result)).toEqual([
      result,
      null,
      null,
    ]);
    const moved = await server.ask("PATCH", "/api/projects/1/insights/3/", {
      body: { dashboards: [], tags: ["B", "a "] },
    });
    expect(moved.body).toMatchObject({ dashboards: [], tags: ["a", "b"], name: "Unknown" });
    const back = { dashboards: [1, 1], tags: [] };
    expect((await server.ask("PATCH", "/api/projects/1/insights/3/", { body: back })).body).toMatchObject({
      dashboards: [1],
      tags: [],
    });
    expect(
      await server.ask("PATCH", "/api/projects/1/insights/3/", { body: { dashboards: [9] } }),
    ).toMatchObject({
      status: 400,
      body: { code: "does_not_exist", attr: "dashboards" },
    });
    await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { deleted: true } });
    expect((await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { name: "x" } })).status).toBe(
      404,
    );
    const restored = await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { deleted: false } });
    expect([restored.status, restored.body.deleted, restored.body.name]).toEqual([200, false, "broken"]);
    await server.ask("PATCH", "/api/projects/1/insights/2/", { body: { deleted: true } });
    expect((await server.ask("GET", "/api/projects/1/dashboards/1/")).body.tiles).toHaveLength(2);
    expect((await server.ask("GET", "/api/projects/1/insights/?search=trend")).body.count).toBe(1);
    const tiles = async () =>
      (await server.ask("GET", "/api/projects/1/dashboards/1/")).body.tiles as {
        id: number;
        color: string;
      }[];
    const [one, two] = (await tiles()).map(({ id }) => id);
    const arrange = (places: object[]) =>
      server.ask("PATCH", "/api/projects/1/dashboards/1/", { body: { tiles: places } });
    const arranged = await arrange([{ id: two, color: "blue", layouts: { sm: { x: 0 } } }]);
    expect(arranged.body.tiles).toMatchObject([
      { id: two, order: 0, color: "blue", layouts: { sm: { x: 0 } } },
      { id: one, order: 1 },
    ]);
    expect(await arrange([{ id: one }, { id: two }])).toMatchObject({ status: 200 });
    expect(await tiles()).toMatchObject([{ id: one }, { id: two, color: "blue" }]);
    expect(await arrange([{ id: one }, { id: 99 }])).toMatchObject({ status: 400, body: { attr: "tiles" } });
    expect((await arrange(Array.from({ length: 1_001 }, () => ({ id: one })))).status).toBe(400);
    await server.ask("POST", "/api/projects/1/dashboards/", { body: { name: "E" } });
    await server.ask("PATCH", "/api/projects/1/dashboards/1/", { body: { pinned: true } });
    const list = await server.ask("GET", "/api/projects/1/dashboards/");
    expect(list.body.results.map(({ id }: { id: number }) => id)).toEqual([1, 2]);
    await server.ask("PATCH", "/api/projects/1/dashboards/1/", { body: { deleted: true } });
    expect((await server.ask("GET", "/api/projects/1/dashboards/1/")).status).toBe(404);
    const flag = await server.ask("POST", flagsPath, { body: { key: "a", analytics_dashboards: [2] } });
    expect(flag.body.analytics_dashboards).toEqual([2]);
    const replaced = await server.ask("PATCH", `${flagsPath}1/`, { body: { analytics_dashboards: [] } });
    expect(replaced.body.analytics_dashboards).toEqual([]);
  });
});

describe("reports of ingestion", () => {
  test("warnings, usage and spikes of the project", async () => {
    using server = new TestServer();
    const client = server.deps.people.$client;
    client.run(
      "INSERT INTO usage_day VALUES (1, '2026-03-01', 2, 3, 10, 1, 4), (2, '2026-03-01', 9, 9, 9, 9, 9)",
    );
    client.run(
      "INSERT INTO ingestion_warning VALUES (1, 1, 'odd', 'kim', 5, '{\"x\":1}', 1000000, 2000000, 3), (2, 1, 'odd', 'lee', 5, '{}', 1, 3000001, 1)",
    );
    client.run(
      "INSERT INTO spike VALUES (1, 1, 1000000, NULL, 1000000, 5000, 12.5, '[[\"e\",3]]', '[[\"kim\",2]]')",
    );
    expect((await server.ask("GET", "/api/projects/1/usage/")).body).toEqual({
      results: [
        {
          date: "2026-03-01",
          identified: 2,
          anonymous: 3,
          historical: 10,
          billable: 5,
          duplicates: 1,
          dropped: 4,
        },
      ],
      totals: { identified: 2, anonymous: 3, historical: 10, billable: 5, duplicates: 1, dropped: 4 },
    });
    expect((await server.ask("GET", "/api/projects/1/usage/?date_from=2026-03-02")).body.results).toEqual([]);
    expect((await server.ask("GET", "/api/projects/1/usage/?date_from=x")).body).toMatchObject({
      attr: "date_from",
    });
    expect((await server.ask("GET", "/api/projects/1/ingestion_warnings/")).body.results).toMatchObject([
      {
        type: "odd",
        count: 4,
        last_seen: "1970-01-01T00:00:03.000001Z",
        warnings: [{ count: 1 }, { details: { x: 1 } }],
      },
    ]);
    expect((await server.ask("GET", "/api/projects/1/ingestion_warnings/?type=x")).body.results).toEqual([]);
    expect((await server.ask("GET", "/api/projects/1/spikes/")).body.results).toEqual([
      {
        id: 1,
        started_at: "1970-01-01T00:00:01.000000Z",
        ended_at: null,
        peak_per_minute: 5000,
        usual_per_minute: 12.5,
        events: [{ event: "e", count: 3 }],
        distinct_ids: [{ distinct_id: "kim", count: 2 }],
      },
    ]);
  });
});
