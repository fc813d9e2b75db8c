/** Scheduled changes and change requests: the same commands and tools in a data directory and on a server. */

import { beforeAll, describe, expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

let approverKey: string;
const approver = "approver@example.com";

useServer({ args: ["--mcp", "on"] });
beforeAll(async () => {
  const path = "/api/organizations/@current/members/";
  await server.api(path, { method: "POST", body: { email: approver, first_name: "Bo", level: 1 } });
  const { value } = (await json(
    ["keys", "create", "--user", approver, "--scope", "feature_flag:write"],
    local(),
  )) as { value: string };
  approverKey = value;
  await json(["flags", "create", "careful", "--rollout", "10", "--tag", "critical"], local());
  await server.api("/api/projects/@current/", { method: "PATCH", body: { approvals: "critical" } });
});

const local = () => ["--data-dir", server.dataDir];
const remote = (key = server.initialized.personal_api_key) => ["--url", server.url, "--key", key];
const places = [
  ["in a data directory", local, () => [...local(), "--user", approver]],
  ["on a server", remote, () => remote(approverKey)],
] as const;

async function json(args: string[], where: string[]): Promise<unknown> {
  const { stdout, stderr, code } = await flagkeep([...args, ...where, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout);
}
const api = async (path: string) => await (await server.api(`/api/projects/@current/${path}`)).json();
/** The id of a new change request by the owner. */
async function requestChange(changes: object, where: string[]): Promise<number> {
  const args = ["flags", "request-change", "careful", "--changes", JSON.stringify(changes)];
  return ((await json(args, where)) as { id: number }).id;
}

describe.each(places)("%s", (place, where, asApprover) => {
  const key = `later-${place.replaceAll(" ", "-")}`;

  test("a change is scheduled, listed and cancelled", async () => {
    await json(["flags", "create", key, "--rollout", "10"], where());
    const at = "2099-01-02T03:04:05.000000Z";
    const created = (await json(["flags", "schedule", key, "--at", at, "--off"], where())) as { id: number };
    expect(created).toMatchObject({
      flag: key,
      flag_key: key,
      scheduled_at: at,
      executed_at: null,
      payload: { operation: "update", value: { active: false } },
    });
    const { flag: _, ...body } = created as { flag: string; record_id: number } & { id: number };
    expect(await api(`scheduled_changes/${created.id}/`)).toEqual(body as never);
    const listed = await json(["flags", "scheduled", "--flag-id", String(body.record_id)], where());
    expect(listed).toEqual([created]);
    expect(await json(["flags", "unschedule", String(created.id)], where())).toEqual({
      id: created.id,
      unscheduled: true,
    });
    const again = await flagkeep(["flags", "unschedule", String(created.id), ...where()]);
    expect([again.code, again.stdout]).toEqual([1, ""]);
  });

  test("a rollout is scheduled in steps; a fraction changes the condition set", async () => {
    const times = ["--at", "2099-01-02", "--every", "2h", "--steps", "5,50"];
    expect(await json(["flags", "rollout", key, ...times], where())).toMatchObject([
      { payload: { operation: "update_rollout", value: { condition_index: 0, rollout_percentage: 5 } } },
      { scheduled_at: "2099-01-02T02:00:00.000000Z", payload: { value: { rollout_percentage: 50 } } },
    ]);
    const half = await json(["flags", "schedule", key, "--at", "2099-01-02", "--rollout", "0.5"], where());
    expect(half).toMatchObject({
      payload: { value: { filters: { groups: [{ rollout_percentage: 0.5 }] } } },
    });
  });

  test("a change request is listed, rejected and approved, not by its author", async () => {
    const owner = where === local ? [...local(), "--user", "owner@example.com"] : remote();
    const id = await requestChange({ rollout_percentage: where === local ? 20 : 30 }, owner);
    const [first] = (await json(["flags", "change-requests", "--state", "pending"], where())) as object[];
    expect(first).toMatchObject({ id, flag: "careful", cohort: "", flag_key: "careful" });
    // Only the changed members, as before; the API has all.
    expect(Object.keys((first as { original: object }).original)).toEqual(["rollout_percentage"]);
    const own = await flagkeep(["flags", "approve", String(id), ...owner]);
    expect([own.code, own.stderr]).toEqual([1, expect.stringContaining("by another user")]);
    const { stdout } = await flagkeep(["flags", "approve", String(id), ...asApprover()]);
    expect(stdout).toBe(`Change request ${id} for flag careful is applied.\n`);
    const other = await requestChange({ active: false }, owner);
    expect(await json(["flags", "reject", String(other), ...asApprover()], [])).toMatchObject({
      id: other,
      state: "rejected",
      decided_by: { email: approver },
    });
    expect(await json(["flags", "get", "careful"], where())).toMatchObject({ active: true });
  });
});

test("in a data directory, no step of a rollout is scheduled if one is invalid", async () => {
  await json(["flags", "create", "stepped", "--rollout", "10"], local());
  const before = (await json(["flags", "scheduled"], local())) as object[];
  const args = ["rollout", "stepped", "--at", "2099-01-02", "--condition-set", "9"];
  expect(await flagkeep(["flags", ...args, ...local()])).toMatchObject({ code: 2, stdout: "" });
  expect(await json(["flags", "scheduled"], local())).toEqual(before as never);
});

test("tools of MCP schedule and cancel a change of the flag with a key, and request one", async () => {
  const call = async (name: string, args: object) => {
    const response = await server.post(
      "/mcp",
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
      {
        Accept: "application/json, text/event-stream",
        Authorization: `Bearer ${server.initialized.personal_api_key}`,
      },
    );
    const { result } = (await response.json()) as {
      result: { content: { text: string }[]; isError?: boolean };
    };
    expect(result.isError ?? false).toBe(false);
    return result.content[0]!.text;
  };
  await json(["flags", "create", "tooled"], local());
  const change = { operation: "update_status", value: false };
  const { id, flag_key, record_id } = JSON.parse(
    await call("schedule_flag_change", {
      key: "tooled",
      payload: change,
      scheduled_at: "2099-01-02T00:00:00Z",
    }),
  );
  expect(flag_key).toBe("tooled");
  const { results } = JSON.parse(await call("list_scheduled_changes", { record_id }));
  expect(results).toMatchObject([{ id, payload: change }]);
  expect(await call("cancel_scheduled_change", { id })).toBe("");
  expect((await server.api(`/api/projects/@current/scheduled_changes/${id}/`)).status).toBe(404);
  const requested = JSON.parse(
    await call("request_change", { flag_id: record_id, changes: { active: false } }),
  );
  expect(requested).toMatchObject({ state: "pending", flag_key: "tooled" });
  expect(JSON.parse(await call("list_change_requests", { state: "pending" })).results[0]).toEqual(requested);
});
