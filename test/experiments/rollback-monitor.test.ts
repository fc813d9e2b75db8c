/** Guardrails that roll back. Source: contract, experiments 2.8. */

import { expect, test } from "bun:test";
import { activity } from "../../src/accounts/schema.ts";
import type { ExperimentRequest, ExperimentSums } from "../../src/events/insights/experiment.ts";
import { RollbackMonitor } from "../../src/experiments/rollback-monitor.ts";
import { findFlag } from "../../src/flags/store/flag.ts";
import { experimentOperations } from "../../src/operations/experiments.ts";
import { updateOneFlag } from "../../src/operations/flags.ts";
import type { Operation, Run } from "../../src/operations/operation.ts";
import { TestServer } from "../support/management-server.ts";

const run = (operation: Operation, context: object, input: object) =>
  (operation.run as Run)(context, input as never);
const named = (id: string) => experimentOperations.find((one) => one.id === id)!;
const start = new Date("2026-11-01T10:00:00Z");
const after = (minutes: number) => new Date(start.getTime() + minutes * 60_000);

/** A server with a running experiment; `conversions` are those of 20,000 persons of the variant. */
function prepare(guardrail: object, others: object = {}) {
  const server = new TestServer();
  const world = { conversions: 3_300, persons: 20_000, revision: 0, hasEvents: true };
  const sums = ({ variants }: ExperimentRequest): ExperimentSums => ({
    exposures: [],
    metrics: [
      variants.map((variant) => {
        const y = variant === "test" ? world.conversions : world.persons / 5;
        return { variant, n: world.persons, y, yy: y };
      }),
    ],
  });
  const project = server.metadata.projects.find(1)!;
  const context = { stores: server.deps, actor: { kind: "operator", author: null }, project, now: start };
  const metric = {
    kind: "ExperimentMetric",
    metric_type: "funnel",
    name: "Orders",
    guardrail,
    series: [{ kind: "EventsNode", event: "order paid" }],
  };
  const created = run(named("experiments.create"), context, {
    name: "Checkout",
    metrics: [metric],
    ...others,
  }) as {
    id: number;
    feature_flag: { id: number };
  };
  run(named("experiments.launch"), context, { id: created.id });
  const monitor = new RollbackMonitor({
    ...server.deps,
    experiments: {
      experimentSums: async (_, request) => ({ sums: sums(request), computedAt: 0, isCached: false }),
    },
    insights: { run: async () => ({ results: null, computedAt: 0, isCached: false }) },
    revision: async () => String(world.hasEvents ? ++world.revision : world.revision),
    change: async (work) => work(),
    onError: (error) => {
      throw error;
    },
  });
  const flag = () => findFlag(server.metadata.db, project.id, created.feature_flag.id)!;
  const switchOn = (now: Date) =>
    run(updateOneFlag, { ...context, now }, { id: created.feature_flag.id, body: { active: true } });
  return { server, world, monitor, flag, switchOn };
}

test("two violated checks in a row switch the flag off, with the figures in the activity log", async () => {
  const { server, monitor, flag, switchOn } = prepare({ tolerance: 0.05, action: "rollback" });
  using _ = server;
  await monitor.check(after(10));
  expect(flag()).toMatchObject({ active: true });
  await monitor.check(after(20));
  expect(flag()).toMatchObject({ active: false, performedRollback: true });
  const entries = server.metadata.db.select().from(activity).all();
  const entry = entries.find(({ detail }) => JSON.stringify(detail).includes("guardrail"))!;
  expect(entry).toMatchObject({ isSystem: true, scope: "FeatureFlag" });
  expect(entry.detail).toMatchObject({
    note: 'Guardrail "Orders" of the experiment "Checkout": test is worse by -24.0 % to -11.0 %.',
    trigger: {
      job_type: "guardrail",
      payload: { variant: "test", sums: { test: { persons: 20_000, sum: 3_300 } } },
    },
  });
  // Switched on by a user: nothing acts for a day.
  switchOn(after(30));
  expect(flag()).toMatchObject({ active: true, performedRollback: false });
  for (const minutes of [40, 50, 60]) await monitor.check(after(minutes));
  expect(flag()).toMatchObject({ active: true });
  for (const minutes of [10, 20]) await monitor.check(after(30 + 24 * 60 + minutes));
  expect(flag()).toMatchObject({ active: false, performedRollback: true });
});

test("an excluded variant is still served, so a violation in it switches the flag off", async () => {
  const variants = ["control", "test", "new"].map((key) => ({
    key,
    rollout_percentage: key === "new" ? 34 : 33,
  }));
  const guardrail = { tolerance: 0.05, action: "rollback" };
  const { server, monitor, flag } = prepare(guardrail, {
    parameters: { feature_flag_variants: variants },
    excluded_variants: ["test"],
  });
  using _ = server;
  for (const minutes of [10, 20]) await monitor.check(after(minutes));
  expect(flag()).toMatchObject({ active: false, performedRollback: true });
});

test("a check without a violation starts over", async () => {
  const { server, world, monitor, flag } = prepare({ tolerance: 0.05, action: "rollback" });
  using _ = server;
  await monitor.check(after(10));
  world.conversions = 4_000;
  await monitor.check(after(20));
  world.conversions = 3_300;
  await monitor.check(after(30));
  expect(flag()).toMatchObject({ active: true });
  await monitor.check(after(40));
  expect(flag()).toMatchObject({ active: false });
});

test("without new events, a check does not count", async () => {
  const { server, world, monitor, flag } = prepare({ tolerance: 0.05, action: "rollback" });
  using _ = server;
  await monitor.check(after(10));
  world.hasEvents = false;
  for (const minutes of [20, 30, 40]) await monitor.check(after(minutes));
  expect(flag()).toMatchObject({ active: true });
  world.hasEvents = true;
  await monitor.check(after(50));
  expect(flag()).toMatchObject({ active: false });
});

test("a guardrail that warns, and one with too few persons, never act", async () => {
  for (const [guardrail, persons] of [
    [{ tolerance: 0.05, action: "warn" }, 20_000],
    [{ tolerance: 0.05, action: "rollback" }, 50],
  ] as const) {
    const { server, world, monitor, flag } = prepare(guardrail);
    using _ = server;
    Object.assign(world, { persons, conversions: persons / 10 });
    for (const minutes of [10, 20, 30]) await monitor.check(after(minutes));
    expect(flag()).toMatchObject({ active: true });
  }
});
