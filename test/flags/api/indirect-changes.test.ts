/** What changes a protected flag without touching it: the cohorts that it uses and the flags that it depends on. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { createUser } from "../../../src/accounts/users.ts";
import { runScheduledChanges } from "../../../src/flags/api/pending-changes.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";

const cohorts = "/api/projects/1/cohorts/";
const requests = "/api/projects/1/change_requests/";
const scheduled = "/api/projects/1/scheduled_changes/";

const byEmail = (value: string) => ({
  properties: {
    type: "OR",
    values: [{ type: "AND", values: [{ key: "email", type: "person", operator: "icontains", value }] }],
  },
});
const byCohort = (id: number) => ({
  properties: { type: "OR", values: [{ type: "AND", values: [{ key: "id", type: "cohort", value: id }] }] },
});
const inCohort = (id: number) => ({
  groups: [{ properties: [{ key: "id", type: "cohort", value: id }], rollout_percentage: 100 }],
});
const dependsOn = (id: number) => ({
  groups: [
    {
      properties: [{ key: String(id), type: "flag", operator: "flag_evaluates_to", value: true }],
      rollout_percentage: 100,
    },
  ],
});

/**
 * inner cohort <- outer cohort <- flag "middle" <- flag "careful" (critical); flag "free" uses cohort "other".
 */
