/** The PostgreSQL of the tests keeps what it has committed, as those that rest on it take for granted. */

import { expect } from "bun:test";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";

const test = testWithPostgres("PostgreSQL for the tests");

test("a committed row outlives a kill, and the death of the primary on its standby", async () => {
  await using primary = await startPostgres();
  await primary.create("kept");
  await primary.run("CREATE TABLE kept (number int)", "kept");
  await primary.run("INSERT INTO kept VALUES (1)", "kept");
  await primary.kill();
  expect(primary.isRunning).toBe(false);
  await expect(primary.run("SELECT 1")).rejects.toThrow();
  await primary.restart();
  expect(await primary.run("SELECT number FROM kept", "kept")).toEqual([{ number: 1 }]);

  await using standby = await primary.standby();
  await primary.run("INSERT INTO kept VALUES (2)", "kept");
  await expect(standby.run("INSERT INTO kept VALUES (3)", "kept")).rejects.toThrow("read-only");
  await primary.kill();
  await standby.promote();
  await standby.run("INSERT INTO kept VALUES (3)", "kept");
  expect(await standby.run("SELECT number FROM kept ORDER BY 1", "kept")).toEqual([
    { number: 1 },
    { number: 2 },
    { number: 3 },
  ]);
}, 60_000);

test("without its standby the primary acknowledges nothing", async () => {
  await using primary = await startPostgres();
  await using standby = await primary.standby();
  await primary.run("CREATE TABLE kept (number int)");
  await standby.kill();
  const insert = primary.run("INSERT INTO kept VALUES (1)").then(
    () => "acknowledged",
    () => "failed",
  );
  await until(async () => {
    const waiting = await primary.run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return waiting.length > 0;
  }, "the commit waits for the standby");
  await primary.kill();
  expect(await insert).toBe("failed");
}, 60_000);
