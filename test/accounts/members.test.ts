/** Who may do what with the people of an organization. */

import { describe, expect, test } from "bun:test";
import { insertOrganization } from "../../src/accounts/organizations.ts";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { createProject } from "../../src/accounts/projects.ts";
import { createUser, findUserByEmail } from "../../src/accounts/users.ts";
import { TestServer } from "../support/management-server.ts";

const members = "/api/organizations/@current/members/";

/** Adds a user and gives them a key. */
function getKey(server: TestServer, email: string, level: "member" | "admin" | "owner"): string {
  createUser(server.metadata, { email, organizationId: server.first.organization.id, level });
  const input = { userEmail: email, label: "x", scopes: ["*"] };
  return createKey(server.metadata, input, { now: server.now }).value;
}

const getUuid = (server: TestServer, email: string) => findUserByEmail(server.metadata.db, email)!.uuid;

test("a user is added with a one-time link, which signs in", async () => {
  using server = new TestServer();
  const added = await server.ask("POST", members, { body: { email: "bob@example.com", first_name: "Bob" } });
  expect([added.status, added.body.level, added.body.has_password]).toEqual([201, 1, false]);
  expect(added.body.console_url).toStartWith("http://localhost/console/setup#");
  const token = added.body.console_url.split("#")[1];
  const body = { token, password: "correct horse battery staple" };
  const headers = { "x-flagkeep-console": "1" };
  expect((await server.ask("POST", "/api/session/setup/", { key: null, body, headers })).status).toBe(201);
  const { body: list } = await server.ask("GET", members);
  expect(list.results.map((one: { has_password: boolean }) => one.has_password)).toEqual([false, true]);
  const again = await server.ask("POST", members, { body: { email: "BOB@example.com" } });
  expect([again.status, again.body.attr]).toEqual([400, "email"]);
  const log = await server.ask("GET", "/api/organizations/@current/activity_log/?scope=User");
  expect(log.body.results.map((entry: { activity: string }) => entry.activity)).toEqual([
    "password_set",
    "created",
  ]);
});

describe("levels", () => {
  /** Who, does what, to whom: allowed or not. */
  const table: [by: "member" | "admin" | "owner", does: string, to: string, status: number][] = [
    ["member", "POST 1", "new", 403],
    ["admin", "POST 1", "new", 201],
    ["admin", "POST 8", "new", 201],
    ["admin", "POST 15", "new", 403],
    ["owner", "POST 15", "new", 201],
    ["member", "PATCH 8", "member", 403],
    ["admin", "PATCH 8", "member", 200],
    ["admin", "PATCH 15", "member", 403],
    ["admin", "PATCH 1", "owner", 403],
    ["owner", "PATCH 1", "owner", 200],
    ["admin", "DELETE", "owner", 403],
    ["admin", "DELETE", "member", 204],
    ["member", "DELETE", "admin", 403],
    ["member", "DELETE", "self", 204],
    ["admin", "OFF", "owner", 403],
    ["admin", "OFF", "member", 200],
    ["member", "LINK", "member", 403],
    ["admin", "LINK", "member", 201],
    ["admin", "LINK", "admin", 201],
    ["admin", "LINK", "owner", 403],
    ["owner", "LINK", "owner", 201],
  ];
  test.each(table)("%s: %s with %s is answered %d", async (by, does, to, status) => {
    using server = new TestServer();
    const key = getKey(server, "self@example.com", by);
    for (const level of ["member", "admin", "owner"] as const) getKey(server, `${level}@example.com`, level);
    const [method, level] = does.split(" ");
    const target = `${members}${to === "new" ? "" : `${getUuid(server, `${to}@example.com`)}/`}`;
    const asked =
      method === "POST"
        ? server.ask("POST", members, { key, body: { email: "new@example.com", level: Number(level) } })
        : method === "PATCH"
          ? server.ask("PATCH", target, { key, body: { level: Number(level) } })
          : method === "OFF"
            ? server.ask("PATCH", target, { key, body: { is_active: false } })
            : method === "LINK"
              ? server.ask("POST", `${target}link/`, { key })
              : server.ask("DELETE", target, { key });
    expect((await asked).status).toBe(status);
  });
});

