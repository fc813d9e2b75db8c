/** Replicas of a store are equal, whichever node changes it or dies during a change. */

import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { markMirrored } from "../../src/cluster/commits.ts";
import type { Postgres } from "../../src/cluster/connection.ts";
import { acquireLease, LeaseLostError } from "../../src/cluster/lease.ts";
import { isReplica } from "../../src/cluster/replica-marker.ts";
import { type ReplicatedStore, StoreReplica } from "../../src/cluster/store-replica.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";

const test = testWithPostgres("copies of stores");
const migrations: ReplicatedStore["migrations"] = [
  {
    version: 1,
    name: "all kinds of tables",
    sql: `
      CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, bytes BLOB, ratio REAL) STRICT;
      CREATE TABLE part (owner INTEGER NOT NULL REFERENCES numbered (id) ON DELETE CASCADE, "odd name" TEXT NOT NULL, value INTEGER,
        PRIMARY KEY (owner, "odd name")) STRICT, WITHOUT ROWID;
      CREATE TABLE bare (value TEXT) STRICT;`,
  },
];
const store: ReplicatedStore = { name: "people", migrations };

usePostgres();

interface TestCopy {
  client: Database;
  copy: StoreReplica;
}

async function open(
  postgres: Postgres,
  path = join(temporaryFolder(), "copy.sqlite"),
  replicatedStore = store,
): Promise<TestCopy> {
  await StoreReplica.prepare(path, replicatedStore, postgres);
  const client = new Database(path, { strict: true });
  client.run("PRAGMA foreign_keys = ON");
  return { client, copy: StoreReplica.attach(client, replicatedStore, postgres) };
}

function getContent({ client }: TestCopy): string {
  const tables = ["numbered", "part", "bare", "sqlite_sequence"];
  return JSON.stringify(
    tables.map((table) =>
      client
        .query(`SELECT *, ${table === "bare" ? "rowid" : "1"} FROM ${table} ORDER BY 1, 2`)
        .values()
        .map((row) =>
          row.map((cell) => (cell instanceof Uint8Array ? Buffer.from(cell).toString("hex") : cell)),
        ),
    ),
  );
}

const text = fc.string({ unit: "binary", maxLength: 8 });
const change = fc.oneof(
  fc.record({
    kind: fc.constant("add" as const),
    name: text,
    bytes: fc.option(fc.uint8Array({ maxLength: 4 })),
    ratio: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  }),
  fc.record({ kind: fc.constant("replace" as const), name: text, with: text }),
  fc.record({ kind: fc.constant("part" as const), name: text, value: fc.maxSafeInteger() }),
  fc.record({ kind: fc.constant("remove" as const), nth: fc.nat(5) }),
  fc.record({ kind: fc.constant("bare" as const), value: text }),
);
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;

function make(client: Database, one: Change): void {
  if (one.kind === "add")
    client.run(
      "INSERT INTO numbered (name, bytes, ratio) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET ratio = 0.5",
      [one.name, one.bytes, one.ratio],
    );
  else if (one.kind === "replace")
    client.run("UPDATE OR REPLACE numbered SET name = ? WHERE name >= ?", [one.with, one.name]);
  else if (one.kind === "part")
    client.run("INSERT OR REPLACE INTO part SELECT id, ?, ? FROM numbered", [one.name, one.value]);
  else if (one.kind === "bare") client.run("INSERT INTO bare VALUES (?)", [one.value]);
  else {
    client.run("DELETE FROM numbered WHERE id IN (SELECT id FROM numbered LIMIT 1 OFFSET ?)", [one.nth]);
    client.run("DELETE FROM bare WHERE rowid % 2 = ?", [one.nth % 2]);
  }
}

