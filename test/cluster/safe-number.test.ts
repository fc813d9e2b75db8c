/**
 * Numbers of the journal's blocks come from a sequence, and blocks are committed in any order: readers that stop at the
 * safe number miss none, and numbers never go back, whatever happens to PostgreSQL.
 */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { Postgres, PostgresUnreachableError } from "../../src/cluster/connection.ts";
import { PostgresJournal } from "../../src/cluster/journal.ts";
import { JournalReader } from "../../src/cluster/journal-reader.ts";
import { describeHeldBack, readHeldBack, SafeNumber } from "../../src/cluster/safe-number.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import type { JournalBatch } from "../../src/journal/reader.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { hasPostgres, startPostgres, type TestPostgres, testWithPostgres } from "../support/postgres.ts";
import { linesIn } from "../support/segments.ts";
import { until } from "../support/server.ts";

const test = testWithPostgres("the safe number");
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);
const writers = 8;
const entry = (text: string) => `"text":${JSON.stringify(text)}}`;

let server: TestPostgres;
let databases = 0;

if (hasPostgres) {
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(async () => await server[Symbol.asyncDispose]());
}

const reconnect = (url: string, connections = 4) =>
  new Postgres(parsePostgresUrl(url)!, { connections, name: "test" });

async function connect(of = server): Promise<{ postgres: Postgres; url: string; database: string }> {
  databases += 1;
  const database = `safe_${databases}`;
  const url = await of.create(database);
  const postgres = reconnect(url);
  await migratePostgres(postgres);
  return { postgres, url, database };
}

/** Stores a block as a node does, with a pause before the commit. @returns its number */
async function append(postgres: Postgres, pauseMs: number, lane = "realtime"): Promise<number> {
  return await postgres.transaction(async (t) => {
    const [row] = await t`INSERT INTO flagkeep.journal (lane, first_seq, entries, size, body)
      VALUES (${lane}, flagkeep.take_numbers(1), 1, 0, '') RETURNING first_seq`;
    if (pauseMs > 0) await t`SELECT pg_sleep(${pauseMs / 1_000})`;
    return Number(row!.first_seq);
  });
}

type Rule = "safe number" | "newest block" | "pg_snapshot_xmax";

/** The number that a rule takes for complete; undefined if it has to wait. */
function ruleOf(rule: Rule, postgres: Postgres): () => Promise<number | undefined> {
  const safe = new SafeNumber(postgres);
  if (rule === "safe number") return () => safe.read();
  if (rule === "newest block")
    return async () => {
      const [row] = await postgres.run((sql) => sql`SELECT max(first_seq) AS last FROM flagkeep.journal`);
      return Number(row!.last);
    };
  let pending: { last: number; end: string } | undefined;
  return async () => {
    if (pending === undefined) {
      const [row] = await postgres.run((sql) => sql`SELECT last_value AS last FROM flagkeep.block`);
      const [snapshot] = await postgres.run(
        (sql) => sql`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS until`,
      );
      pending = { last: Number(row!.last) * 1_024, end: snapshot!.until };
    }
    const { last, end } = pending;
    const [row] = await postgres.run(
      (sql) => sql`SELECT pg_snapshot_xmin(pg_current_snapshot()) >= ${end}::text::xid8 AS done`,
    );
    if (row!.done !== true) return undefined;
    pending = undefined;
    return last;
  };
}

/** Reads as a loader does while others write. @returns how many of the blocks below its last number it has missed */
async function countMissed(rule: Rule, postgres: Postgres, isDone: () => boolean): Promise<number> {
  const read = ruleOf(rule, postgres);
  const seen = new Set<number>();
  let last = 0;
  for (let isLast = false; !isLast; ) {
    isLast = isDone();
    const end = await read();
    if (end === undefined) continue;
    const rows = await postgres.run(
      (sql) => sql`SELECT first_seq FROM flagkeep.journal WHERE first_seq > ${last} AND first_seq <= ${end}`,
    );
    for (const { first_seq } of rows) seen.add(Number(first_seq));
    last = end;
  }
  const all = await postgres.run(
    (sql) => sql`SELECT first_seq FROM flagkeep.journal WHERE first_seq <= ${last}`,
  );
  expect(all.length).toBeGreaterThan(100);
  return all.filter(({ first_seq }) => !seen.has(Number(first_seq))).length;
}

