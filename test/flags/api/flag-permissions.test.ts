/** Who may edit a flag (contract: management-api 3.7), through the API. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { createUser, type LevelName, type User } from "../../../src/accounts/users.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";

const rolesPath = "/api/organizations/@current/roles/";

function person(server: TestServer, email: string, level: LevelName): { user: User; key: string } {
  const organizationId = server.first.organization.id;
  const user = createUser(server.metadata, { email, organizationId, level });
  const { value } = createKey(
    server.metadata,
    { userEmail: email, label: "x", scopes: ["*"] },
    { now: server.now },
  );
  return { user, key: value };
}

async function getRole(server: TestServer, name: string, level: 21 | 37, users: User[]): Promise<string> {
  const { body } = await server.ask("POST", rolesPath, { body: { name } });
  await server.ask("PATCH", `${rolesPath}${body.id}/`, { body: { feature_flags_access_level: level } });
  for (const user of users) {
    const created = await server.ask("POST", `${rolesPath}${body.id}/role_memberships/`, {
      body: { user_uuid: user.uuid },
    });
    expect(created.status).toBe(201);
  }
  return body.id;
}

describe("when the organization is for viewing", () => {
  async function viewing() {
    const server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "pay" } });
    const set = await server.ask("PATCH", "/api/organizations/@current/", {
      body: { feature_flags_access_level: 21 },
    });
    expect(set.body.feature_flags_access_level).toBe(21);
    const edit = (key: string) => server.ask("PATCH", `${flagsPath}1/`, { key, body: { name: "x" } });
    const read = (key: string) => server.ask("GET", `${flagsPath}1/`, { key });
    return { server, edit, read, [Symbol.dispose]: () => server[Symbol.dispose]() };
  }
  const REJECTED = {
    status: 403,
    body: {
      type: "authentication_error",
      code: "permission_denied",
      detail: "You don't have edit permissions for this feature flag.",
    },
  };

  test("a member views, an admin edits", async () => {
    using it = await viewing();
    const member = person(it.server, "m@example.com", "member");
    const admin = person(it.server, "a@example.com", "admin");
    expect((await it.read(member.key)).body).toMatchObject({ can_edit: false, user_access_level: "viewer" });
    expect(await it.edit(member.key)).toMatchObject(REJECTED);
    expect((await it.read(admin.key)).body).toMatchObject({ can_edit: true, user_access_level: "manager" });
    expect((await it.edit(admin.key)).status).toBe(200);
    for (const action of ["dashboard", "enrich_usage_dashboard", "create_static_cohort_for_flag"]) {
      expect(await it.server.ask("POST", `${flagsPath}1/${action}/`, { key: member.key })).toMatchObject(
        REJECTED,
      );
    }
    expect((await it.server.ask("GET", `${flagsPath}matching_ids/`, { key: member.key })).body.ids).toEqual(
      [],
    );
  });

  test("a creator edits the own flag", async () => {
    using it = await viewing();
    const member = person(it.server, "m@example.com", "member");
    const own = await it.server.ask("POST", flagsPath, { key: member.key, body: { key: "own" } });
    expect(own.body).toMatchObject({ can_edit: true, user_access_level: "manager" });
    const edited = await it.server.ask("PATCH", `${flagsPath}${own.body.id}/`, { key: member.key, body: {} });
    expect(edited.status).toBe(200);
  });

  test("a role with 37 edits all flags; one with 21 those it has a record for", async () => {
    using it = await viewing();
    const { server } = it;
    const [editor, granted, other] = ["e@x.com", "g@x.com", "o@x.com"].map((email) =>
      person(server, email, "member"),
    );
    await getRole(server, "Editors", 37, [editor!.user]);
    const viewers = await getRole(server, "Payments", 21, [granted!.user]);
    await getRole(server, "Others", 21, [other!.user]);
    expect((await it.edit(editor!.key)).status).toBe(200);
    expect(await it.edit(granted!.key)).toMatchObject(REJECTED);

    const access = `${flagsPath}1/role_access/`;
    expect(await server.ask("POST", access, { key: granted!.key, body: { role_id: viewers } })).toMatchObject(
      {
        status: 403,
        body: { detail: "You can't edit roles for this feature flag." },
      },
    );
    const created = await server.ask("POST", access, { key: editor!.key, body: { role_id: viewers } });
    expect(created).toMatchObject({
      status: 201,
      body: {
        feature_flag: { id: 1, key: "pay" },
        role: { id: viewers, name: "Payments", feature_flags_access_level: 21, members: "g@x.com" },
      },
    });
    expect((await it.edit(granted!.key)).status).toBe(200);
    expect(await it.edit(other!.key)).toMatchObject(REJECTED);

    expect((await server.ask("DELETE", `${access}${created.body.id}/`)).status).toBe(204);
    expect(await it.edit(granted!.key)).toMatchObject(REJECTED);
  });

  test("deleting a role deletes its records", async () => {
    using it = await viewing();
    const member = person(it.server, "m@x.com", "member");
    const role = await getRole(it.server, "Payments", 21, [member.user]);
    await it.server.ask("POST", `${flagsPath}1/role_access/`, { body: { role_id: role } });
    expect((await it.edit(member.key)).status).toBe(200);
    expect((await it.server.ask("DELETE", `${rolesPath}${role}/`)).status).toBe(204);
    expect((await it.server.ask("GET", `${flagsPath}1/role_access/`)).body.count).toBe(0);
    expect((await it.server.ask("GET", `${flagsPath}1/activity/`)).body.results[0]).toMatchObject({
      activity: "updated",
      detail: { changes: [{ field: "role_access", action: "deleted", before: "Payments", after: null }] },
    });
    expect(await it.edit(member.key)).toMatchObject(REJECTED);
  });
});

describe("role access records", () => {
  async function withRole() {
    const server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "pay" } });
    await server.ask("POST", flagsPath, { body: { key: "other" } });
    const role = await getRole(server, "Payments", 21, []);
    const access = `${flagsPath}1/role_access/`;
    return { server, role, access, [Symbol.dispose]: () => server[Symbol.dispose]() };
  }

  test("are created, listed, read and removed, flag by flag", async () => {
    using it = await withRole();
    const created = await it.server.ask("POST", it.access, { body: { role_id: it.role } });
    expect(created.body.role.created_by.email).toBe("ann@example.com");
    expect(created.body.role_id).toBe(it.role);
    const list = await it.server.ask("GET", `${it.access}?limit=1&anything=x`);
    expect(list.body).toEqual({ count: 1, next: null, previous: null, results: [created.body] });
    expect((await it.server.ask("GET", `${it.access}${created.body.id}/`)).body).toEqual(created.body);
    expect((await it.server.ask("GET", `${flagsPath}2/role_access/`)).body.count).toBe(0);
    expect((await it.server.ask("GET", `${flagsPath}2/role_access/${created.body.id}/`)).status).toBe(404);
    expect((await it.server.ask("DELETE", `${flagsPath}2/role_access/${created.body.id}/`)).status).toBe(404);
    expect(await it.server.ask("DELETE", `${it.access}${created.body.id}/`)).toMatchObject({
      status: 204,
      body: "",
    });
    expect((await it.server.ask("DELETE", `${it.access}${created.body.id}/`)).status).toBe(404);
    const { results } = (await it.server.ask("GET", `${flagsPath}1/activity/`)).body;
    const change = { type: "FeatureFlag", field: "role_access" };
    expect(results.slice(0, 2)).toMatchObject([
      {
        activity: "updated",
        scope: "FeatureFlag",
        item_id: "1",
        user: { email: "ann@example.com" },
        detail: { name: "pay", changes: [{ ...change, action: "deleted", before: "Payments", after: null }] },
      },
      { detail: { changes: [{ ...change, action: "created", before: null, after: "Payments" }] } },
    ]);
    expect((await it.server.ask("GET", `${flagsPath}2/activity/`)).body.total_count).toBe(1);
  });

  for (const [name, body, code, detail] of [
    ["nothing", {}, "required", "This field is required."],
    ["no uuid", { role_id: "x" }, "invalid_input", "Must be a valid UUID."],
    [
      "an unknown role",
      { role_id: "0193d1a2-7b1c-7c3e-9f60-000000000000" },
      "does_not_exist",
      'Invalid pk "0193d1a2-7b1c-7c3e-9f60-000000000000" - object does not exist.',
    ],
  ] as const) {
    test(`are rejected for ${name}`, async () => {
      using it = await withRole();
      expect(await it.server.ask("POST", it.access, { body })).toMatchObject({
        status: 400,
        body: { type: "validation_error", code, detail, attr: "role_id" },
      });
    });
  }
  test("are rejected a second time", async () => {
    using it = await withRole();
    await it.server.ask("POST", it.access, { body: { role_id: it.role } });
    expect(await it.server.ask("POST", it.access, { body: { role_id: it.role } })).toMatchObject({
      status: 400,
      body: { code: "unique", attr: "role_id" },
    });
  });
});

describe("roles", () => {
  test("have unique names, whatever the letter case, and are edited by admins only", async () => {
    using server = new TestServer();
    const member = person(server, "m@x.com", "member");
    const created = await server.ask("POST", rolesPath, { body: { name: "Eng" } });
    expect(created).toMatchObject({
      status: 201,
      body: { name: "Eng", feature_flags_access_level: 37, members: "", role_memberships: [] },
    });
    expect(await server.ask("POST", rolesPath, { body: { name: "ENG" } })).toMatchObject({
      status: 400,
      body: { code: "unique", detail: "There is already a role with this name.", attr: "name" },
    });
    const log = "/api/organizations/@current/activity_log/";
    expect((await server.ask("GET", log, { key: member.key })).status).toBe(403);
    expect(await server.ask("POST", rolesPath, { key: member.key, body: { name: "B" } })).toMatchObject({
      status: 403,
      body: { detail: "You need to have admin level or higher." },
    });
    const one = `${rolesPath}${created.body.id}/`;
    expect((await server.ask("PUT", one, { body: { name: "Dev" } })).body.name).toBe("Dev");
    expect(await server.ask("PATCH", one, { body: { feature_flags_access_level: 5 } })).toMatchObject({
      status: 400,
      body: { code: "invalid_choice", attr: "feature_flags_access_level" },
    });
  });

  test("are granted once, and revoked", async () => {
    using server = new TestServer();
    const member = person(server, "m@x.com", "member");
    const role = await getRole(server, "Eng", 37, [member.user]);
    const members = `${rolesPath}${role}/role_memberships/`;
    for (const [userUuid, detail] of [
      [member.user.uuid, "User is already part of the role."],
      ["0193d1a2-7b1c-7c3e-9f60-000000000000", "User does not exist."],
    ]) {
      expect(await server.ask("POST", members, { body: { user_uuid: userUuid } })).toMatchObject({
        status: 400,
        body: { code: "invalid_input", detail, attr: null },
      });
    }
    const list = await server.ask("GET", members);
    expect(list.body).toMatchObject({ count: 1, results: [{ role_id: role, user: { email: "m@x.com" } }] });
    expect((await server.ask("GET", `${rolesPath}${role}/`)).body.members).toBe("m@x.com");
    const one = `${members}${list.body.results[0].id}/`;
    expect((await server.ask("GET", one)).body).toEqual(list.body.results[0]);
    expect((await server.ask("DELETE", one)).status).toBe(204);
    expect((await server.ask("GET", one)).status).toBe(404);
    expect((await server.ask("GET", members)).body.count).toBe(0);
  });
});
