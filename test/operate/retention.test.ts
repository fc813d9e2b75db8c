/** Events that are older than they may be: which go, when, and that they do not come back. */

import { afterAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { settings } from "../../src/config/settings.ts";
import { Retention } from "../../src/operate/retention.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder, until } from "../support/server.ts";

describe("rules", () => {
  const parse = settings["events-retention"].parse;
  const rules: [text: string, days: number | null, projects: [number, number | null][]][] = [
    ["", null, []],
    ["400d", 400, []],
    [
      "400d, 2=30d,3=never",
      400,
      [
        [2, 30],
        [3, null],
      ],
    ],
    ["7=1d", null, [[7, 1]]],
    ["never", null, []],
  ];
  for (const [text, days, projects] of rules) {
    test(JSON.stringify(text), () => {
      const read = parse(text);
      expect([read.days, [...read.byProject]]).toEqual([days, projects]);
    });
  }
  for (const wrong of ["0d", "400", "1y", "2=", "=3d", "36501d", "-1d", "0=1d"]) {
    test(`${wrong} is invalid`, () => expect(() => parse(wrong)).toThrow("days such as 400d"));
  }

  test("are converted to starts of days", () => {
    const retention = new Retention({
      dataDir: "/nowhere",
      rules: parse("30d,2=never,3=1d,5=9d"),
      projects: () => [
        { id: 1, eventsRetentionDays: null },
        { id: 2, eventsRetentionDays: null },
        { id: 3, eventsRetentionDays: null },
        { id: 4, eventsRetentionDays: 0 },
        { id: 5, eventsRetentionDays: 2 },
      ],
      remove: async () => 0,
      isCaughtUp: async () => true,
      log: { info: () => undefined, warn: () => undefined },
      now: () => Date.parse("2026-03-31T17:45:00Z"),
    });
    expect(retention.cutoffs()).toEqual([
      { projectId: 1, beforeMicros: Date.parse("2026-03-01T00:00:00Z") * 1_000 },
      { projectId: 3, beforeMicros: Date.parse("2026-03-30T00:00:00Z") * 1_000 },
      { projectId: 5, beforeMicros: Date.parse("2026-03-29T00:00:00Z") * 1_000 },
    ]);
  });
});

describe("a clock that jumps ahead", () => {
  const folder = temporaryFolder();
  const created: Retention[] = [];
  afterAll(() => {
    for (const retention of created) retention.stop();
    rmSync(folder, { recursive: true });
  });
  const day = 86_400_000;
  const start = Date.parse("2026-03-31T17:45:00Z");
  let clock = start;
  let elapsed = 0;
  let looks = 0;
  const warnings: unknown[] = [];
  const started = () => {
    const retention = new Retention({
      dataDir: folder,
      rules: settings["events-retention"].parse("30d"),
      projects: () => [{ id: 1, eventsRetentionDays: null }],
      remove: async () => {
        looks += 1;
        return 0;
      },
      isCaughtUp: async () => true,
      log: { info: () => undefined, warn: (facts: unknown) => void warnings.push(facts) },
      now: () => clock,
      elapsed: () => elapsed,
    });
    created.push(retention);
    return retention;
  };
  /** Lets time pass, and the clock continue as it likes. @returns whether what is old went. */
  const check = async (retention: Retention, passedMs: number, clockMs = passedMs) => {
    elapsed += passedMs;
    clock += clockMs;
    const before = looks;
    await retention.check();
    return looks > before;
  };

  test("is not believed for a day, beneath a running server and at a start", async () => {
    const running = started();
    expect(await check(running, 0)).toBe(true);
    expect(await check(running, 3_600_000)).toBe(true);
    // Summer time, and what the network's time puts right.
    expect(await check(running, 3_600_000, 2 * 3_600_000)).toBe(true);
    expect(await check(running, 3_600_000, -3_600_000)).toBe(true);
    expect(warnings).toEqual([]);
    expect(await check(running, 3_600_000, 3_650 * day)).toBe(false);
    expect(await check(running, 3_600_000)).toBe(false);
    expect(warnings).toEqual([{ days: 3_650 }]);
    const next = started();
    expect(await check(next, 0)).toBe(false);
    // It was wrong.
    expect(await check(next, 3_600_000, -3_650 * day)).toBe(true);
    // It is right: the machine was off for a month.
    const later = started();
    expect(await check(later, 0, 30 * day)).toBe(false);
    expect(await check(later, day - 1)).toBe(false);
    expect(await check(later, 1)).toBe(true);
    expect(await check(started(), 0)).toBe(true);
  });
});

const directories: string[] = [];
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

test("everything older is deleted, and stays deleted when the event store is rebuilt", async () => {
  const directory = await initializedDirectory();
  directories.push(directory.dataDir);
  const first = await ServerProcess.start({ directory });
  const day = 86_400_000;
  const item = (event: string, daysAgo: number) => ({
    event,
    distinct_id: "kim",
    timestamp: new Date(Date.now() - daysAgo * day).toISOString(),
  });
  await first.batch([item("old", 60), item("older", 400), item("kept", 5), item("today", 0)], {
    historical_migration: true,
  });
  await first.eventsWhenStored(4);
  const status = async () =>
    JSON.parse((await flagkeep(["status", "--json", "--data-dir", directory.dataDir])).stdout) as {
      retention: { days: number; last_run_at: string | null; events_removed: number } | null;
    };
  // Off by default.
  expect((await status()).retention).toBeNull();
  await first.stop();

  const args = ["--events-retention", "30d,99=never"];
  const names = async (server: ServerProcess) => (await server.events()).map(({ event }) => event).sort();
  const second = await ServerProcess.start({ directory, args });
  await until(async () => (await names(second)).length === 2, "old events are gone");
  expect(await names(second)).toEqual(["kept", "today"]);
  // Counted when the engine has confirmed the deletion.
  const { retention } = await until(async () => {
    const now = await status();
    return now.retention?.events_removed !== 0 && now;
  }, "the deleted events are counted");
  expect(retention).toMatchObject({
    days: 30,
    projects: [{ project_id: 99, days: null }],
    events_removed: 2,
  });
  const shown = await flagkeep(["status", "--data-dir", directory.dataDir]);
  expect(shown.stdout).toContain("kept 30 days, of project 99 forever; 2 removed since the start");
  // New ones are taken as ever.
  await second.capture({ event: "new", distinct_id: "kim" });
  await second.eventsWhenStored(3);
  await second.stop();

  const rebuilt = await flagkeep(["rebuild", "--data-dir", directory.dataDir, "--json"]);
  expect([rebuilt.code, rebuilt.stderr]).toEqual([0, ""]);
  const third = await ServerProcess.start({ directory, args });
  await until(async () => (await status()).retention?.last_run_at ?? undefined, "the first look is done");
  expect(await names(third)).toEqual(["kept", "new", "today"]);
  // A project's own record counts more than the setting, and works in a running server.
  const retained = await flagkeep(["projects", "retention", "1", "3d", "--data-dir", directory.dataDir]);
  expect(retained.stdout).toContain("Events of project 1 are kept 3 days");
  await until(async () => !(await names(third)).includes("kept"), "the shorter time has worked");
  expect(await names(third)).toEqual(["new", "today"]);
  expect(await status()).toMatchObject({
    retention: { days: 30, projects: [{ project_id: 99 }, { project_id: 1, days: 3 }] },
  });
  await third.stop();
}, 120_000);