test("the last owner stays one, stays active and stays", async () => {
  using server = new TestServer();
  const target = `${members}${getUuid(server, "ann@example.com")}/`;
  const attempts = () => [
    server.ask("PATCH", target, { body: { level: 8 } }),
    server.ask("PATCH", target, { body: { is_active: false } }),
    server.ask("DELETE", target),
  ];
  for (const { status, body } of await Promise.all(attempts())) {
    expect([status, body.code]).toEqual([400, "last_owner"]);
  }
  // A deactivated owner is none to rely on.
  getKey(server, "bob@example.com", "owner");
  const bob = `${members}${getUuid(server, "bob@example.com")}/`;
  expect((await server.ask("PATCH", bob, { body: { is_active: false } })).status).toBe(200);
  for (const { status } of await Promise.all(attempts())) expect(status).toBe(400);
  expect((await server.ask("PATCH", bob, { body: { is_active: true } })).status).toBe(200);
  expect((await server.ask("PATCH", target, { body: { level: 8 } })).status).toBe(200);
  expect((await server.ask("GET", "/api/users/@me/")).body.is_staff).toBe(false);
});

test("only an unrestricted key of the server's operator lists all users", async () => {
  using server = new TestServer();
  const admin = getKey(server, "bob@example.com", "admin");
  const list = async (key?: string) => {
    const { status, body } = await server.ask("GET", "/api/users/", key === undefined ? {} : { key });
    expect(status).toBe(200);
    return (body.results as { email: string }[]).map(({ email }) => email);
  };
  expect(await list()).toEqual(["ann@example.com", "bob@example.com"]);
  expect(await list(admin)).toEqual(["bob@example.com"]);
  expect(await list(server.key(["user:read"]))).toEqual(["ann@example.com"]);
  expect(await list(server.key(["*"], { projectIds: [1] }))).toEqual(["ann@example.com"]);
  expect((await server.ask("GET", "/api/users/", { key: server.key(["cohort:read"]) })).status).toBe(403);
});

test("revoked permissions apply immediately", async () => {
  using server = new TestServer();
  const key = getKey(server, "bob@example.com", "admin");
  const bob = `${members}${getUuid(server, "bob@example.com")}/`;
  const status = async () => (await server.ask("GET", members, { key })).status;
  expect(await status()).toBe(200);
  await server.ask("PATCH", bob, { body: { is_active: false } });
  expect(await status()).toBe(401);
  await server.ask("PATCH", bob, { body: { is_active: true } });
  expect(await status()).toBe(200);
  await server.ask("DELETE", bob);
  expect((await server.ask("GET", "/api/projects/1/", { key })).status).toBe(403);
  expect((await server.ask("GET", bob)).status).toBe(404);
});

test("a user of several organizations is changed only on the command line", async () => {
  using server = new TestServer();
  const other = server.metadata.change((t) => insertOrganization(t, "Other", server.now));
  createUser(server.metadata, { email: "eve@example.com", organizationId: other.id, level: "owner" });
  const added = await server.ask("POST", members, { body: { email: "eve@example.com" } });
  expect([added.status, added.body.console_url]).toEqual([201, null]);
  const eve = `${members}${getUuid(server, "eve@example.com")}/`;
  expect((await server.ask("POST", `${eve}link/`)).status).toBe(403);
  expect((await server.ask("PATCH", eve, { body: { is_active: false } })).status).toBe(403);
  expect((await server.ask("DELETE", eve)).status).toBe(204);
});