test("a reader misses no block of 8 writers with random pauses; by two other rules it would", async () => {
  const { postgres, url } = await connect();
  const pools = Array.from({ length: writers }, () => reconnect(url, 1));
  const end = performance.now() + 4_000;
  let acknowledged = 0;
  let disorder = 0;
  const writing = pools.map(async (pool) => {
    while (performance.now() < end) {
      const before = acknowledged;
      const number = await append(pool, random() < 0.2 ? random() * 50 : 0);
      // Sent after another one was acknowledged.
      if (number <= before) disorder += 1;
      acknowledged = Math.max(acknowledged, number);
      await Bun.sleep(random() * 4);
    }
  });
  const isDone = () => performance.now() > end + 300;
  const rules: Rule[] = ["safe number", "newest block", "pg_snapshot_xmax"];
  const [safe, newest, xmax] = await Promise.all(rules.map((rule) => countMissed(rule, postgres, isDone)));
  await Promise.all(writing);
  expect({ safe, disorder, seed }).toEqual({ safe: 0, disorder: 0, seed });
  expect(newest).toBeGreaterThan(0);
  expect(xmax).toBeGreaterThan(0);
  await Promise.all([postgres, ...pools].map((pool) => pool.close()));
}, 60_000);

test("it waits for a transaction that has a number, and for no rolled back one; before the first use it is low", async () => {
  const { postgres, url } = await connect();
  const other = reconnect(url, 1);
  const safe = new SafeNumber(postgres);
  const before = await safe.read();
  const isOpen = Promise.withResolvers<number>();
  const end = Promise.withResolvers<void>();
  const failing = other.transaction(async (t) => {
    const [row] = await t`SELECT flagkeep.take_numbers(1)::float8 AS number`;
    isOpen.resolve(row!.number);
    await end.promise;
    throw new Error("rolled back");
  });
  const number = await isOpen.promise;
  const later = await append(postgres, 0);
  expect(number).toBeGreaterThan(before);
  expect(later).toBeGreaterThan(number);
  expect(await safe.read()).toBe(before);
  end.resolve();
  await expect(failing).rejects.toThrow("rolled back");
  expect(await safe.read()).toBeGreaterThanOrEqual(later);
  await Promise.all([postgres.close(), other.close()]);
});

test("an idle reader uses no transaction IDs", async () => {
  const { postgres } = await connect();
  await append(postgres, 0);
  const safe = new SafeNumber(postgres);
  await safe.read();
  const next = async () => {
    const [row] = await postgres.run(
      (sql) => sql`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS id`,
    );
    return row!.id;
  };
  const id = await next();
  for (let time = 0; time < 20; time++) await safe.read();
  expect(await next()).toBe(id);
  await postgres.close();
});

test("numbers that went back are an error: the reader's position belongs to another history", async () => {
  const { postgres } = await connect();
  for (let block = 0; block < 3; block++) await append(postgres, 0);
  const safe = new SafeNumber(postgres);
  await safe.read();
  await postgres.run((sql) => sql`SELECT setval('flagkeep.block', 2)`);
  await expect(safe.read()).rejects.toThrow("after it had assigned");
  await postgres.close();
});

