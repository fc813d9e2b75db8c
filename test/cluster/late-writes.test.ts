/** A process that was suspended during a conversion of persons or a migration writes nothing when it continues. */

import { expect } from "bun:test";
import { join } from "node:path";
import { metadataStore } from "../../src/accounts/db.ts";
import type { Postgres } from "../../src/cluster/connection.ts";
import { PostgresJournal } from "../../src/cluster/journal.ts";
import { chooseLayout, type PersonsLayout, recordConversion } from "../../src/cluster/layout.ts";
import { acquireLease } from "../../src/cluster/lease.ts";
import { markReturned } from "../../src/cluster/migration.ts";
import { acquirePartitions, readPartitions, registerLoader } from "../../src/cluster/partitions.ts";
import { StoreReplica } from "../../src/cluster/store-replica.ts";
import { openSqlite } from "../../src/lib/sqlite.ts";
import { sqlitePersonWriter } from "../../src/persons/person-writer.ts";
import { createDatabase, untilLockAwaited, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/server.ts";
import { openClusterPersons, openReplica } from "./person-support.ts";

const test = testWithPostgres("writes of resumed nodes");
usePostgres();

const overrides = { flagKeys: ["beta"], hashKey: "anonymous", requestedMicros: 1e15 };

/** A cluster with metadata and the lease of another node. */
async function connectCluster(persons: PersonsLayout): Promise<{ postgres: Postgres; database: string }> {
  const { postgres, database } = await createDatabase();
  await chooseLayout(postgres, { persons });
  await acquireLease(postgres, { node: crypto.randomUUID(), holder: crypto.randomUUID() });
  return { postgres, database };
}

/** The engine of a node that does not load. */
async function openFollower(postgres: Postgres, layout: PersonsLayout) {
  const db = await openReplica(postgres);
  const persons = await openClusterPersons(db, postgres);
  const writer =
    layout === "rows" ? persons.rows!.writer : sqlitePersonWriter(db, (run) => persons.change(run));
  return {
    addOverrides: (id: string) => writer.addHashKeyOverrides(1, { ...overrides, distinctIds: [id] }),
  };
}

/** Flags and keys of a node. */
async function openMetadata(postgres: Postgres, persons: PersonsLayout) {
  const path = join(temporaryFolder(), "flagkeep.sqlite");
  await StoreReplica.prepare(path, metadataStore, postgres);
  const { $client: client } = openSqlite(path, {});
  const replica = StoreReplica.attach(client, metadataStore, postgres, { persons });
  const addOrganization = () =>
    replica.change(() =>
      client
        .query("INSERT INTO organization (id, name, slug, created_at) VALUES (?1, 'o', ?1, 0)")
        .run(crypto.randomUUID()),
    );
  return { addOrganization };
}

/** What writes have changed. */
async function readStores(postgres: Postgres): Promise<unknown> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT (SELECT count(*)::int FROM flagkeep.commit) AS commits,
      (SELECT count(*)::int FROM flagkeep.pending_override) AS overrides,
      (SELECT count(*)::int FROM flagkeep.journal) AS blocks`,
  );
  return row;
}

const stops = {
  persons_converted: async (postgres: Postgres, from: PersonsLayout) => {
    const to = from === "rows" ? "replica" : "rows";
    await postgres.run((sql) => sql`UPDATE flagkeep.layout SET persons = ${to}`);
  },
  persons_conversion: async (postgres: Postgres) => {
    const conversion = { id: "x", to: "rows", source: "", position: null } as const;
    await postgres.run((sql) => recordConversion(sql, conversion));
  },
  take_over_refused: async (postgres: Postgres) => {
    await postgres.run((sql) => sql`INSERT INTO flagkeep.secret VALUES ('brought back', '/data')`);
  },
};

for (const layout of ["replica", "rows"] as const)
  test.each(Object.keys(stops) as (keyof typeof stops)[])(
    `changes of persons as ${layout} and of metadata fail with %s`,
    async (code) => {
      const { postgres } = await connectCluster(layout);
      const { addOverrides } = await openFollower(postgres, layout);
      const { addOrganization } = await openMetadata(postgres, layout);
      await addOverrides("kim");
      await addOrganization();
      const before = await readStores(postgres);
      await stops[code](postgres, layout);
      await expect(addOverrides("lee")).rejects.toMatchObject({ code });
      await expect(addOrganization()).rejects.toMatchObject({ code });
      expect(await readStores(postgres)).toEqual(before);
      await postgres.close();
    },
  );

test("events are rejected once the data was migrated back, and waiting ones keep the mark from being written", async () => {
  const { postgres } = await connectCluster("replica");
  const { addOrganization } = await openMetadata(postgres, "replica");
  await addOrganization();
  await postgres.run((sql) => sql`UPDATE flagkeep.lease SET holder = NULL`);
  const journal = new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 64e6 });
  const ignore = async () => undefined;
  await journal.append("realtime", ['"note":"x"}']);
  await expect(markReturned(postgres, "/data", ignore)).rejects.toThrow("1 entries that are not loaded");
  await journal.append("realtime", ['"note":"x"}']);
  await postgres.run((sql) => sql`DELETE FROM flagkeep.journal`);
  await markReturned(postgres, "/data", ignore);
  await expect(journal.append("realtime", ['"note":"x"}'])).rejects.toMatchObject({
    code: "journal_unavailable",
  });
  expect(await readStores(postgres)).toMatchObject({ blocks: 0 });
  await journal.close();
  await postgres.close();
});

test("the mark of a migration back waits for a change in progress, and is not written if it has changed the data", async () => {
  const { postgres, database } = await connectCluster("replica");
  const { addOrganization } = await openMetadata(postgres, "replica");
  await addOrganization();
  await postgres.run((sql) => sql`UPDATE flagkeep.lease SET holder = NULL`);
  const isLocked = Promise.withResolvers<void>();
  const isAwaited = Promise.withResolvers<void>();
  const change = postgres.transaction(async (t) => {
    await t`UPDATE flagkeep.store SET revision = revision + 1 WHERE name = 'metadata'`;
    isLocked.resolve();
    await isAwaited.promise;
  });
  await isLocked.promise;
  const marked = markReturned(postgres, "/data", async (t) => {
    const [store] = await t`SELECT revision::int AS revision FROM flagkeep.store WHERE name = 'metadata'`;
    if (store!.revision !== 1) throw new Error("changed");
  });
  await untilLockAwaited(database);
  isAwaited.resolve();
  await change;
  await expect(marked).rejects.toThrow("changed");
  await addOrganization();
  await postgres.close();
});

test("no engine acquires the lease or partitions once the data was migrated back", async () => {
  const { postgres } = await createDatabase();
  const loader = await registerLoader(postgres, crypto.randomUUID());
  expect(await acquirePartitions(postgres, loader, [1])).toHaveLength(1);
  await stops.take_over_refused(postgres);
  expect(await acquirePartitions(postgres, loader, [2])).toEqual([]);
  expect((await readPartitions(postgres)).isPaused).toBe(true);
  const engine = { node: crypto.randomUUID(), holder: crypto.randomUUID() };
  expect(await acquireLease(postgres, engine)).toBeUndefined();
  await postgres.close();
});
