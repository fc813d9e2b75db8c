/** The size of a cohort by day: at each calculation, and counted once a day. */

import { expect, test } from "bun:test";
import { CohortSizeMonitor, cohortsPerCheck } from "../../src/cohorts/cohort-size-monitor.ts";
import { cohortSizeDaysMax, recordSize } from "../../src/cohorts/cohort-sizes.ts";
import { TestServer } from "../support/management-server.ts";
import { until } from "../support/server.ts";

const base = "/api/projects/1/cohorts/";
const dayMs = 86_400_000;
const isPro = { key: "plan", type: "person", value: "pro", operator: "exact" };
const filters = { properties: { type: "AND", values: [{ type: "AND", values: [isPro] }] } };

function prepare() {
  const counted: number[] = [];
  const found = { members: 3, isFailing: false };
  const server = new TestServer();
  const countMembers = async (_: number, id: number) => {
    counted.push(id);
    if (found.isFailing) throw new Error("the event store is away");
    return found.members;
  };
  const errors: unknown[] = [];
  const monitor = new CohortSizeMonitor({
    metadata: server.metadata,
    persons: server.deps.persons,
    cohortFiller: { countMembers },
    change: async (work) => work(),
    onError: (error) => void errors.push(error),
  });
  const create = async (body: object) =>
    (await server.ask("POST", base, { body: { name: "Pros", ...body } })).body.id as number;
  const sizes = async (id: number) => (await server.ask("GET", `${base}${id}/sizes/`)).body.results;
  return { server, monitor, counted, found, errors, create, sizes };
}

test("a dynamic cohort is counted once a day, and the result is its count", async () => {
  const { server, monitor, counted, found, create, sizes } = prepare();
  using _ = server;
  const id = await create({ filters });
  await until(async () => !(await server.ask("GET", `${base}${id}/`)).body.is_calculating, "it is counted");
  // The first calculation belongs to the day of the machine's clock.
  server.metadata.change((t) => t.run("DELETE FROM cohort_size"));
  const first = new Date("2026-11-01T10:00:00Z");
  await monitor.check(first);
  await monitor.check(new Date(first.getTime() + 3_600_000));
  expect(counted).toEqual([id]);
  found.members = 5;
  await monitor.check(new Date(first.getTime() + 2 * dayMs));
  expect(await sizes(id)).toEqual([
    { day: "2026-11-01", count: 3 },
    { day: "2026-11-03", count: 5 },
  ]);
  const { body } = await server.ask("GET", `${base}${id}/`);
  expect([body.count, body.last_calculation]).toEqual([5, "2026-11-03T10:00:00.000000Z"]);
});

test("a static cohort has its members counted, once it has a list", async () => {
  const { server, monitor, create, sizes } = prepare();
  using _ = server;
  const empty = await create({ is_static: true });
  const listed = await create({ is_static: true, csv: "a\nb" });
  await monitor.check(new Date("2036-11-01T10:00:00Z"));
  expect(await sizes(empty)).toEqual([]);
  expect((await sizes(listed)).at(-1)).toEqual({ day: "2036-11-01", count: 0 });
});

test("a failed count is retried, and deleted cohorts are skipped", async () => {
  const { server, monitor, counted, found, errors, create, sizes } = prepare();
  using _ = server;
  const id = await create({ filters });
  const deleted = await create({ filters });
  await server.ask("PATCH", `${base}${deleted}/`, { body: { deleted: true } });
  server.metadata.change((t) => t.run("DELETE FROM cohort_size"));
  const now = new Date("2026-11-01T10:00:00Z");
  found.isFailing = true;
  await monitor.check(now);
  expect([errors.length, await sizes(id)]).toEqual([1, []]);
  found.isFailing = false;
  await monitor.check(now);
  expect([await sizes(id), counted]).toEqual([[{ day: "2026-11-01", count: 3 }], [id, id]]);
});

test("sizes are kept for a limited number of days, and a limited number of cohorts is counted per check", async () => {
  const { server, monitor, counted, create, sizes } = prepare();
  using _ = server;
  const id = await create({ filters });
  const start = Date.parse("2020-01-01");
  server.metadata.change((t) => {
    t.run("DELETE FROM cohort_size");
    for (let day = 0; day < cohortSizeDaysMax + 2; day++)
      recordSize(t, id, day, new Date(start + day * dayMs));
  });
  const found = await sizes(id);
  expect([found.length, found[0].count]).toEqual([cohortSizeDaysMax, 2]);
  for (let more = 0; more < cohortsPerCheck; more++) await create({ filters });
  server.metadata.change((t) => t.run("DELETE FROM cohort_size"));
  await monitor.check(new Date("2026-11-01"));
  expect(counted).toHaveLength(cohortsPerCheck);
  await monitor.check(new Date("2026-11-01"));
  expect(counted).toHaveLength(cohortsPerCheck + 1);
});

test("the sizes of an unknown cohort are not found", async () => {
  using server = new TestServer();
  expect((await server.ask("GET", `${base}999/sizes/`)).status).toBe(404);
});