async function prepared(approvals = "critical") {
  const server = new TestServer();
  const created = async (path: string, body: object) =>
    (await server.ask("POST", path, { body })).body.id as number;
  const inner = await created(cohorts, { name: "inner", filters: byEmail("@a") });
  const outer = await created(cohorts, { name: "outer", filters: byCohort(inner) });
  const list = await created(cohorts, { name: "list", is_static: true });
  const other = await created(cohorts, { name: "other", filters: byEmail("@b") });
  const middle = await created(flagsPath, { key: "middle", filters: inCohort(outer) });
  const careful = await created(flagsPath, {
    key: "careful",
    tags: ["critical"],
    filters: dependsOn(middle),
  });
  const listed = await created(flagsPath, { key: "listed", tags: ["critical"], filters: inCohort(list) });
  const free = await created(flagsPath, { key: "free", filters: inCohort(other) });
  await server.ask("PATCH", "/api/projects/1/", { body: { approvals } });
  createUser(server.metadata, {
    email: "bob@example.com",
    organizationId: server.first.organization.id,
    level: "member",
  });
  const keyWith = (scopes: string[]) =>
    createKey(server.metadata, { userEmail: "bob@example.com", label: "x", scopes }, { now: server.now })
      .value;
  return {
    server,
    inner,
    outer,
    list,
    other,
    middle,
    careful,
    listed,
    free,
    keyWith,
    bob: keyWith(["*"]),
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}

describe("needs approval", () => {
  test("every change of a cohort or flag that a critical flag depends on, directly or through others", async () => {
    using it = await prepared();
    const { server } = it;
    const edits: [string, number, object][] = [
      [cohorts, it.inner, { filters: byEmail("@evil") }],
      [cohorts, it.inner, { deleted: true }],
      [cohorts, it.inner, { is_static: true }],
      [cohorts, it.inner, { name: "x", groups: [{ properties: [] }] }],
      [cohorts, it.outer, { filters: byCohort(it.other) }],
      [cohorts, it.list, { csv: "kim\nlee" }],
      [flagsPath, it.middle, { active: false }],
      [flagsPath, it.middle, { filters: { groups: [{ properties: [], rollout_percentage: 50 }] } }],
      [flagsPath, it.middle, { rollout_percentage: 20 }],
      [flagsPath, it.middle, { bucketing_identifier: "device_id" }],
      [flagsPath, it.middle, { deleted: true }],
    ];
    for (const [path, id, body] of edits) {
      const answer = await server.ask("PATCH", `${path}${id}/`, { body });
      expect([body, answer.status, answer.body.code]).toEqual([body, 403, "approval_required"]);
      expect(answer.body.detail).toMatch(path === cohorts && id === it.list ? /"listed"/ : /"careful"/);
    }
    const put = await server.ask("PUT", `${cohorts}${it.inner}/`, {
      body: { name: "inner", filters: byEmail("@evil") },
    });
    expect(put.status).toBe(403);
    const later = {
      record_id: it.middle,
      payload: { operation: "update_status", value: false },
      scheduled_at: "2099-01-01T00:00:00Z",
    };
    expect((await server.ask("POST", scheduled, { body: later })).body.code).toBe("approval_required");
  });

  test("not a name or a description, not what is sent back unchanged, not what protected flags do not use", async () => {
    using it = await prepared();
    const { server } = it;
    const { body: cohort } = await server.ask("GET", `${cohorts}${it.inner}/`);
    const { body: flag } = await server.ask("GET", `${flagsPath}${it.middle}/`);
    const edits: [string, number, object][] = [
      [cohorts, it.inner, { name: "renamed", description: "new" }],
      [cohorts, it.inner, { name: "renamed again", filters: cohort.filters, is_static: false }],
      [cohorts, it.other, { filters: byEmail("@c") }],
      [flagsPath, it.middle, { name: "described", tags: ["a"] }],
      [flagsPath, it.middle, { name: "again", filters: flag.filters, active: true }],
      [flagsPath, it.free, { active: false }],
    ];
    for (const [path, id, body] of edits)
      expect([body, (await server.ask("PATCH", `${path}${id}/`, { body })).status]).toEqual([body, 200]);
  });

  test("nothing where the project asks for no approvals, and every used cohort where it asks for all", async () => {
    using off = await prepared("off");
    const change = { body: { filters: byEmail("@new") } };
    expect((await off.server.ask("PATCH", `${cohorts}${off.inner}/`, change)).status).toBe(200);
    using all = await prepared("all");
    expect((await all.server.ask("PATCH", `${cohorts}${all.other}/`, change)).status).toBe(403);
  });

  test("also when a scheduled change is created that was scheduled before the flag was protected", async () => {
    using it = await prepared("off");
    const { server } = it;
    const later = {
      record_id: it.middle,
      payload: { operation: "update_status", value: false },
      scheduled_at: new Date(server.now.getTime() + 60_000).toISOString(),
    };
    await server.ask("POST", scheduled, { body: later });
    await server.ask("PATCH", "/api/projects/1/", { body: { approvals: "critical" } });
    runScheduledChanges(server.deps, new Date(server.now.getTime() + 120_000));
    const [change] = (await server.ask("GET", scheduled)).body.results;
    expect(change.failure_reason).toContain("careful");
  });
});

describe("a change request for a cohort", () => {
  const change = { filters: byEmail("@agreed") };

  test("is created when another user approves it", async () => {
    using it = await prepared();
    const { server, bob, inner } = it;
    const asked = await server.ask("POST", requests, {
      body: { cohort_id: inner, changes: change, note: "please" },
      key: bob,
    });
    expect(asked.body).toMatchObject({
      cohort_id: inner,
      cohort_name: "inner",
      flag_id: null,
      flag_key: "",
      state: "pending",
      affected_flags: ["careful"],
      original: { name: "inner", is_static: false },
    });
    const path = `${requests}${asked.body.id}/`;
    expect((await server.ask("POST", `${path}approve/`, { key: bob })).status).toBe(403);
    expect((await server.ask("GET", `${requests}?cohort_id=${inner}`)).body.count).toBe(1);
    expect((await server.ask("GET", `${requests}?cohort_id=${it.other}`)).body.count).toBe(0);
    expect((await server.ask("POST", `${path}approve/`)).body).toMatchObject({
      state: "applied",
      affected_flags: [],
    });
    expect(JSON.stringify((await server.ask("GET", `${cohorts}${inner}/`)).body.filters)).toContain(
      "@agreed",
    );
    expect((await server.ask("POST", `${path}approve/`)).status).toBe(400);
  });

  test("lists the protected flags that it affects, as requests for flags do", async () => {
    using it = await prepared();
    const { server, inner, list, other, middle, careful, free } = it;
    const requested: [object, string[]][] = [
      [{ cohort_id: inner, changes: change }, ["careful"]],
      [{ cohort_id: inner, changes: { name: "renamed" } }, []],
      [{ cohort_id: list, changes: { csv: "kim" } }, ["listed"]],
      [{ cohort_id: other, changes: change }, []],
      [{ flag_id: middle, changes: { active: false, filters: { groups: [] } } }, ["careful"]],
      [{ flag_id: middle, changes: { name: "described" } }, []],
      [{ flag_id: careful, changes: { name: "described" } }, ["careful"]],
      [{ flag_id: free, changes: { active: false } }, []],
    ];
    for (const [body, keys] of requested) {
      const asked = await server.ask("POST", requests, { body });
      expect([body, asked.status, asked.body.affected_flags]).toEqual([body, 201, keys]);
    }
    const listed = (await server.ask("GET", requests)).body.results as { affected_flags: string[] }[];
    expect(listed.map(({ affected_flags: keys }) => keys).reverse()).toEqual(
      requested.map(([, keys]) => keys),
    );
  });

  test("is checked when it is created, and needs the scope for cohorts", async () => {
    using it = await prepared();
    const { server, inner, middle } = it;
    const ask = (body: object, key?: string) => server.ask("POST", requests, { body, key });
    for (const [body, attr] of [
      [{ cohort_id: 999, changes: change }, "cohort_id"],
      [{ changes: change }, "flag_id"],
      [{ cohort_id: inner, flag_id: middle, changes: change }, "flag_id"],
      [{ cohort_id: inner, changes: {} }, "changes"],
      [
        {
          cohort_id: inner,
          changes: {
            filters: {
              properties: {
                type: "OR",
                values: [
                  { type: "AND", values: [{ key: "x", type: "person", operator: "no_such", value: 1 }] },
                ],
              },
            },
          },
        },
        "filters",
      ],
    ] as const) {
      const answer = await ask(body);
      expect([body, answer.status, answer.body.attr]).toEqual([body, 400, attr]);
    }
    expect(
      (await ask({ cohort_id: inner, changes: change }, it.keyWith(["feature_flag:write"]))).status,
    ).toBe(403);
    expect((await server.ask("GET", requests)).body.count).toBe(0);
    expect(JSON.stringify((await server.ask("GET", `${cohorts}${inner}/`)).body.filters)).toContain("@a");
  });

  test("is 409 when the cohort was changed since, and can be rejected or withdrawn", async () => {
    using it = await prepared();
    const { server, bob, inner } = it;
    const ask = async () =>
      (await server.ask("POST", requests, { body: { cohort_id: inner, changes: change }, key: bob })).body.id;
    const first = await ask();
    const second = await ask();
    const third = await ask();
    expect((await server.ask("POST", `${requests}${second}/reject/`)).body.state).toBe("rejected");
    expect((await server.ask("POST", `${requests}${third}/reject/`, { key: bob })).body.state).toBe(
      "withdrawn",
    );
    await server.ask("PATCH", "/api/projects/1/", { body: { approvals: "off" } });
    await server.ask("PATCH", `${cohorts}${inner}/`, { body: { filters: byEmail("@meanwhile") } });
    await server.ask("PATCH", "/api/projects/1/", { body: { approvals: "critical" } });
    expect((await server.ask("POST", `${requests}${first}/approve/`)).status).toBe(409);
  });
});
