/** Rollback conditions of flags. Source: contract, experiments 2.8. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { readConditions, rollbackConditionsMax } from "../../src/experiments/rollback-conditions.ts";
import type { Json } from "../../src/lib/json/value.ts";
import { initializedDirectory, ServerProcess, until } from "../support/server.ts";

// biome-ignore lint/suspicious/noExplicitAny: responses of any route
type Body = any;

let server: ServerProcess;
const start = async (directory: Awaited<ReturnType<typeof initializedDirectory>>) =>
  await ServerProcess.start({ directory, args: ["--rollback-interval", "1s"] });
beforeAll(async () => {
  server = await start(await initializedDirectory());
});
afterAll(async () => await server[Symbol.asyncDispose]());

async function api(path: string, body?: object, method = body === undefined ? "GET" : "POST"): Promise<Body> {
  const response = await server.api(`/api/projects/1${path}`, { method, body });
  expect(response.status).toBeLessThan(300);
  return await response.json();
}

const variants = { multivariate: { variants: [{ key: "a", rollout_percentage: 100 }] } };
const makeFlag = (key: string, fields: object) =>
  api("/feature_flags/", { key, filters: { groups: [{ rollout_percentage: 100 }], ...variants }, ...fields });
const rate = { threshold_type: "event_rate", event: "$exception", window_minutes: 10 };

/** Persons who got the flag on, some of whom then had an exception. */
const persons = (key: string, count: number, failing: number) =>
  Array.from({ length: count }, (_, index) => [
    {
      event: "$feature_flag_called",
      distinct_id: `${key}-${index}`,
      properties: { $feature_flag: key, $feature_flag_response: "a" },
    },
    ...(index < failing ? [{ event: "$exception", distinct_id: `${key}-${index}` }] : []),
  ]).flat();

/** Keeps events coming, because checks without new events do not count. */
async function whileEventsArrive<Value>(found: () => Promise<Value | false>, what: string): Promise<Value> {
  return await until(async () => {
    await server.capture({ event: "heartbeat", distinct_id: "server" });
    await Bun.sleep(200);
    return await found();
  }, what);
}

const rolledBack = (id: number) =>
  whileEventsArrive(async () => {
    const flag = await api(`/feature_flags/${id}/`);
    return !flag.active && flag;
  }, "the flag is rolled back");

test("errors of the persons with the flag switch it off in one change that can be reverted", async () => {
  const condition = { ...rate, operator: "gt", threshold: 0.2 };
  const calm = await makeFlag("calm", { rollback_conditions: [condition] });
  const few = await makeFlag("few", { rollback_conditions: [condition] });
  const bad = await makeFlag("bad", { rollback_conditions: ["free-form", condition] });
  const schedule = (operation: string, value: unknown, day: number) =>
    api("/scheduled_changes/", {
      record_id: bad.id,
      model_name: "FeatureFlag",
      payload: { operation, value },
      scheduled_at: new Date(Date.now() + day * 86_400_000).toISOString(),
    });
  const steps = [
    await schedule("update_rollout", { condition_index: 0, rollout_percentage: 50 }, 1),
    await schedule("update_rollout", { condition_index: 0, rollout_percentage: 100 }, 2),
  ];
  const otherChange = await schedule("update_status", false, 3);
  const dependent = await makeFlag("dependent", {
    filters: {
      groups: [
        { properties: [{ type: "flag", key: String(bad.id), value: true, operator: "flag_evaluates_to" }] },
      ],
    },
  });
  await server.batch([...persons("calm", 120, 12), ...persons("few", 50, 50), ...persons("bad", 120, 60)]);
  const off = await rolledBack(bad.id);
  expect(off).toMatchObject({ performed_rollback: true, version: bad.version + 1 });
  // The rollback ends the gradual rollout, and no other scheduled change.
  for (const { id } of steps) {
    const { executed_at: at, failure_reason: reason } = await api(`/scheduled_changes/${id}/`);
    expect(at).toBeString();
    expect(reason).toStartWith("Stopped: Rollback condition: $exception: 60 of 120 persons");
  }
  expect(await api(`/scheduled_changes/${otherChange.id}/`)).toMatchObject({ executed_at: null });
  const [entry] = (await api(`/feature_flags/${bad.id}/activity/`)).results;
  expect(entry).toMatchObject({
    user: { is_system: true },
    activity: "updated",
    detail: {
      note: "Rollback condition: $exception: 60 of 120 persons with the flag in 10 minutes, above the threshold of 0.2.",
      trigger: { job_type: "rollback_condition", payload: { share: 0.5, persons: 120 } },
    },
  });
  const evaluated = await server.post("/flags/?v=2", { token: server.token, distinct_id: "bad-1" });
  const flags = ((await evaluated.json()) as Body).flags;
  expect(flags).toMatchObject({ calm: { enabled: true }, dependent: { enabled: false } });
  expect(flags.bad).toBeUndefined();
  // Neither too small a share nor too few persons, nor another flag.
  for (const { id } of [calm, few, dependent])
    expect(await api(`/feature_flags/${id}/`)).toMatchObject({ active: true });
  const reverted = await api(`/feature_flags/${bad.id}/revert`, { activity_id: entry.id });
  expect(reverted).toMatchObject({ active: true, performed_rollback: false });
  // Held for a day: another flag is rolled back meanwhile, this one is not.
  const other = await makeFlag("other", { rollback_conditions: [condition] });
  await server.batch(persons("other", 120, 60));
  await rolledBack(other.id);
  expect(await api(`/feature_flags/${bad.id}/`)).toMatchObject({ active: true });
}, 120_000);

