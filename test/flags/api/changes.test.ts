/** Changes of flags for later: scheduled, and agreed to by another user. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { createUser, setUserActive } from "../../../src/accounts/users.ts";
import { runScheduledChanges } from "../../../src/flags/api/pending-changes.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";
import { ServerProcess, until } from "../../support/server.ts";

const scheduled = "/api/projects/1/scheduled_changes/";
const requests = "/api/projects/1/change_requests/";
const critical = {
  key: "careful",
  tags: ["critical"],
  filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
};

function getKey(server: TestServer, email: string): string {
  createUser(server.metadata, { email, organizationId: server.first.organization.id, level: "member" });
  const input = { userEmail: email, label: "x", scopes: ["*"] };
  return createKey(server.metadata, input, { now: server.now }).value;
}

async function prepared() {
  const server = new TestServer();
  const flag = (await server.ask("POST", flagsPath, { body: critical })).body;
  const read = async () => (await server.ask("GET", `${flagsPath}${flag.id}/`)).body;
  const later = (minutes: number) => new Date(server.now.getTime() + minutes * 60_000);
  const run = (minutes: number) => runScheduledChanges(server.deps, later(minutes));
  return {
    server,
    flag,
    read,
    later,
    run,
    bob: getKey(server, "bob@example.com"),
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}

test("scheduled and proposed changes are listed in pages", async () => {
  using it = await prepared();
  const { server, flag } = it;
  for (const minutes of [10, 20, 30]) {
    const payload = { operation: "update_status", value: false };
    const scheduled_at = it.later(minutes).toISOString();
    await server.ask("POST", scheduled, { body: { record_id: flag.id, payload, scheduled_at } });
    await server.ask("POST", requests, { body: { flag_id: flag.id, changes: { active: false } } });
  }
  for (const path of [`${scheduled}?record_id=${flag.id}&`, `${requests}?state=pending&`]) {
    const page = async (query: string) => (await server.ask("GET", path + query)).body;
    const all = await page("");
    expect([all.count, all.results.length, all.next, all.previous]).toEqual([3, 3, null, null]);
    const first = await page("limit=1");
    expect([first.count, first.results]).toEqual([3, [all.results[0]]]);
    expect(first.next).toEndWith("limit=1&offset=1");
    const last = await page("limit=1&offset=2");
    expect([last.results, last.next]).toEqual([[all.results[2]], null]);
    expect(last.previous).toEndWith("limit=1&offset=1");
  }
});

describe("a scheduled change", () => {
  test("is read, and put off or replaced until it is created", async () => {
    using it = await prepared();
    const { server, flag } = it;
    const at = (minutes: number) => it.later(minutes).toISOString();
    const off = { operation: "update_status", value: false };
    const { body: created } = await server.ask("POST", scheduled, {
      body: { record_id: flag.id, payload: off, scheduled_at: at(10) },
    });
    const path = `${scheduled}${created.id}/`;
    expect((await server.ask("GET", path)).body).toEqual(created);
    const change = async (body: object, key?: string) => await server.ask("PATCH", path, { body, key });
    expect((await change({ scheduled_at: at(20) })).body).toMatchObject({ payload: off, record_id: flag.id });
    expect(it.run(15)).toBe(0);
    for (const body of [{ scheduled_at: at(-1) }, { payload: { operation: "sell" } }])
      expect((await change(body)).status).toBe(400);
    const renamed = { operation: "update", value: { name: "Later" } };
    const byBob = await change({ payload: renamed }, it.bob);
    expect(byBob.body).toMatchObject({ payload: renamed, created_by: { email: "bob@example.com" } });
    expect(it.run(20)).toBe(1);
    expect(await it.read()).toMatchObject({ name: "Later", active: true });
    expect((await change({ scheduled_at: at(30) })).status).toBe(404);
    expect((await server.ask("GET", path)).body.executed_at).toBeString();
    expect((await server.ask("GET", `${scheduled}99/`)).status).toBe(404);
  });

  test("is applied once at its time, and logged as scheduled", async () => {
    using it = await prepared();
    const { server, flag } = it;
    const schedule = async (payload: object, minutes: number) =>
      (
        await server.ask("POST", scheduled, {
          body: { record_id: flag.id, payload, scheduled_at: it.later(minutes).toISOString() },
        })
      ).status;
    expect(await schedule({ operation: "update_status", value: false }, 10)).toBe(201);
    const groups = [{ properties: [], rollout_percentage: 50 }];
    expect(await schedule({ operation: "add_release_condition", value: { groups } }, 20)).toBe(201);
    expect(await schedule({ operation: "update", value: { name: "Later", active: true } }, 30)).toBe(201);
    expect(it.run(9)).toBe(0);
    expect(it.run(10)).toBe(1);
    expect(it.run(10)).toBe(0);
    expect((await it.read()).active).toBe(false);
    expect(it.run(60)).toBe(2);
    expect(await it.read()).toMatchObject({ name: "Later", active: true, version: 4 });
    expect((await it.read()).filters.groups).toHaveLength(2);
    const { results } = (await server.ask("GET", `${scheduled}?record_id=${flag.id}`)).body;
    expect(results.map(({ failure_reason }: { failure_reason: null }) => failure_reason)).toEqual([
      null,
      null,
      null,
    ]);
    const [entry] = (await server.ask("GET", `${flagsPath}${flag.id}/activity/`)).body.results;
    expect(entry).toMatchObject({
      user: { is_system: true },
      detail: { trigger: { job_type: "scheduled_change" } },
    });
  });

  test("is a step of a gradual rollout: the current condition set changes its percentage", async () => {
    using it = await prepared();
    const { server, flag } = it;
    const pro = [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }];
    const groups = [
      { properties: pro, rollout_percentage: 100 },
      { properties: [], rollout_percentage: 5 },
    ];
    await server.ask("PATCH", `${flagsPath}${flag.id}/`, { body: { filters: { groups } } });
    const step = async (value: object, minutes: number) =>
      await server.ask("POST", scheduled, {
        body: {
          record_id: flag.id,
          payload: { operation: "update_rollout", value },
          scheduled_at: it.later(minutes).toISOString(),
        },
      });
    for (const [condition_index, rollout_percentage] of [
      [2, 25],
      [-1, 25],
      ["0", 25],
      [1, 101],
      [1, "25"],
      [1, null],
    ]) {
      const { status, body } = await step({ condition_index, rollout_percentage }, 5);
      expect([status, body.attr]).toEqual([400, "payload"]);
    }
    for (const [share, minutes] of [
      [25, 5],
      [50, 10],
    ] as const)
      expect((await step({ condition_index: 1, rollout_percentage: share }, minutes)).status).toBe(201);
    expect(it.run(5)).toBe(1);
    const shares = async () =>
      (await it.read()).filters.groups.map(
        (group: { rollout_percentage: number }) => group.rollout_percentage,
      );
    expect(await shares()).toEqual([100, 25]);
    // What was edited meanwhile stays.
    const edited = [groups[0], { properties: pro, rollout_percentage: 25 }];
    await server.ask("PATCH", `${flagsPath}${flag.id}/`, { body: { filters: { groups: edited } } });
    expect(it.run(10)).toBe(1);
    expect(await shares()).toEqual([100, 50]);
    expect((await it.read()).filters.groups[1].properties).toEqual(edited[1]!.properties);
    // A set that was removed.
    await step({ condition_index: 1, rollout_percentage: 100 }, 20);
    await server.ask("PATCH", `${flagsPath}${flag.id}/`, { body: { filters: { groups: [groups[0]] } } });
    expect(it.run(20)).toBe(1);
    const [{ failure_reason: reason }] = (await server.ask("GET", scheduled)).body.results;
    expect(reason).toContain("no condition set with the index 1");
  });

  test("that cannot be applied any more reports the reason, and is not retried", async () => {
    using it = await prepared();
    const { server, flag, bob } = it;
    const body = {
      record_id: flag.id,
      payload: { operation: "update_status", value: false },
      scheduled_at: it.later(5).toISOString(),
    };
    expect((await server.ask("POST", scheduled, { body, key: bob })).status).toBe(201);
    setUserActive(server.metadata, "bob@example.com", false);
    expect(it.run(5)).toBe(1);
    expect((await it.read()).active).toBe(true);
    const [change] = (await server.ask("GET", scheduled)).body.results;
    expect(change.failure_reason).toContain("no longer has permission to edit");
    expect(it.run(6)).toBe(0);
  });

  test("can be cancelled, and is rejected if invalid", async () => {
    using it = await prepared();
    const { server, flag } = it;
    const payload = { operation: "update_status", value: false };
    const body = { record_id: flag.id, payload, scheduled_at: it.later(5).toISOString() };
    const { id } = (await server.ask("POST", scheduled, { body })).body;
    expect((await server.ask("DELETE", `${scheduled}${id}/`)).status).toBe(204);
    expect((await server.ask("DELETE", `${scheduled}${id}/`)).status).toBe(404);
    expect(it.run(10)).toBe(0);
    const wrong: [object, string][] = [
      [{ ...body, scheduled_at: server.now.toISOString() }, "scheduled_at"],
      [{ ...body, record_id: 99 }, "record_id"],
      [{ ...body, payload: { operation: "explode" } }, "payload"],
      [{ ...body, payload: { operation: "update", value: { filters: { groups: 3 } } } }, "filters"],
    ];
    for (const [sent, attr] of wrong) {
      const answer = await server.ask("POST", scheduled, { body: sent });
      expect([attr, answer.status, answer.body.attr]).toEqual([attr, 400, attr]);
    }
  });
});

describe("where changes have to be agreed to", () => {
  test("no one changes a critical flag alone; another person's agreement does, once", async () => {
    using it = await prepared();
    const { server, flag, bob } = it;
    await server.ask("PATCH", "/api/projects/1/", { body: { approvals: "critical" } });
    const edits: [string, string, object][] = [
      ["PATCH", `${flagsPath}${flag.id}/`, { active: false }],
      ["PATCH", `${flagsPath}${flag.id}/`, { tags: [] }],
      ["PATCH", `${flagsPath}${flag.id}/`, { deleted: true }],
    ];
    for (const [method, path, body] of edits) {
      const { status, body: answer } = await server.ask(method, path, { body });
      expect([status, answer.code]).toEqual([403, "approval_required"]);
    }
    const payload = { operation: "update_status", value: false };
    const later = { record_id: flag.id, payload, scheduled_at: it.later(5).toISOString() };
    expect((await server.ask("POST", scheduled, { body: later })).body.code).toBe("approval_required");
    const proposal = { flag_id: flag.id, changes: { active: false }, note: "<b>please</b>" };
    const { id, ...proposed } = (await server.ask("POST", requests, { body: proposal, key: bob })).body;
    expect(proposed).toMatchObject({ state: "pending", flag_key: "careful", note: "<b>please</b>" });
    expect((await server.ask("POST", `${requests}${id}/approve/`, { key: bob })).status).toBe(403);
    const agreed = await server.ask("POST", `${requests}${id}/approve/`);
    expect([agreed.status, agreed.body.state]).toEqual([200, "applied"]);
    expect((await it.read()).active).toBe(false);
    const [entry] = (await server.ask("GET", `${flagsPath}${flag.id}/activity/`)).body.results;
    expect(entry.detail.note).toBe("<b>please</b>");
    expect(entry.user).toEqual({ first_name: "ann", email: "ann@example.com" });
    expect(entry.detail.trigger).toMatchObject({
      job_type: "change_request",
      job_id: String(id),
      proposed_by: { email: "bob@example.com" },
    });
    expect((await server.ask("POST", `${requests}${id}/approve/`)).status).toBe(400);
    expect((await server.ask("POST", `${requests}${id}/reject/`)).status).toBe(400);
    const free = (await server.ask("POST", flagsPath, { body: { key: "free" } })).body;
    expect((await server.ask("PATCH", `${flagsPath}${free.id}/`, { body: { active: false } })).status).toBe(
      200,
    );
    await server.ask("PATCH", "/api/projects/1/", { body: { approvals: "all" } });
    expect((await server.ask("PATCH", `${flagsPath}${free.id}/`, { body: { active: true } })).status).toBe(
      403,
    );
  });

  test("pending changes of a deleted flag can be cancelled", async () => {
    using it = await prepared();
    const { server, flag } = it;
    const payload = { operation: "update_status", value: false };
    const scheduled_at = it.later(10).toISOString();
    await server.ask("POST", scheduled, { body: { record_id: flag.id, payload, scheduled_at } });
    await server.ask("POST", requests, { body: { flag_id: flag.id, changes: { active: false } } });
    await server.ask("PATCH", `${flagsPath}${flag.id}/`, { body: { deleted: true } });
    expect((await server.ask("DELETE", `${scheduled}1/`)).status).toBe(204);
    const withdrawn = await server.ask("POST", `${requests}1/reject/`);
    expect([withdrawn.status, withdrawn.body.state]).toEqual([200, "withdrawn"]);
  });

  test("a proposal is declined, withdrawn, or overtaken", async () => {
    using it = await prepared();
    const { server, flag, bob } = it;
    const propose = async (changes: object) =>
      (await server.ask("POST", requests, { body: { flag_id: flag.id, changes }, key: bob })).body
        .id as number;
    const state = async (id: number, how: string, key?: string) =>
      (await server.ask("POST", `${requests}${id}/${how}/`, { key })).body.state;
    expect(await state(await propose({ active: false }), "reject")).toBe("rejected");
    expect(await state(await propose({ active: false }), "reject", bob)).toBe("withdrawn");
    const overtaken = await propose({ name: "Bob's" });
    await server.ask("PATCH", `${flagsPath}${flag.id}/`, { body: { name: "Ann's" } });
    expect((await server.ask("POST", `${requests}${overtaken}/approve/`)).status).toBe(409);
    expect((await server.ask("GET", `${requests}?state=pending`)).body.results).toHaveLength(1);
    expect((await it.read()).name).toBe("Ann's");
    expect((await server.ask("POST", requests, { body: { flag_id: flag.id, changes: {} } })).status).toBe(
      400,
    );
    expect((await server.ask("GET", `${requests}?state=x`)).status).toBe(400);
  });

  test("only admins may set it", async () => {
    using it = await prepared();
    const { status } = await it.server.ask("PATCH", "/api/projects/1/", {
      body: { approvals: "all" },
      key: it.bob,
    });
    expect(status).toBe(403);
  });
});

test("the started executable makes a scheduled change", async () => {
  await using server = await ServerProcess.start();
  const { id } = await (await server.api(flagsPath, { method: "POST", body: { key: "soon" } })).json();
  // A time that has passed when the request arrives is rejected.
  await until(async () => {
    const scheduled_at = new Date(Date.now() + 500).toISOString();
    const body = { record_id: id, payload: { operation: "update_status", value: false }, scheduled_at };
    return (await server.api(scheduled, { method: "POST", body })).status === 201;
  }, "the change is scheduled");
  await until(
    async () => (await (await server.api(`${flagsPath}${id}/`)).json()).active === false,
    "it is made",
  );
});
