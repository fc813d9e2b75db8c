/** Guardrails that roll back protected flags, and who may set them. Source: contract, experiments 2.8. */

import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { initializedDirectory, ServerProcess, until } from "../support/server.ts";

// biome-ignore lint/suspicious/noExplicitAny: responses of any route
type Body = any;

let server: ServerProcess;
beforeAll(async () => {
  const directory = await initializedDirectory();
  server = await ServerProcess.start({ directory, args: ["--rollback-interval", "1s"] });
});
afterAll(async () => await server[Symbol.asyncDispose]());
beforeEach(async () => await setApprovals("off"));

async function setApprovals(approvals: "off" | "all"): Promise<void> {
  await server.api("/api/projects/1/", { method: "PATCH", body: { approvals } });
}

async function api(
  path: string,
  init: { method?: string; body?: object; key?: string } = {},
): Promise<{ status: number; body: Body }> {
  const response = await server.api(`/api/projects/1${path}`, init);
  return { status: response.status, body: await response.json() };
}
const post = (path: string, body: object = {}, key?: string) => api(path, { method: "POST", body, key });
const patch = (path: string, body: object, key?: string) => api(path, { method: "PATCH", body, key });

async function createKey(scopes: string[]): Promise<string> {
  const response = await server.api("/api/personal_api_keys/", {
    method: "POST",
    body: { label: "narrow", scopes },
  });
  return ((await response.json()) as Body).value;
}

const orders = (guardrail?: object) => ({
  kind: "ExperimentMetric",
  metric_type: "funnel",
  uuid: "orders",
  name: "Orders",
  series: [{ kind: "EventsNode", event: "order sent" }],
  ...(guardrail ? { guardrail } : {}),
});
const rollback = { tolerance: 0.05, action: "rollback" };
const warn = { tolerance: 0.05, action: "warn" };
const denied = (code: string) => ({ status: 403, body: { code } });

/** A flag with two variants that no experiment created. */
async function createFlag(key: string, active: boolean): Promise<void> {
  const variants = ["control", "test"].map((name) => ({ key: name, rollout_percentage: 50 }));
  const filters = { groups: [{ rollout_percentage: 100 }], multivariate: { variants } };
  expect((await post("/feature_flags/", { key, active, filters })).status).toBe(201);
}

/** 400 exposed persons per variant, some of whom order. */
function exposures(flag: string, ordering: Record<string, number>): object[] {
  return Object.entries(ordering).flatMap(([variant, count]) =>
    Array.from({ length: 400 }, (_, index) => [
      {
        event: "$feature_flag_called",
        distinct_id: `${variant}-${index}`,
        properties: { $feature_flag: flag, $feature_flag_response: variant },
      },
      ...(index < count ? [{ event: "order sent", distinct_id: `${variant}-${index}` }] : []),
    ]).flat(),
  );
}

test("a rollback of a protected flag needs no approval; resuming the experiment does", async () => {
  const { body } = await post("/experiments/", { name: "Guarded", metrics: [orders(rollback)] });
  const flagPath = `/feature_flags/${body.feature_flag.id}/`;
  await post(`/experiments/${body.id}/launch/`);
  await setApprovals("all");
  await server.batch(exposures("guarded", { control: 300, test: 60 }));
  const off = await until(async () => {
    // Checks without new events do not count.
    await server.capture({ event: "heartbeat", distinct_id: "server" });
    const { body: flag } = await api(flagPath);
    return !flag.active && flag;
  }, "the flag is rolled back");
  expect(off).toMatchObject({ performed_rollback: true });
  const pathOf = `/experiments/${body.id}/`;
  expect(await api(pathOf)).toMatchObject({ body: { status: "paused", end_date: null } });
  const [entry] = (await api(`${flagPath}activity/`)).body.results;
  expect(entry).toMatchObject({
    user: { is_system: true },
    detail: {
      note: expect.stringContaining('Guardrail "Orders" of the experiment "Guarded": test is worse'),
      trigger: { job_type: "guardrail", payload: { sums: { test: { persons: 400, sum: 60 } } } },
    },
  });
  expect(entry.detail.changes.map((one: { field: string }) => one.field).sort()).toEqual([
    "active",
    "performed_rollback",
    "version",
  ]);
  expect(await post(`${pathOf}resume/`)).toMatchObject(denied("approval_required"));
  const reverted = await post(`${flagPath}revert/`, { activity_id: entry.id });
  expect(reverted).toMatchObject(denied("approval_required"));
  expect(await api(flagPath)).toMatchObject({ body: { active: false, performed_rollback: true } });
  await setApprovals("off");
  expect(await post(`${pathOf}resume/`)).toMatchObject({
    status: 200,
    body: { status: "running", feature_flag: { performed_rollback: false } },
  });
}, 120_000);