describe("a transaction that holds loading back", () => {
  test("is named with its process, and a prepared one with its name, after 5 s", async () => {
    await using own = await startPostgres();
    await own.run("ALTER SYSTEM SET max_prepared_transactions = 5");
    await own.restart();
    const { postgres, url } = await connect(own);
    const slow = new Postgres(parsePostgresUrl(url)!, { connections: 1, name: "slow" });
    const end = Promise.withResolvers<void>();
    const isOpen = Promise.withResolvers<number>();
    const open = slow.transaction(async (t) => {
      const [row] = await t`SELECT pg_backend_pid() AS pid, flagkeep.take_numbers(1)`;
      isOpen.resolve(row!.pid);
      await end.promise;
    });
    const pid = await isOpen.promise;
    expect(await readHeldBack(postgres)).toBeNull();
    const found = await until(async () => (await readHeldBack(postgres)) ?? undefined, "it is found");
    expect(found).toEqual({ pid, name: "flagkeep slow", seconds: expect.any(Number) });
    expect(found!.seconds).toBeGreaterThanOrEqual(5);
    expect(describeHeldBack(found!)).toContain(`process ${pid} (flagkeep slow)`);
    end.resolve();
    await open;
    expect(await readHeldBack(postgres)).toBeNull();
    const prepare = "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'forgotten'";
    await slow.run((sql) => sql.unsafe(prepare));
    const prepared = await until(async () => (await readHeldBack(postgres)) ?? undefined, "it is found");
    expect(prepared).toMatchObject({ pid: null, name: "forgotten" });
    expect(describeHeldBack(prepared!)).toContain("the prepared transaction forgotten");
    await Promise.all([postgres.close(), slow.close()]);
  }, 60_000);
});

describe("the journal", () => {
  const openJournal = (postgres: Postgres) =>
    new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 64e6 });

  test("gives larger groups of several nodes numbers that do not overlap", async () => {
    const { postgres, url } = await connect();
    const nodes = await Promise.all([1, 2, 3].map(async () => reconnect(url)));
    const ranges = await Promise.all(
      nodes.map(async (node) => {
        const journal = openJournal(node);
        const own: [number, number][] = [];
        for (const size of [1, 1_024, 1_025, 10_000, 3, 2_048]) {
          const first = await journal.append(
            "realtime",
            Array.from({ length: size }, () => entry("")),
          );
          expect(first % 1_024).toBe(0);
          own.push([first, first + size - 1]);
        }
        await journal.close();
        return own;
      }),
    );
    for (const own of ranges)
      for (const [index, [first]] of own.entries()) expect(first).toBeGreaterThan(own[index - 1]?.[1] ?? 0);
    const sorted = ranges.flat().sort(([one], [other]) => one - other);
    // The next number of the sequence is above all of them, too.
    sorted.push([await append(postgres, 0), 0]);
    for (const [index, [first]] of sorted.slice(1).entries())
      expect(first).toBeGreaterThan(sorted[index]![1]);
    await Promise.all([postgres, ...nodes].map((node) => node.close()));
  });

  test("stores a block whose answer is lost once, and returns its number", async () => {
    const { postgres, url } = await connect();
    const losing = new LosingPostgres(parsePostgresUrl(url)!, { connections: 2, name: "losing" });
    const journal = openJournal(losing);
    await journal.append("realtime", [entry("before")]);
    losing.losesInsert = true;
    const first = await journal.append("realtime", ["a", "b"].map(entry));
    expect(losing.losesInsert).toBe(false);
    const after = await journal.append("realtime", [entry("after")]);
    const read = await readAll(postgres, { realtime: 0, historical: 0 }, 4);
    expect(read.slice(1)).toEqual([
      { lane: "realtime", seq: first, text: "a" },
      { lane: "realtime", seq: first + 1, text: "b" },
      { lane: "realtime", seq: after, text: "after" },
    ]);
    await journal.close();
    await Promise.all([postgres.close(), losing.close()]);
  });

  test("nodes of version 0.2 number their blocks by the same sequence, in order with the others", async () => {
    const { postgres, url } = await connect();
    const old = reconnect(url, 1);
    const node = crypto.randomUUID();
    for (const lane of ["realtime", "historical"])
      await old.transaction(async (t) => {
        await t`INSERT INTO flagkeep.front_number VALUES (${node}, ${lane}, 0) ON CONFLICT DO NOTHING`;
        await t`INSERT INTO flagkeep.front_block VALUES (${node}, ${lane}, 0)`;
      });
    const blocks = { realtime: 0, historical: 0 };
    // Its statement.
    const store = async (lane: "realtime" | "historical", count: number) => {
      const block = ++blocks[lane];
      const [row] = await old.run(
        (sql) => sql`
        WITH mine AS (
          UPDATE flagkeep.front_block SET block = ${block}
          WHERE front = ${node} AND lane = ${lane} AND block = ${block - 1} RETURNING 1
        ), numbered AS (
          UPDATE flagkeep.lane SET next_seq = next_seq + ${count} WHERE name = ${lane} AND EXISTS (SELECT 1 FROM mine)
          RETURNING next_seq - ${count} AS first_seq
        ), noted AS (
          UPDATE flagkeep.front_number SET first_seq = numbered.first_seq FROM numbered WHERE front = ${node} AND lane = ${lane}
        ), stored AS (
          INSERT INTO flagkeep.journal (lane, first_seq, entries, size, body)
          SELECT ${lane}, first_seq, ${count}, 0, ''::bytea FROM numbered
        )
        SELECT first_seq FROM numbered`,
      );
      return Number(row!.first_seq);
    };
    const journal = openJournal(postgres);
    let last = 0;
    for (const lane of ["realtime", "historical", "realtime"] as const)
      for (const count of [1, 3, 5_000]) {
        for (const first of [
          await store(lane, count),
          await journal.append(
            lane,
            Array.from({ length: count }, () => entry("")),
          ),
        ]) {
          expect(first).toBeGreaterThan(last);
          last = first + count - 1;
        }
        const [row] = await postgres.run(
          (sql) => sql`SELECT last_seq FROM flagkeep.acknowledged WHERE lane = ${lane}`,
        );
        expect(Number(row!.last_seq)).toBe(last);
      }
    await journal.close();
    await Promise.all([postgres.close(), old.close()]);
  });

  test("a cluster of version 0.2 continues behind the numbers of both lanes, with its waiting entries", async () => {
    const { postgres, database } = await connect();
    const folder = new URL("../../src/cluster/migrations/", import.meta.url);
    const migrate = async (name: string) =>
      await server.run(await Bun.file(new URL(name, folder)).text(), database);
    await server.run("DROP SCHEMA flagkeep CASCADE; CREATE SCHEMA flagkeep", database);
    await migrate("001-initial.sql");
    const body = Bun.zstdCompressSync(`${entry("a")}\n${entry("b")}\n`).toHex();
    await server.run(
      `UPDATE flagkeep.lane SET next_seq = CASE name WHEN 'realtime' THEN 5000 ELSE 90003 END;
       INSERT INTO flagkeep.journal VALUES ('realtime', 4998, 2, 0, '\\x${body}'), ('historical', 90001, 2, 0, '\\x${body}')`,
      database,
    );
    await migrate("005-block-sequence.sql");
    const journal = openJournal(postgres);
    const first = await journal.append("realtime", [entry("c")]);
    expect(first).toBeGreaterThan(90_002);
    const read = await readAll(postgres, { realtime: 4_997, historical: 90_000 }, 5);
    expect(read).toEqual([
      { lane: "realtime", seq: 4_998, text: "a" },
      { lane: "realtime", seq: 4_999, text: "b" },
      { lane: "realtime", seq: first, text: "c" },
      { lane: "historical", seq: 90_001, text: "a" },
      { lane: "historical", seq: 90_002, text: "b" },
    ]);
    await journal.close();
    await postgres.close();
  });
});

