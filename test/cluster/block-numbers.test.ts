/** Numbers of the journal's entries: in order, each once, and never going back, whatever happens to PostgreSQL. */

import { describe, expect } from "bun:test";
import { Postgres, PostgresUnreachableError } from "../../src/cluster/connection.ts";
import { PostgresJournal } from "../../src/cluster/journal.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { createDatabase, openPostgres, server, usePostgres } from "../support/cluster-database.ts";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";
import { append, entry, readAll } from "./journal-support.ts";

const test = testWithPostgres("numbers of the journal");
/** The highest of this many acknowledged numbers is compared with the next. */
const comparedNumbers = 8;

usePostgres();

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

describe("the journal", () => {
  const openJournal = (postgres: Postgres) =>
    new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 64e6 });

  test("gives larger groups of several nodes numbers that do not overlap", async () => {
    const { postgres, url } = await createDatabase();
    const nodes = await Promise.all([1, 2, 3].map(async () => openPostgres(url)));
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

  test("stores a block once if its response is lost, and returns its number", async () => {
    const { postgres, url } = await createDatabase();
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
    const { postgres, url } = await createDatabase();
    const old = openPostgres(url, 1);
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

  test("a cluster of version 0.2 continues after the numbers of both lanes, with its pending entries", async () => {
    const { postgres, database } = await createDatabase();
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

/** Appends until it is stopped, each text once. */
function sendThrough(journal: PostgresJournal, name: string, acknowledged: Map<string, number>) {
  let isStopped = false;
  let disorder = 0;
  const run = async () => {
    for (let count = 0; !isStopped; count++) {
      const before = Math.max(0, ...[...acknowledged.values()].slice(-comparedNumbers));
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
  const { postgres } = await createDatabase(own);
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

test("after a failover to the synchronous standby numbers continue after the last acknowledged one", async () => {
  await using primary = await startPostgres();
  const { database } = await createDatabase(primary);
  await using standby = await primary.standby();
  const postgres = openPostgres(`postgres://postgres@${primary.host},${standby.host}/${database}`);
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