test("after any changes on two nodes and losses of a killed one, all nodes and a new one are equal", async () => {
  const { postgres } = await createDatabase();
  const step = fc.record({
    node: fc.nat(1),
    changes: fc.array(change, { minLength: 1, maxLength: 4 }),
    end: fc.constantFrom("commits" as const, "folds" as const, "throws" as const, "dies" as const),
  });
  const paths = [0, 1].map(() => join(temporaryFolder(), "copy.sqlite"));
  const nodes = [await open(postgres, paths[0]), await open(postgres, paths[1])];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      for (const { node, changes, end } of steps) {
        const { client, copy } = nodes[node]!;
        const makeAll = () => {
          for (const one of changes) make(client, one);
        };
        if (end === "dies") {
          // What is written without the lock is what a death leaves.
          makeAll();
          client.close();
          nodes[node] = await open(postgres, paths[node]);
        } else if (end === "throws") {
          const fails = copy.change(() => {
            makeAll();
            throw new Error("on purpose");
          });
          await expect(fails).rejects.toThrow("on purpose");
        } else await copy.change(makeAll);
        if (end === "folds") {
          await markMirrored(postgres, copy.revision);
          await copy.tidy();
        }
      }
      for (const { copy } of nodes) await copy.catchUp();
      const fresh = await open(postgres);
      const [one, other, third] = [...nodes, fresh].map(getContent);
      fresh.client.close();
      expect(other).toBe(one!);
      expect(third).toBe(one!);
    }),
    { numRuns: 25 },
  );
  await postgres.close();
}, 60_000);

test("concurrent changes of two nodes are serialized, and none is lost", async () => {
  const { postgres } = await createDatabase();
  const nodes = [await open(postgres), await open(postgres)];
  await nodes[0]!.copy.change(() =>
    nodes[0]!.client.run("INSERT INTO numbered (name, ratio) VALUES ('sum', 0)"),
  );
  await Promise.all(
    Array.from({ length: 40 }, (_, index) => {
      const { client, copy } = nodes[index % 2]!;
      return copy.change(() => client.run("UPDATE numbered SET ratio = ratio + 1 WHERE name = 'sum'"));
    }),
  );
  for (const { client, copy } of nodes) {
    await copy.check();
    expect(client.query("SELECT ratio FROM numbered").values()).toEqual([[40]]);
  }
  await postgres.close();
});

test("local writes of a node outside of changes are replicated, and undo no change of others", async () => {
  const { postgres } = await createDatabase();
  const one = await open(postgres);
  const other = await open(postgres);
  const backs: boolean[] = [];
  const watched = StoreReplica.attach(other.client, store, postgres, {
    onApplied: (isBack) => backs.push(isBack),
  });
  await one.copy.change(() => {
    for (const name of ["changed", "removed", "left alone"])
      one.client.run("INSERT INTO numbered (name, ratio) VALUES (?, 0)", [name]);
  });
  await watched.check();
  // As a request does that only reads, and notes when its key was used.
  other.client.run("UPDATE numbered SET ratio = 1");
  await one.copy.change(() => {
    one.client.run("UPDATE numbered SET name = 'renamed' WHERE name = 'changed'");
    one.client.run("DELETE FROM numbered WHERE name = 'removed'");
  });
  backs.length = 0;
  await watched.check();
  expect(backs).toEqual([true]);
  await watched.change(() => undefined);
  await one.copy.check();
  for (const { client } of [one, other])
    expect(client.query("SELECT name, ratio FROM numbered ORDER BY id").values()).toEqual([
      ["renamed", 0],
      ["left alone", 1],
    ]);
  expect(watched.hasChanges).toBe(false);
  // The same where it is found out by the change itself.
  other.client.run("UPDATE numbered SET ratio = 2");
  await one.copy.change(() => one.client.run("DELETE FROM numbered WHERE name = 'renamed'"));
  await watched.change(() => undefined);
  await one.copy.check();
  for (const { client } of [one, other])
    expect(client.query("SELECT name, ratio FROM numbered").values()).toEqual([["left alone", 2]]);
  await postgres.close();
});

test("a loader that has lost the lease commits nothing, and reverts its writes", async () => {
  const { postgres } = await createDatabase();
  const path = join(temporaryFolder(), "copy.sqlite");
  const { client, copy } = await open(postgres, path);
  const lease = (await acquireLease(postgres, { node: crypto.randomUUID(), holder: crypto.randomUUID() }))!;
  await copy.change(() => client.run("INSERT INTO bare VALUES ('held')"), lease);
  await postgres.run((sql) => sql`UPDATE flagkeep.lease SET holder = NULL`);
  expect(
    await acquireLease(postgres, { node: crypto.randomUUID(), holder: crypto.randomUUID() }),
  ).toBeDefined();
  client.run("INSERT INTO bare VALUES ('too late')");
  await expect(copy.change(() => undefined, lease)).rejects.toThrow(LeaseLostError);
  client.close();
  const again = await open(postgres, path);
  expect(again.client.query("SELECT value FROM bare").values()).toEqual([["held"]]);
  await postgres.close();
});