test("a project is archived by admins and owners", async () => {
  using server = new TestServer();
  const path = "/api/projects/1/";
  const key = getKey(server, "bob@example.com", "member");
  expect((await server.ask("PATCH", path, { key, body: { archived: true } })).status).toBe(403);
  const read = (await server.ask("GET", path, { key })).body;
  const sent = { ...read, name: "Named by a member" };
  expect((await server.ask("PATCH", path, { key, body: sent })).status).toBe(200);
  for (const change of [{ approvals: "all" }, { events_retention_days: 30 }])
    expect((await server.ask("PATCH", path, { key, body: { ...read, ...change } })).status).toBe(403);
  const rejected = await server.ask("PATCH", path, { body: { archived: true, name: "Closed" } });
  expect([rejected.status, rejected.body.code]).toEqual([400, "last_project"]);
  const organizationId = server.metadata.projects.find(1)!.organizationId;
  createProject(server.metadata, { organizationId, name: "Second" }, null);
  const archived = await server.ask("PATCH", path, { body: { archived: true, name: "Closed" } });
  expect([archived.status, archived.body.name, typeof archived.body.archived_at]).toEqual([
    200,
    "Closed",
    "string",
  ]);
  expect((await server.ask("GET", path)).status).toBe(404);
  const listed = async (query: string) =>
    (await server.ask("GET", `/api/projects/${query}`)).body.results.map(({ id }: { id: number }) => id);
  expect([await listed(""), await listed("?archived=true"), await listed("?archived=false")]).toEqual([
    [2],
    [1],
    [2],
  ]);
  expect((await server.ask("GET", "/api/projects/?archived=perhaps")).status).toBe(400);
  for (const body of [{}, { name: "Other" }, { archived: true }])
    expect((await server.ask("PATCH", path, { body })).status).toBe(404);
  expect((await server.ask("PATCH", path, { key, body: { archived: false } })).status).toBe(403);
  const opened = await server.ask("PATCH", path, { body: { archived: false, name: "Open" } });
  expect([opened.status, opened.body.name, opened.body.archived_at]).toEqual([200, "Open", null]);
  expect((await server.ask("GET", path)).status).toBe(200);
  expect((await server.ask("PATCH", path, { key, body: { archived: false } })).status).toBe(200);
});

describe("a removed member", () => {
  const roles = "/api/organizations/@current/roles/";

  test("loses the roles with the membership, permanently", async () => {
    using server = new TestServer();
    const key = getKey(server, "bob@example.com", "member");
    const uuid = getUuid(server, "bob@example.com");
    const { body: role } = await server.ask("POST", roles, { body: { name: "Editors" } });
    const given = { body: { user_uuid: uuid } };
    expect((await server.ask("POST", `${roles}${role.id}/role_memberships/`, given)).status).toBe(201);
    const holders = async () => (await server.ask("GET", `${roles}${role.id}/`)).body.members;
    expect(await holders()).toBe("bob@example.com");
    expect((await server.ask("DELETE", `${members}${uuid}/`)).status).toBe(204);
    expect(await holders()).toBe("");
    const log = await server.ask("GET", "/api/organizations/@current/activity_log/?scope=Role&limit=1");
    expect(log.body.results[0].detail.changes).toMatchObject([
      { field: "members", before: ["bob@example.com"], after: null },
    ]);
    expect((await server.ask("POST", members, { body: { email: "bob@example.com" } })).status).toBe(201);
    expect(await holders()).toBe("");
    expect((await server.ask("GET", "/api/projects/1/", { key })).status).toBe(200);
  });

  test("sees neither the organization nor its projects, and works on in another one", async () => {
    using server = new TestServer();
    const key = getKey(server, "bob@example.com", "member");
    const uuid = getUuid(server, "bob@example.com");
    await server.ask("PATCH", "/api/users/@me/", { key, body: { set_current_team: 1 } });
    expect((await server.ask("DELETE", `${members}${uuid}/`)).status).toBe(204);
    const me = async () => (await server.ask("GET", "/api/users/@me/", { key })).body;
    expect(await me()).toMatchObject({ team: null, organization: null, organizations: [] });
    expect((await server.ask("GET", "/api/projects/@current/", { key })).status).toBe(404);
    const other = server.metadata.change((t) => insertOrganization(t, "Other", server.now));
    const project = createProject(server.metadata, { organizationId: other.id, name: "Theirs" }, null);
    const of = { organizationId: other.id, level: "owner" as const };
    createUser(server.metadata, { email: "max@example.com", ...of });
    const max = createKey(server.metadata, { userEmail: "max@example.com", label: "x", scopes: ["*"] }).value;
    const added = await server.ask("POST", members, { key: max, body: { email: "bob@example.com" } });
    expect(added.status).toBe(201);
    expect(await me()).toMatchObject({
      team: { id: project.id, name: "Theirs" },
      organization: { id: other.id, membership_level: 1 },
    });
    expect((await server.ask("GET", "/api/projects/@current/", { key })).body.id).toBe(project.id);
  });
});