test("the mean of an event per day", async () => {
  const metric = { event: "order paid", math: "sum", math_property: "amount" };
  const insight = { threshold_type: "insight", threshold_metric: metric };
  const high = await makeFlag("high", {
    rollback_conditions: [{ ...insight, operator: "gt", threshold: 30 }],
  });
  const low = await makeFlag("low", { rollback_conditions: [{ ...insight, operator: "lt", threshold: 30 }] });
  const day = 86_400_000;
  const paid = [0, 3, 6, 9].map((days) => ({
    event: "order paid",
    distinct_id: "kim",
    properties: { amount: 63 },
    timestamp: new Date(Date.now() - days * day - 60_000).toISOString(),
  }));
  await server.batch(paid);
  await rolledBack(low.id);
  expect(await api(`/feature_flags/${high.id}/`)).toMatchObject({ active: true });
  const [entry] = (await api(`/feature_flags/${low.id}/activity/`)).results;
  expect(entry.detail.trigger.payload).toMatchObject({ event: "order paid", mean_per_day: 27 });
}, 120_000);

test("a metric of a running experiment", async () => {
  const uuid = "orders";
  const metric = {
    kind: "ExperimentMetric",
    metric_type: "funnel",
    uuid,
    name: "Orders",
    series: [{ kind: "EventsNode", event: "order sent" }],
  };
  const created = await api("/experiments/", { name: "Worse", feature_flag_key: "worse", metrics: [metric] });
  const condition = { threshold_type: "experiment_metric", metric_uuid: uuid, tolerance: 0.1, alpha: 0.05 };
  await api(`/feature_flags/${created.feature_flag.id}/`, { rollback_conditions: [condition] }, "PATCH");
  await api(`/experiments/${created.id}/launch/`, {});
  const seen = (variant: string, orders: number) =>
    Array.from({ length: 400 }, (_, index) => [
      {
        event: "$feature_flag_called",
        distinct_id: `worse-${variant}-${index}`,
        properties: { $feature_flag: "worse", $feature_flag_response: variant },
      },
      ...(index < orders ? [{ event: "order sent", distinct_id: `worse-${variant}-${index}` }] : []),
    ]).flat();
  await server.batch([...seen("control", 300), ...seen("test", 60)]);
  await rolledBack(created.feature_flag.id);
  expect(await api(`/experiments/${created.id}/`)).toMatchObject({ status: "paused" });
}, 120_000);

test("conditions of an earlier version have no effect until they are saved again", async () => {
  const condition = { ...rate, operator: "gt", threshold: 0.2 };
  const old = await makeFlag("old", { rollback_conditions: [condition] });
  const fresh = await makeFlag("fresh", { rollback_conditions: [condition] });
  const { directory } = server;
  server.process.kill("SIGTERM");
  await server.process.exited;
  const metadata = new Database(join(directory.dataDir, "flagkeep.sqlite"));
  metadata.run("UPDATE flag SET rollback_conditions_at = NULL WHERE key = 'old'");
  metadata.close();
  server = await start(directory);
  await server.batch([...persons("old", 120, 60), ...persons("fresh", 120, 60)]);
  await rolledBack(fresh.id);
  expect(await api(`/feature_flags/${old.id}/`)).toMatchObject({ active: true, performed_rollback: false });
  // A change of another field is not a change of the conditions.
  await api(`/feature_flags/${old.id}/`, { name: "renamed" }, "PATCH");
  await server.batch(persons("fresh", 10, 0));
  const next = await makeFlag("next", { rollback_conditions: [condition] });
  await server.batch(persons("next", 120, 60));
  await rolledBack(next.id);
  expect(await api(`/feature_flags/${old.id}/`)).toMatchObject({ active: true });
  await api(`/feature_flags/${old.id}/`, { rollback_conditions: [condition] }, "PATCH");
  await rolledBack(old.id);
}, 180_000);

test("other forms are free-form and have no effect", () => {
  const valid = { ...rate, operator: "gt", threshold: 0.2 };
  const uuid = { threshold_type: "experiment_metric", metric_uuid: "x" };
  const accepted: Json[] = [
    valid,
    { ...valid, minimum_persons: 1, properties: [{ key: "a", value: "b" }] },
    uuid,
    { ...uuid, tolerance: 0, alpha: 0.05 },
    { threshold_type: "insight", threshold_metric: { event: "x" }, operator: "lt", threshold: 0 },
  ];
  expect(readConditions(accepted).map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
  const inert: Json[] = [
    null,
    1,
    "x",
    [],
    {},
    { threshold: 1 },
    { ...valid, threshold_type: "sentry" },
    { ...valid, operator: "eq" },
    { ...valid, threshold: "1" },
    { ...valid, event: null },
    ...[0, -1, 43_201, "5"].map((window_minutes) => ({ ...valid, window_minutes })),
    ...[0, "1"].map((minimum_persons) => ({ ...valid, minimum_persons })),
    { ...valid, properties: [{ key: "a", value: "(", operator: "regex" }] },
    { ...valid, properties: "x" },
    { ...uuid, tolerance: 1 },
    { ...uuid, alpha: 0 },
    { ...uuid, metric_uuid: 1 },
    { threshold_type: "insight", threshold_metric: { events: [] }, operator: "lt", threshold: 0 },
    {
      threshold_type: "insight",
      threshold_metric: { event: "x", math: "sum" },
      operator: "lt",
      threshold: 0,
    },
  ];
  expect(readConditions(inert)).toEqual([]);
  for (const sent of [null, {}, "x", 5]) expect(readConditions(sent)).toEqual([]);
  expect(readConditions(Array(rollbackConditionsMax + 1).fill(valid))).toHaveLength(rollbackConditionsMax);
});