/** Loses the answer to a statement that stores a block. */
class LosingPostgres extends Postgres {
  losesInsert = false;

  override async run<Result>(...args: Parameters<Postgres["run"]>): Promise<Result> {
    const result = (await super.run(...args)) as Result & { command?: string };
    if (!this.losesInsert || result.command !== "INSERT") return result;
    this.losesInsert = false;
    throw new PostgresUnreachableError(this.address, new Error("the answer is lost"));
  }
}

interface ReadEntry {
  lane: string;
  seq: number;
  text: string;
}

/** What a loader reads until it has so many entries. */
async function readAll(
  postgres: Postgres,
  from: { realtime: number; historical: number },
  count: number,
): Promise<ReadEntry[]> {
  const batches: JournalBatch[] = [];
  const entries: ReadEntry[] = [];
  const reader = new JournalReader(postgres, from, {
    offer: (some) => batches.push(...some),
    waitingBytes: () => 0,
    onFailure: (error) => {
      if (!(error instanceof PostgresUnreachableError)) throw error;
    },
  });
  reader.start();
  await until(async () => {
    for (const { lane, text } of batches.splice(0))
      for (const line of linesIn((await text()).bytes)) entries.push({ lane, ...JSON.parse(line) });
    return entries.length >= count;
  }, `${count} entries are read`);
  await reader.stop();
  return entries;
}

