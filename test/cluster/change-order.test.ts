/** Changes of all nodes are in one order: that of their times, whatever the clocks of the nodes and servers say. */

import { expect } from "bun:test";
import { join } from "node:path";
import { metadataStore } from "../../src/accounts/db.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import type { Postgres } from "../../src/cluster/connection.ts";
import { StoreReplica } from "../../src/cluster/store-replica.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { TestServer } from "../support/management-server.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/server.ts";

const test = testWithPostgres("the order of changes");
usePostgres();

async function startNode(postgres: Postgres) {
  const path = join(temporaryFolder(), "metadata.sqlite");
  await StoreReplica.prepare(path, metadataStore, postgres);
  const metadata = openMetadata(path);
  const { $client: client } = metadata.db;
  const copy = StoreReplica.attach(client, metadataStore, postgres);
  /** @returns the time of the change */
  const change = () =>
    copy.change((_, now) => {
      client
        .query("INSERT INTO organization (id, name, slug, created_at) VALUES (?, 'o', ?1, ?)")
        .run(crypto.randomUUID(), now.getTime());
      return now.getTime();
    });
  return { change, copy };
}

test("each change is later than all earlier ones, also after a failover to a server whose clock is behind", async () => {
  const { postgres } = await createDatabase();
  const nodes = [await startNode(postgres), await startNode(postgres)];
  const times: number[] = [];
  for (let round = 0; round < 20; round++) times.push(await nodes[round % 2]!.change());
  expect(Math.abs(times[0]! - Date.now())).toBeLessThan(60_000);
  const [ahead] = await postgres.run(
    (sql) =>
      sql`UPDATE flagkeep.store SET last_at = date_trunc('milliseconds', clock_timestamp()) + interval '1 hour' WHERE name = 'metadata' RETURNING last_at`,
  );
  times.push(ahead!.last_at.getTime());
  for (let round = 0; round < 20; round++) times.push(await nodes[round % 2]!.change());
  expect(times).toEqual([...new Set(times)].sort((one, other) => one - other));
  // A change of nothing takes no time.
  const before = await nodes[0]!.copy.change((_, now) => now);
  expect(await nodes[1]!.copy.change((_, now) => now)).toEqual(before);
  await postgres.close();
}, 60_000);

test("activity has the time and order of the cluster's changes, not those of a node's clock", async () => {
  let at = Date.parse("2026-02-28T12:00:00.000Z");
  // A node whose clock is a day ahead.
  using node = new TestServer({
    shared: {
      check: async () => undefined,
      settle: async () => undefined,
      change: async (run) => {
        at += 1;
        return await run(new Date(at));
      },
    },
  });
  for (const key of ["first", "second", "third"])
    expect((await node.ask("POST", "/api/projects/1/feature_flags/", { body: { key } })).status).toBe(201);
  const { body } = await node.ask("GET", "/api/projects/1/activity_log/?scope=FeatureFlag");
  const entries: { id: string; created_at: string; detail: { name: string } }[] = body.results;
  expect(entries.map(({ detail, created_at }) => [detail.name, Date.parse(created_at)])).toEqual([
    ["third", at],
    ["second", at - 1],
    ["first", at - 2],
  ]);
  expect(entries.map(({ id }) => id)).toEqual(
    entries
      .map(({ id }) => id)
      .sort()
      .reverse(),
  );
  const [time] = entries.map(({ id }) => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16));
  expect(time).toBe(at);
});
