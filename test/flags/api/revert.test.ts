/** Changes of a flag taken back, and the filters of the activity log. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { createUser } from "../../../src/accounts/users.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";
import { person } from "../make.ts";

interface Entry {
  id: string;
  activity: string;
  detail: { changes: { field: string }[] };
}

async function flagWithHistory(server: TestServer) {
  const patch = async (id: number, body: object) => {
    server.now = new Date(server.now.getTime() + 60_000);
    const answer = await server.ask("PATCH", `${flagsPath}${id}/`, { body });
    expect(answer.status).toBe(200);
    return answer.body;
  };
  const groups = [{ properties: [person("plan", "exact", "pro")], rollout_percentage: 10 }];
  const created = (
    await server.ask("POST", flagsPath, { body: { key: "shown", name: "", tags: [], filters: { groups } } })
  ).body;
  const { id } = created;
  await patch(id, { name: "Shown", tags: ["web"] });
  await patch(id, {
    filters: {
      groups: [{ properties: [], rollout_percentage: 40 }],
      multivariate: { variants: [{ key: "a", rollout_percentage: 100 }] },
      payloads: { a: '"x"' },
    },
  });
  await patch(id, { active: false });
  const { body } = await server.ask("GET", `${flagsPath}${id}/activity/`);
  return { id, created, entries: body.results as Entry[], patch };
}

const reported = ({ name, tags, active, filters }: Record<string, unknown>) => ({
  name,
  tags,
  active,
  filters,
});

test("a revert puts back what a change and those after it changed, as one more change", async () => {
  using server = new TestServer();
  const { id, created, entries } = await flagWithHistory(server);
  expect(entries.map(({ activity }) => activity)).toEqual(["updated", "updated", "updated", "created"]);
  const revert = async (activity_id: string) =>
    server.ask("POST", `${flagsPath}${id}/revert/`, { body: { activity_id } });
  const one = await revert(entries[1]!.id);
  expect([one.status, one.body.version]).toEqual([200, 5]);
  expect(one.body.filters.groups).toEqual(created.filters.groups);
  expect(one.body).toMatchObject({ name: "Shown", tags: ["web"], active: true });
  expect(one.body.filters.multivariate ?? null).toBeNull();
  const all = await revert(entries[2]!.id);
  expect(reported({ ...all.body, filters: all.body.filters.groups })).toEqual(
    reported({ ...created, filters: created.filters.groups }),
  );
  const log = (await server.ask("GET", `${flagsPath}${id}/activity/`)).body;
  expect(log.total_count).toBe(6);
});

test("a revert of the creation, of another flag's change and without permission is rejected", async () => {
  using server = new TestServer();
  const { id, entries } = await flagWithHistory(server);
  const other = (await server.ask("POST", flagsPath, { body: { key: "other" } })).body;
  const revert = async (flag: number, activity_id: unknown, key?: string) =>
    (await server.ask("POST", `${flagsPath}${flag}/revert/`, { body: { activity_id }, key })).status;
  expect(await revert(id, entries[3]!.id)).toBe(400);
  expect(await revert(other.id, entries[0]!.id)).toBe(400);
  expect(await revert(id, "x")).toBe(400);
  expect(await revert(999, entries[0]!.id)).toBe(404);
  await server.ask("PATCH", "/api/organizations/@current/", { body: { feature_flags_access_level: 21 } });
  createUser(server.metadata, {
    email: "bob@example.com",
    organizationId: server.first.organization.id,
    level: "member",
  });
  const input = { userEmail: "bob@example.com", label: "x", scopes: ["*"] };
  expect(await revert(id, entries[0]!.id, createKey(server.metadata, input, { now: server.now }).value)).toBe(
    403,
  );
});

test("the activity log is narrowed by person, time and kind", async () => {
  using server = new TestServer();
  const start = server.now;
  const { id } = await flagWithHistory(server);
  const count = async (query: string) =>
    (await server.ask("GET", `/api/projects/1/activity_log/?item_id=${id}&scope=FeatureFlag&${query}`)).body
      .total_count;
  expect(await count("")).toBe(4);
  expect(await count("user=ANN@example.com")).toBe(4);
  expect(await count("user=1")).toBe(4);
  expect(await count("user=system")).toBe(0);
  expect(await count("user=nobody@example.com")).toBe(0);
  expect(await count("activity=created")).toBe(1);
  const after = new Date(start.getTime() + 90_000).toISOString();
  expect(await count(`date_from=${after}`)).toBe(2);
  expect(await count(`date_to=${after}`)).toBe(2);
  const wrong = await server.ask("GET", "/api/projects/1/activity_log/?date_from=when");
  expect(wrong.status).toBe(400);
});

test("keys of a member are listed and revoked by users with the permission", async () => {
  using server = new TestServer();
  const organizationId = server.first.organization.id;
  const getKey = (email: string, level: "member" | "admin") => {
    const user = createUser(server.metadata, { email, organizationId, level });
    const created = createKey(
      server.metadata,
      { userEmail: email, label: "x", scopes: ["*"] },
      { now: server.now },
    );
    return { user, ...created };
  };
  const bob = getKey("bob@example.com", "member");
  const admin = getKey("admin@example.com", "admin");
  const path = (uuid: string) => `/api/organizations/@current/members/${uuid}/personal_api_keys/`;
  const { body } = await server.ask("GET", path(bob.user.uuid), { key: admin.value });
  expect(body).toMatchObject([{ id: bob.key.id, value: null }]);
  expect((await server.ask("GET", path(admin.user.uuid), { key: bob.value })).status).toBe(403);
  const { uuid: owner } = (await server.ask("GET", "/api/users/@me/")).body;
  expect((await server.ask("GET", path(owner), { key: admin.value })).status).toBe(403);
  expect((await server.ask("DELETE", `${path(bob.user.uuid)}${admin.key.id}/`)).status).toBe(404);
  expect(
    (await server.ask("DELETE", `${path(bob.user.uuid)}${bob.key.id}/`, { key: admin.value })).status,
  ).toBe(204);
  expect((await server.ask("GET", flagsPath, { key: bob.value })).status).toBe(401);
});

describe("a revert that needs approval", () => {
  const requests = "/api/projects/1/change_requests/";

  test("is requested by the change's id, and applied when another user approves", async () => {
    using server = new TestServer();
    const { id, entries } = await flagWithHistory(server);
    await server.ask("PATCH", "/api/projects/1/", { body: { approvals: "all" } });
    const body = { activity_id: entries[1]!.id };
    const direct = await server.ask("POST", `${flagsPath}${id}/revert/`, { body });
    expect([direct.status, direct.body.code]).toEqual([403, "approval_required"]);
    const asked = await server.ask("POST", requests, { body: { flag_id: id, ...body, note: "Too early" } });
    expect(asked.body).toMatchObject({ state: "pending", note: "Too early", changes: { active: true } });
    const user = { email: "bob@example.com", organizationId: server.first.organization.id, level: "member" };
    createUser(server.metadata, user as Parameters<typeof createUser>[1]);
    const input = { userEmail: user.email, label: "x", scopes: ["*"] };
    const key = createKey(server.metadata, input, { now: server.now }).value;
    const approved = await server.ask("POST", `${requests}${asked.body.id}/approve/`, { key });
    expect(approved.status).toBe(200);
    const flag = (await server.ask("GET", `${flagsPath}${id}/`)).body;
    expect(flag).toMatchObject({ active: true, name: "Shown" });
    expect(flag.filters.groups[0]).toMatchObject({ rollout_percentage: 10 });
  });

  test("that is impossible, or mixed with other changes, is 400", async () => {
    using server = new TestServer();
    const { id, entries } = await flagWithHistory(server);
    const activity_id = entries[1]!.id;
    for (const body of [
      { flag_id: id, activity_id, changes: { active: true } },
      { cohort_id: 1, activity_id },
      { flag_id: id, activity_id: entries.at(-1)!.id },
      { flag_id: id, activity_id: crypto.randomUUID() },
      { flag_id: id, activity_id: "x" },
    ]) {
      const { status, body: answer } = await server.ask("POST", requests, { body });
      expect([status, answer.attr]).toEqual([400, "activity_id"]);
    }
    const none = await server.ask("POST", requests, { body: { flag_id: id } });
    expect([none.status, none.body.attr]).toEqual([400, "changes"]);
  });
});