/** Appends until it is stopped, each text once. */
function sendThrough(journal: PostgresJournal, name: string, acknowledged: Map<string, number>) {
  let isStopped = false;
  let disorder = 0;
  const run = async () => {
    for (let count = 0; !isStopped; count++) {
      const before = Math.max(0, ...[...acknowledged.values()].slice(-writers));
      try {
        const text = `${name} ${count}`;
        const number = await journal.append("realtime", [entry(text)]);
        if (number <= before) disorder += 1;
        acknowledged.set(text, number);
      } catch {
        await Bun.sleep(20);
      }
    }
  };
  const running = run();
  return async () => {
    isStopped = true;
    await running;
    return disorder;
  };
}

test("after five kills of PostgreSQL no acknowledged entry is missing, and no number was given twice", async () => {
  await using own = await startPostgres();
  const { postgres } = await connect(own);
  const journals = [1, 2, 3, 4].map(
    () => new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 64e6 }),
  );
  const acknowledged = new Map<string, number>();
  const stops = journals.map((journal, index) => sendThrough(journal, `w${index}`, acknowledged));
  for (let round = 0; round < 5; round++) {
    const { size } = acknowledged;
    await until(() => acknowledged.size > size + 20, "entries are acknowledged");
    const highest = Math.max(...acknowledged.values());
    await own.restart();
    const next = await until(() => append(postgres, 0, "historical").catch(() => 0), "PostgreSQL is back");
    expect(next).toBeGreaterThan(highest);
  }
  const disorder = await Promise.all(stops.map((stop) => stop()));
  expect(disorder).toEqual([0, 0, 0, 0]);
  await expectAllRead(postgres, acknowledged);
  await Promise.all(journals.map((journal) => journal.close()));
  await postgres.close();
}, 120_000);

test("after a failover to the synchronous standby numbers continue behind the last acknowledged one", async () => {
  await using primary = await startPostgres();
  const { database } = await connect(primary);
  await using standby = await primary.standby();
  const postgres = reconnect(`postgres://postgres@${primary.host},${standby.host}/${database}`);
  const journal = new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 64e6 });
  const acknowledged = new Map<string, number>();
  const stop = sendThrough(journal, "w", acknowledged);
  await until(() => acknowledged.size > 50, "entries are acknowledged");
  await primary.kill();
  const highest = Math.max(...acknowledged.values());
  await standby.promote();
  await standby.run("ALTER SYSTEM SET synchronous_standby_names = ''");
  await standby.run("SELECT pg_reload_conf()");
  const { size } = acknowledged;
  await until(() => acknowledged.size > size + 20, "entries are acknowledged again");
  expect([...acknowledged.values()][size + 1]).toBeGreaterThan(highest);
  expect(await stop()).toBe(0);
  await expectAllRead(postgres, acknowledged);
  await journal.close();
  await postgres.close();
}, 120_000);

async function expectAllRead(postgres: Postgres, acknowledged: ReadonlyMap<string, number>): Promise<void> {
  // Empty blocks of `append` cannot be decompressed.
  await postgres.run((sql) => sql`DELETE FROM flagkeep.journal WHERE lane = 'historical'`);
  const [row] = await postgres.run((sql) => sql`SELECT sum(entries)::int AS entries FROM flagkeep.journal`);
  const read = await readAll(postgres, { realtime: 0, historical: 0 }, row!.entries);
  const seqs = new Map(read.map(({ seq, text }) => [text, seq]));
  expect(new Set(read.map(({ seq }) => seq)).size).toBe(read.length);
  // The journal repeats a block whose answer was lost, and the sender repeats none.
  expect(new Set(read.map(({ text }) => text)).size).toBe(read.length);
  for (const [text, number] of acknowledged)
    expect({ text, seq: seqs.get(text) }).toEqual({ text, seq: number });
}