test("PostgreSQL that was set back, or is another one: the copy is rebuilt", async () => {
  const { postgres } = await createDatabase();
  const path = join(temporaryFolder(), "copy.sqlite");
  const { client, copy } = await open(postgres, path);
  for (const value of ["one", "two"])
    await copy.change(() => client.run("INSERT INTO bare VALUES (?)", [value]));
  client.close();
  await postgres.run((sql) => sql`DELETE FROM flagkeep.row WHERE revision = 2`);
  await postgres.run((sql) => sql`DELETE FROM flagkeep.commit WHERE revision = 2`);
  await postgres.run((sql) => sql`UPDATE flagkeep.store SET revision = 1`);
  const again = await open(postgres, path);
  expect(again.client.query("SELECT value FROM bare").values()).toEqual([["one"]]);
  await postgres.run((sql) => sql`DELETE FROM flagkeep.commit`);
  await postgres.run((sql) => sql`DELETE FROM flagkeep.row`);
  await postgres.run((sql) => sql`UPDATE flagkeep.store SET revision = 0, folded = 0`);
  let runs = 0;
  await again.copy.change(() => {
    runs += 1;
    again.client.run("INSERT INTO bare VALUES ('anew')");
  });
  expect(runs).toBe(1);
  expect(again.client.query("SELECT value FROM bare").values()).toEqual([["anew"]]);
  const third = await open(postgres);
  expect(third.client.query("SELECT value FROM bare").values()).toEqual([["anew"]]);
  await postgres.close();
});

test("a newer version migrates the tables for all; an older node is rejected", async () => {
  const { postgres } = await createDatabase();
  const one = await open(postgres);
  const other = await open(postgres);
  await one.copy.change(() => one.client.run("INSERT INTO bare VALUES ('kept')"));
  const path = join(temporaryFolder(), "copy.sqlite");
  const newer: ReplicatedStore = {
    name: "people",
    migrations: [
      ...migrations,
      {
        version: 2,
        name: "more",
        sql: "ALTER TABLE bare ADD COLUMN more TEXT; UPDATE bare SET more = value || '!'",
      },
    ],
  };
  const upgraded = await open(postgres, path, newer);
  expect(upgraded.client.query("SELECT value, more FROM bare").values()).toEqual([["kept", "kept!"]]);
  await expect(other.copy.change(() => other.client.run("INSERT INTO bare VALUES ('old')"))).rejects.toThrow(
    "newer version",
  );
  await expect(open(postgres)).rejects.toThrow("newer");
  const third = await open(postgres, undefined, newer);
  expect(third.client.query("SELECT value, more FROM bare").values()).toEqual([["kept", "kept!"]]);
  await postgres.close();
});

test("a file is known as a copy from the beginning", async () => {
  const { postgres } = await createDatabase();
  const path = join(temporaryFolder(), "copy.sqlite");
  expect(isReplica(path)).toBe(false);
  (await open(postgres, path)).client.close();
  expect(isReplica(path)).toBe(true);
  await postgres.close();
});

test("a node that hangs during a change delays others by at most five seconds", async () => {
  const { postgres } = await createDatabase();
  const hung = await open(postgres);
  const other = await open(postgres);
  const isWithin = Promise.withResolvers<void>();
  const ends = Promise.withResolvers<void>();
  const hanging = hung.copy
    .change(async () => {
      isWithin.resolve();
      await ends.promise;
    })
    .then(() => "done", String);
  await isWithin.promise;
  const change = () => other.client.run("INSERT INTO bare VALUES ('in time')");
  await expectWithin(6_000, () => other.copy.change(change, undefined, 10_000));
  ends.resolve();
  expect(await hanging).toContain("is unavailable");
  await postgres.close();
}, 60_000);
