/** Projects, organizations and the user behind a key, over the API. */

import { describe, expect, test } from "bun:test";
import { insertOrganization } from "../../src/accounts/organizations.ts";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { createProject } from "../../src/accounts/projects.ts";
import { createUser } from "../../src/accounts/users.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";

describe("projects", () => {
  test("saved views of the flag list: names are trimmed, unique and not blank; at most 50", async () => {
    using server = new TestServer();
    const put = (flag_views: object) =>
      server.ask("PATCH", "/api/projects/1/", { body: { flag_views } as object });
    const view = (name: string, query = "state=on") => ({ name, query });
    expect((await put([view(" Live "), view("All", "")])).body.flag_views).toEqual([
      view("Live"),
      view("All", ""),
    ]);
    const many = Array.from({ length: 51 }, (_, index) => view(`v${index}`));
    expect((await put(many.slice(1))).status).toBe(200);
    for (const [wrong, said] of [
      [many, "at most 50 saved views"],
      [[view(" ")], "blank"],
      [[view("a"), view("a ")], 'Two saved views have the name "a"'],
      [[view("a", "x".repeat(1_001))], "1000"],
    ] as const) {
      const { status, body } = await put(wrong);
      expect([status, body.attr.split("__")[0]]).toEqual([400, "flag_views"]);
      expect(body.detail).toContain(said);
    }
    expect((await server.ask("GET", "/api/projects/1/")).body.flag_views.length).toBe(50);
  });

  test("are listed, read, created and changed; keys are replaced immediately", async () => {
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
    const created = await server.ask("POST", "/api/projects/", {
      body: { name: "Two", timezone: "Asia/Tokyo" },
    });
    expect(created).toMatchObject({ status: 201, body: { id: 2, name: "Two", timezone: "Asia/Tokyo" } });
    expect(created.body.api_token).toMatch(/^phc_/);
    const changed = await server.ask("PATCH", "/api/projects/1/", {
      body: { name: "Store", timezone: "Europe/Berlin", anonymize_ips: true },
    });
    expect(changed.body).toMatchObject({ name: "Store", timezone: "Europe/Berlin", anonymize_ips: true });
    expect(server.metadata.projects.findByToken(first.api_key)).toMatchObject({ timezone: "Europe/Berlin" });
    for (const [sent, retained] of [
      ["europe/BERLIN", "Europe/Berlin"],
      ["utc", "UTC"],
      ["us/pacific", "US/Pacific"],
    ]) {
      const { body } = await server.ask("PATCH", "/api/projects/1/", { body: { timezone: sent } });
      expect(body.timezone).toBe(retained);
    }
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
      const retained = await server.ask("PATCH", "/api/projects/1/", {
        body: { events_retention_days: days },
      });
      expect(retained.body).toMatchObject({ events_retention_days: days });
    }
    for (const wrong of [-1, 36_501, "soon"]) {
      expect(
        await server.ask("PATCH", "/api/projects/1/", { body: { events_retention_days: wrong } }),
      ).toMatchObject({ status: 400, body: { attr: "events_retention_days" } });
    }
    expect(changed.body).toMatchObject({ week_start_day: null });
    for (const day of [0, 1, null, 0]) {
      const saved = await server.ask("PATCH", "/api/projects/1/", { body: { week_start_day: day } });
      expect(saved).toMatchObject({ status: 200, body: { week_start_day: day } });
    }
    for (const wrong of [2, -1, 0.5, "2", "sunday", true, [], {}]) {
      expect(
        await server.ask("PATCH", "/api/projects/1/", { body: { week_start_day: wrong, name: "Not" } }),
      ).toMatchObject({ status: 400, body: { attr: "week_start_day" } });
    }
    expect((await server.ask("GET", "/api/projects/1/")).body).toMatchObject({
      name: "Store",
      week_start_day: 0,
    });
    const sunday = await server.ask("POST", "/api/projects/", { body: { name: "Sun", week_start_day: 0 } });
    expect(sunday).toMatchObject({ status: 201, body: { week_start_day: 0 } });
    const secret = await server.ask("POST", "/api/projects/1/rotate_secret_token/");
    const poll = (key: string) => server.ask("GET", "/flags/definitions", { key });
    expect((await poll(first.secret_api_key)).status).toBe(401);
    expect((await poll(secret.body.secret_api_token)).status).toBe(200);
    expect(secret.body).toMatchObject({ secret_api_token_backup: null, secret_api_token_backup_use: null });
    const next = await server.ask("POST", "/api/projects/1/rotate_secret_token/", {
      body: { grace_seconds: 60 },
    });
    expect(next.body).toMatchObject({
      secret_api_token_backup: secret.body.secret_api_token,
      secret_api_token_backup_use: { requests: 0, requests_with_new: 0 },
    });
    for (const { body } of [secret, next]) expect((await poll(body.secret_api_token)).status).toBe(200);
    expect((await server.ask("GET", "/api/projects/1/")).body.secret_api_token_backup_use).toMatchObject({
      requests: 1,
      requests_with_new: 1,
    });
    const again = { body: { grace_seconds: 60 } };
    expect(await server.ask("POST", "/api/projects/1/rotate_secret_token/", again)).toMatchObject({
      status: 400,
      body: { attr: "grace_seconds", code: "two_keys_count" },
    });
    await server.ask("POST", "/api/projects/1/delete_secret_token_backup/");
    expect((await poll(secret.body.secret_api_token)).status).toBe(401);
    expect((await poll(next.body.secret_api_token)).status).toBe(200);
  });
  for (const [body, code, attr] of [
    [{}, "required", "name"],
    [{ name: "" }, "blank", "name"],
    [{ name: "x", timezone: "Mars/Base" }, "invalid_choice", "timezone"],
    [{ name: "x", timezone: "+02:00" }, "invalid_choice", "timezone"],
    [{ name: "x", timezone: "-0330" }, "invalid_choice", "timezone"],
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

test("a key that is limited to an organization makes projects in no other", async () => {
  using server = new TestServer();
  const other = server.metadata.change((t) => insertOrganization(t, "Other", server.now));
  createUser(server.metadata, { email: "eve@example.com", organizationId: other.id, level: "owner" });
  const eve = createKey(server.metadata, { userEmail: "eve@example.com", label: "x", scopes: ["*"] }).value;
  const members = `/api/organizations/${other.id}/members/`;
  const body = { email: "ann@example.com", level: 15 };
  expect((await server.ask("POST", members, { key: eve, body })).status).toBe(201);
  const key = server.key(["project:write"], { organizationIds: [other.id] });
  const make = (fields: object) =>
    server.ask("POST", "/api/projects/", { key, body: { name: "Made", ...fields } });
  expect(await make({ organization: server.first.organization.id })).toMatchObject({
    status: 403,
    body: { code: "permission_denied", detail: expect.stringContaining("requested organization") },
  });
  expect((await make({ organization: other.id })).body.organization).toBe(other.id);
  // Its user works in the first one.
  expect((await make({})).status).toBe(403);
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

describe("the projects of an organization", () => {
  const path = "/api/organizations/@current/projects/";

  test("are listed by page, limited to those of the key", async () => {
    using server = new TestServer();
    for (const name of ["Two", "Three"]) await server.ask("POST", path, { body: { name } });
    const { id } = server.first.organization;
    const { status, body } = await server.ask("GET", `/api/organizations/${id}/projects/?limit=2`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ count: 3, previous: null, results: [{ id: 1 }, { id: 2, name: "Two" }] });
    expect(body.next).toContain(`/api/organizations/${id}/projects/?limit=2&offset=2`);
    expect((await server.ask("GET", path, { key: server.key(["project:read"]) })).body.count).toBe(3);
    expect((await server.ask("GET", path, { key: server.key(["insight:read"]) })).status).toBe(403);
    expect((await server.ask("GET", path, { key: server.key(["*"], { projectIds: [2] }) })).status).toBe(403);
    const elsewhere = `/api/organizations/${crypto.randomUUID()}/projects/`;
    expect((await server.ask("GET", elsewhere)).status).toBe(404);
  });

  test("DELETE archives one: 204, found nowhere, and opened again by PATCH", async () => {
    using server = new TestServer();
    const organization = server.first.organization.id;
    const key = server.key(["project:write"]);
    for (const address of [
      (id: number) => `/api/projects/${id}/`,
      (id: number) => `/api/organizations/${organization}/projects/${id}/`,
      (id: number) => `/api/environments/${id}/`,
    ]) {
      const { body: created } = await server.ask("POST", path, { body: { name: "Short-lived" } });
      const answer = await server.ask("DELETE", address(created.id), { key });
      expect([answer.status, answer.body]).toEqual([204, ""]);
      expect((await server.ask("GET", address(created.id))).status).toBe(404);
      expect((await server.ask("DELETE", address(created.id), { key })).status).toBe(404);
      expect(server.metadata.projects.findByToken(created.api_token)).toBeUndefined();
      const archived = (await server.ask("GET", `${path}?archived=true`)).body.results;
      expect(archived.map(({ id }: { id: number }) => id)).toContain(created.id);
      const opened = await server.ask("PATCH", `/api/projects/${created.id}/`, { body: { archived: false } });
      expect(opened).toMatchObject({ status: 200, body: { id: created.id, archived_at: null } });
    }
  });

  test("DELETE is for owners with project:write, and never of the last open project", async () => {
    using server = new TestServer();
    const last = await server.ask("DELETE", "/api/projects/1/");
    expect(last).toMatchObject({ status: 400, body: { code: "last_project" } });
    const { body: created } = await server.ask("POST", path, { body: { name: "Two" } });
    const address = `/api/projects/${created.id}/`;
    for (const level of ["admin", "member"] as const) {
      const email = `${level}@example.com`;
      createUser(server.metadata, { email, organizationId: server.first.organization.id, level });
      const { value } = createKey(
        server.metadata,
        { userEmail: email, label: "x", scopes: ["*"] },
        { now: server.now },
      );
      expect([level, (await server.ask("DELETE", address, { key: value })).status]).toEqual([level, 403]);
    }
    const { status } = await server.ask("DELETE", address, { key: server.key(["project:read"]) });
    expect(status).toBe(403);
    expect((await server.ask("GET", address)).status).toBe(200);
    expect((await server.ask("DELETE", address)).status).toBe(204);
  });
});

describe("the user of a key", () => {
  test("shows the user, and changes the project of @current", async () => {
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
  test("shows and moves a restricted key only within its restriction", async () => {
    using server = new TestServer();
    const own = server.first.organization.id;
    const other = server.metadata.change((t) => insertOrganization(t, "Other", server.now)).id;
    server.metadata.db.$client.run(
      "INSERT INTO membership (id, organization_id, user_id, level, joined_at, updated_at) VALUES ('m', ?, 1, 15, 1, 1)",
      [other],
    );
    const two = (await server.ask("POST", "/api/projects/", { body: { name: "Two" } })).body.id as number;
    const theirs = createProject(server.metadata, { organizationId: other, name: "Theirs" }, null).id;
    const limits: [object, { teams: number[]; organizations: string[]; team: number | null }][] = [
      [{}, { teams: [1, two, theirs], organizations: [own, other], team: 1 }],
      [{ projectIds: [two] }, { teams: [two], organizations: [own], team: two }],
      [{ projectIds: [two, theirs] }, { teams: [two, theirs], organizations: [own, other], team: null }],
      [{ organizationIds: [own] }, { teams: [1, two], organizations: [own], team: 1 }],
      [{ organizationIds: [other] }, { teams: [theirs], organizations: [other], team: null }],
      [
        { projectIds: [theirs], organizationIds: [other] },
        { teams: [theirs], organizations: [other], team: theirs },
      ],
    ];
    for (const [restriction, { teams, organizations, team }] of limits) {
      const key = server.key(["user:write"], restriction);
      const { body } = await server.ask("GET", "/api/users/@me/", { key });
      const ids = body.organizations.map(({ id }: { id: string }) => id);
      expect([restriction, body.team?.id ?? null, ids]).toEqual([restriction, team, organizations]);
      const organization = organizations.includes(own) ? own : team === null ? null : other;
      expect(body.organization?.id ?? null).toBe(organization);
      const move = async (change: object) =>
        (await server.ask("PATCH", "/api/users/@me/", { key, body: change })).status;
      for (const id of [1, two, theirs]) {
        const status = await move({ set_current_team: id });
        expect([restriction, id, status]).toEqual([restriction, id, teams.includes(id) ? 200 : 403]);
      }
      for (const id of [own, other]) {
        const status = await move({ set_current_organization: id });
        expect([restriction, id, status]).toEqual([restriction, id, organizations.includes(id) ? 200 : 403]);
      }
      await server.ask("PATCH", "/api/users/@me/", { body: { set_current_team: 1 } });
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

describe("organizations", () => {
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
