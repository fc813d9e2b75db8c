/** Moving all events to ClickHouse and back: while it runs, broken off, compared. */

import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { executable, flagkeep, initializedDirectory, ServerProcess, until } from "../../support/server.ts";

const test = testWithClickHouse("moving events");

const events = (name: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    event: name,
    uuid: Bun.randomUUIDv7(),
    distinct_id: `user ${n % 7}`,
    properties: {
      n,
      big: n % 50 === 0 ? "x".repeat(30_000) : 12345678901234567890n.toString(),
      $set: { plan: "ü" },
    },
  }));

const facts = (
  found: { uuid: string; event: string; seq: number; historical: boolean; properties: object }[],
) =>
  found
    .map(({ uuid, event, seq, historical, properties }) => ({ uuid, event, seq, historical, properties }))
    .sort((a, b) => a.uuid.localeCompare(b.uuid));

test("there and back: broken off, while Flagkeep runs and when it has stopped; nothing is lost, doubled or other", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  const url = server.url("flagkeep");
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const move = (...args: string[]) => flagkeep(["migrate-events", "--data-dir", dataDir, "--json", ...args]);
  let before: ReturnType<typeof facts>;
  {
    await using flagkeep = await ServerProcess.start({ directory });
    await flagkeep.batch(events("old", 1_500));
    await flagkeep.batch(events("historical", 700), { historical_migration: true });
    await flagkeep.eventsWhenStored(2_200);
    // Broken off by itself, and by a server that is gone after an insert.
    const broken = Bun.spawn([executable, "migrate-events", "--data-dir", dataDir, "--to", url], {
      env: {},
      stdout: "ignore",
      stderr: "ignore",
    });
    await until(
      () =>
        server.run("SELECT count() FROM flagkeep.events").then(
          ([row]) => Number(row![0]) > 0,
          () => false,
        ),
      "the first events are there",
    );
    broken.kill("SIGKILL");
    await broken.exited;
    const first = await move("--to", url);
    expect([first.stderr, first.stdout === "" ? "" : JSON.parse(first.stdout)]).toEqual([
      "",
      { events: 2_200, finished: false },
    ]);
    await flagkeep.batch(events("late", 10));
    before = facts(await flagkeep.eventsWhenStored(2_210));
    await flagkeep.stop();
  }
  const second = await move("--to", url);
  expect([second.stderr, second.stdout === "" ? "" : JSON.parse(second.stdout)]).toEqual([
    "",
    { events: 2_210, finished: true },
  ]);
  expect(existsSync(join(dataDir, "events.duckdb"))).toBe(false);
  {
    await using server = await ServerProcess.start({ directory, args: ["--events-url", url] });
    expect(facts(await server.eventsWhenStored(2_210))).toEqual(before);
    await server.batch(events("newer", 5));
    before = facts(await server.eventsWhenStored(2_215));
    await server.stop();
  }
  const back = await move("--to", "duckdb", "--events-url", url);
  expect([back.stderr, back.stdout === "" ? "" : JSON.parse(back.stdout)]).toEqual([
    "",
    { events: 2_215, finished: true },
  ]);
  await using flagkeepServer = await ServerProcess.start({ directory });
  expect(facts(await flagkeepServer.eventsWhenStored(2_215))).toEqual(before);
  await flagkeepServer.batch(events("last", 1));
  await flagkeepServer.eventsWhenStored(2_216);
}, 120_000);