test("a guardrail of an existing flag needs the permission to change the flag", async () => {
  await createFlag("older", false);
  const narrow = await createKey(["experiment:write", "experiment_saved_metric:write"]);
  const linked = { name: "Linked", feature_flag_key: "older" };
  expect(await post("/experiments/", { ...linked, metrics: [orders(rollback)] }, narrow)).toMatchObject(
    denied("permission_denied"),
  );
  const { body } = await post("/experiments/", { ...linked, metrics: [orders(warn)] }, narrow);
  const path = `/experiments/${body.id}/`;
  expect(await patch(path, { metrics: [orders(rollback)] }, narrow)).toMatchObject(
    denied("permission_denied"),
  );
  const { body: saved } = await post("/experiment_saved_metrics/", { name: "Saved", query: orders(warn) });
  const links = [{ id: saved.id, metadata: { type: "guardrail" } }];
  expect(await patch(path, { saved_metrics_ids: links }, narrow)).toMatchObject({ status: 200 });
  const savedPath = `/experiment_saved_metrics/${saved.id}/`;
  expect(await patch(savedPath, { query: orders(rollback) }, narrow)).toMatchObject(
    denied("permission_denied"),
  );
  expect(await api(savedPath)).toMatchObject({ body: { query: { guardrail: warn } } });
  expect((await patch(savedPath, { query: orders(rollback) })).status).toBe(200);
  // What was there before does not prevent other changes.
  expect((await patch(path, { name: "Renamed" }, narrow)).status).toBe(200);
  const own = await post("/experiments/", { name: "Own", metrics: [orders(rollback)] }, narrow);
  expect(own.status).toBe(201);
});

test("while a protected flag is on, a guardrail that rolls it back needs approval", async () => {
  const { body } = await post("/experiments/", { name: "Protected" });
  const path = `/experiments/${body.id}/`;
  await post(`${path}launch/`);
  await setApprovals("all");
  expect(await patch(path, { metrics: [orders(rollback)] })).toMatchObject({
    ...denied("approval_required"),
    body: { detail: expect.stringContaining("`rollback_conditions`") },
  });
  expect(await api(path)).toMatchObject({ body: { metrics: [] } });
  expect((await patch(path, { metrics: [orders(warn)] })).status).toBe(200);
  await createFlag("on", true);
  const linked = { name: "On", feature_flag_key: "on", metrics: [orders(rollback)] };
  expect(await post("/experiments/", linked)).toMatchObject(denied("approval_required"));
  // A draft whose flag is off: switching it on needs approval.
  expect((await post("/experiments/", { name: "Draft", metrics: [orders(rollback)] })).status).toBe(201);
});

test("a guardrail that was set while its experiment was deleted is checked when the experiment is restored", async () => {
  await createFlag("restored", false);
  const created = await post("/experiments/", { name: "Restored", feature_flag_key: "restored" });
  expect(created.status).toBe(201);
  const path = `/experiments/${created.body.id}/`;
  const key = await createKey(["experiment:read", "experiment:write"]);
  expect((await patch(path, { deleted: true, metrics: [orders(rollback)] }, key)).status).toBe(200);
  expect((await patch(path, { deleted: false }, key)).status).toBe(403);
  expect((await patch(path, { deleted: false })).status).toBe(200);
});
