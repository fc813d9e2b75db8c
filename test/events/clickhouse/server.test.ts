/** What the other tests take for granted of their ClickHouse. */

import { expect } from "bun:test";
import { TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";

const test = testWithClickHouse("ClickHouse of the tests");

test("a named block is stored once over several partitions, also after a kill; without a name twice", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE db");
  await server.run(
    "CREATE TABLE db.t (month Int32, n Int32) ENGINE = MergeTree PARTITION BY month ORDER BY n " +
      "SETTINGS non_replicated_deduplication_window = 100, fsync_after_insert = 1",
  );
  const insert = (token: string) =>
    server.run(`INSERT INTO db.t SETTINGS insert_deduplication_token = '${token}' VALUES (1, 1), (2, 2)`);
  await insert("a");
  await insert("a");
  await server.kill();
  await server.restart();
  await insert("a");
  expect(await server.run("SELECT count(), uniqExact(_part) FROM db.t")).toEqual([[2, 2]]);
  await insert("b");
  expect(await server.run("SELECT count() FROM db.t")).toEqual([[4]]);
});

test("fails before and after an insert on demand, and rejects unknown users", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE db");
  await server.run("CREATE TABLE db.t (n Int32) ENGINE = MergeTree ORDER BY n");
  const insert = () => server.run("INSERT INTO db.t VALUES (1)");
  const count = async () => (await server.run("SELECT count() FROM db.t"))[0]![0];
  for (const [kind, stored] of [
    ["refuse-insert", 0],
    ["cut-before-insert", 0],
    ["cut-after-insert", 1],
    ["die-before-insert", 1],
    ["die-after-insert", 2],
  ] as const) {
    await server.breakNext(kind);
    await expect(insert()).rejects.toThrow();
    if (kind.startsWith("die")) await server.restart();
    expect([kind, await count()]).toEqual([kind, stored]);
  }
  const stranger = await fetch(`http://127.0.0.1:${server.port}/?query=SELECT+1`);
  expect([stranger.status, stranger.headers.get("x-clickhouse-exception-code")]).toEqual([403, "516"]);
});
