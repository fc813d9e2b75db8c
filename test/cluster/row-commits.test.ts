/** A step whose commit fails is applied completely or not at all, whatever else is committed before it is repeated. */

import { expect, mock } from "bun:test";
import {
  ChangeInProgressError,
  Postgres,
  PostgresUnreachableError,
  type Transaction,
} from "../../src/cluster/connection.ts";
import { chooseLayout } from "../../src/cluster/layout.ts";
import { acquireLease, type Lease, releaseLease } from "../../src/cluster/lease.ts";
import { StoreReplica } from "../../src/cluster/store-replica.ts";
import type { JournalItem } from "../../src/journal/entry.ts";
import type { IdentityStep } from "../../src/persons/batch.ts";
import { type PersonsDb, personStore } from "../../src/persons/open.ts";
import { PostgresPersonReader } from "../../src/persons/postgres/reader.ts";
import { RowStore, type RowStoreDeps } from "../../src/persons/postgres/store.ts";
import { PersonStore } from "../../src/persons/store.ts";
import { event, note, set, spikeSettings } from "../persons/support.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { openClusterPersons, openReplica } from "./person-support.ts";

const test = testWithPostgres("commits of persons as rows");
usePostgres();

async function connect(): Promise<Postgres> {
  const { postgres } = await createDatabase();
  await chooseLayout(postgres, { persons: "rows" });
  return postgres;
}

/** An engine with a new replica, and the lease. */
class TestEngine {
  readonly store: RowStore;
  /** Called with the SQL of each statement of a step. */
  onStatement: (sql: string) => void = () => undefined;
  /** Called when a step has written its rows. */
  onWritten: () => void = () => undefined;

  private constructor(
    private readonly postgres: Postgres,
    readonly copy: StoreReplica,
    readonly lease: Lease,
    private readonly db: PersonsDb,
  ) {
    const commit: RowStoreDeps["commit"] = async (write, prepare) => {
      const writeAndCall = async (t: Transaction) => {
        const apply: ProxyHandler<Transaction>["apply"] = (target, _, args) => {
          if (Array.isArray(args[0])) this.onStatement(args[0].join("?"));
          return Reflect.apply(target, undefined, args);
        };
        const watched = new Proxy(t, { apply });
        await prepare(watched);
        await write(watched);
        this.onWritten();
      };
      await postgres.untilDone(() => copy.commitWith(writeAndCall, lease));
    };
    this.store = new RowStore({ postgres, people: new PersonStore(db, spikeSettings), commit });
  }

  static async start({ address }: Postgres): Promise<TestEngine> {
    const postgres = new Postgres(address, { connections: 4, name: "test engine" });
    const db = await openReplica(postgres);
    const copy = StoreReplica.attach(db.$client, personStore, postgres);
    const lease = await acquireLease(postgres, { node: crypto.randomUUID(), holder: crypto.randomUUID() });
    await copy.catchUp();
    return new TestEngine(postgres, copy, lease!, db);
  }

  async step(...items: JournalItem[]): Promise<IdentityStep> {
    const step = await this.store.start(items[0]!.historical ? "historical" : "realtime");
    await step.add({ items, duplicates: [] });
    return step;
  }

  get groupTypes(): { name: string; typeIndex: number }[] {
    const query = this.db.$client.query<{ name: string; typeIndex: number }, []>(
      "SELECT name, type_index AS typeIndex FROM group_type ORDER BY type_index",
    );
    return query.all();
  }

  /** Ingestion warnings of all projects. */
  get warningCount(): number {
    const query = this.db.$client.query<{ count: number }, []>(
      "SELECT sum(count) AS count FROM ingestion_warning",
    );
    return query.get()!.count;
  }

  async kill(): Promise<void> {
    await releaseLease(this.postgres, this.lease);
    await this.postgres.close();
    this.db.$client.close();
  }
}

/** The first call fails as if the connection was lost. */
const failOnce = ({ address }: Postgres) =>
  mock().mockImplementationOnce(() => {
    throw new PostgresUnreachableError(address, new Error("on purpose"));
  });

/** @returns the error */
const commit = async (step: IdentityStep, seq: number) =>
  Promise.resolve(step.commit(seq)).then(() => undefined, String);

const plan = async (postgres: Postgres, distinctId: string) =>
  (await new PostgresPersonReader(postgres).personByDistinctId(1, distinctId))?.properties.plan;

test("after a failed commit of a step nothing is committed without its persons, and the next engine applies it", async () => {
  const postgres = await connect();
  const engine = await TestEngine.start(postgres);
  const failed = Promise.withResolvers<void>();
  engine.onWritten = () => {
    failed.resolve();
    throw new PostgresUnreachableError(postgres.address, new Error("on purpose"));
  };
  const items = [set("ann", { plan: "pro" }), set("kim", { plan: "free" }, { historical: true })];
  const step = await engine.step(items[0]!);
  const later = await engine.step(items[1]!);
  const results = [commit(step, items[0]!.seq)];
  await failed.promise;
  // The other lane waits for the first one.
  results.push(commit(later, items[1]!.seq));
  const chore = await engine.copy.change(() => undefined, engine.lease).catch((error: unknown) => error);
  expect(chore).toBeInstanceOf(ChangeInProgressError);
  await engine.kill();
  expect(await Promise.all(results)).toEqual([expect.any(String), expect.any(String)]);
  const next = await TestEngine.start(postgres);
  expect([next.store.cursor("realtime"), next.store.cursor("historical")]).toEqual([0, 0]);
  for (const item of items) await (await next.step(item)).commit(item.seq);
  expect([await plan(postgres, "ann"), await plan(postgres, "kim")]).toEqual(["pro", "free"]);
  await next.kill();
  await postgres.close();
});

test("a step whose commit fails once is committed by a retry, and other changes follow", async () => {
  const postgres = await connect();
  const engine = await TestEngine.start(postgres);
  const fail = failOnce(postgres);
  engine.onWritten = fail;
  const item = set("ann", { plan: "pro" });
  await (await engine.step(item)).commit(item.seq);
  expect([fail.mock.calls.length, await plan(postgres, "ann")]).toEqual([2, "pro"]);
  expect(await engine.copy.change(() => "changed", engine.lease)).toBe("changed");
  await engine.kill();
  await postgres.close();
});

test("an engine does not start if its replica is ahead of the persons as rows", async () => {
  const postgres = await connect();
  const engine = await TestEngine.start(postgres);
  const item = set("ann", { plan: "pro" });
  await (await engine.step(item)).commit(item.seq);
  await engine.kill();
  await postgres.run((sql) => sql`UPDATE flagkeep.person_cursor SET last_seq = 0`);
  const db = await openReplica(postgres);
  expect(await openClusterPersons(db, postgres).catch((error: unknown) => error)).toMatchObject({
    code: "person_rows_behind",
    message: expect.stringContaining(`end at realtime entry 0, but entry ${item.seq} was loaded`),
  });
  // The lease is free for a node that can load.
  await (await TestEngine.start(postgres)).kill();
  await postgres.close();
});

test("a step with a deletion that is repeated counts its warnings once", async () => {
  const postgres = await connect();
  const engine = await TestEngine.start(postgres);
  const fail = failOnce(postgres);
  engine.onStatement = (sql) => {
    if (sql.includes("UPDATE flagkeep.person_cursor")) fail();
  };
  const exception = () => event({ event: "$exception", properties: { $set: { plan: "pro" } } });
  const items = [exception(), note({ kind: "person_deleted", details: { distinct_id: "kim" } }), exception()];
  await (await engine.step(...items)).commit(items.at(-1)!.seq);
  expect([fail.mock.calls.length, engine.warningCount]).toEqual([2, 2]);
  await engine.kill();
  await postgres.close();
});

test("a step with a deletion that is repeated stores its group types on both sides", async () => {
  const postgres = await connect();
  const engine = await TestEngine.start(postgres);
  const fail = failOnce(postgres);
  engine.onWritten = fail;
  const group = (type: string) =>
    event({ event: "$groupidentify", properties: { $group_type: type, $group_key: "a", $group_set: {} } });
  const deletion = () => note({ kind: "person_deleted", details: { distinct_id: "kim" } });
  const items = [group("company"), deletion(), group("team")];
  await (await engine.step(...items)).commit(items.at(-1)!.seq);
  const types = await postgres.run(
    (sql) => sql`SELECT name, type_index AS "typeIndex" FROM flagkeep.group_type ORDER BY type_index`,
  );
  const expected = ["company", "team"].map((name, typeIndex) => ({ name, typeIndex }));
  expect([fail.mock.calls.length, [...types], engine.groupTypes]).toEqual([2, expected, expected]);
  await engine.kill();
  await postgres.close();
});

test("the rows that a commit prepares are written while another node changes the store, and rolled back if the commit fails", async () => {
  const postgres = await connect();
  const engine = await TestEngine.start(postgres);
  const prepared = Promise.withResolvers<void>();
  const order: string[] = [];
  const prepare = async (t: Transaction) => {
    await t`INSERT INTO flagkeep.secret VALUES ('prepared', '')`;
    order.push("prepared");
    prepared.resolve();
  };
  const write = async () => {
    order.push("written");
    throw new Error("on purpose");
  };
  let commits: Promise<unknown> | undefined;
  await postgres.transaction(async (t) => {
    await t`SELECT 1 FROM flagkeep.store WHERE name = 'people' FOR UPDATE`;
    commits = engine.copy.commitWith(write, engine.lease, prepare).catch((error: unknown) => error);
    await prepared.promise;
    order.push("other change");
  });
  expect(await commits).toMatchObject({ message: "on purpose" });
  expect(order).toEqual(["prepared", "other change", "written"]);
  expect(
    await postgres.run((sql) => sql`SELECT 1 FROM flagkeep.secret WHERE name = 'prepared'`),
  ).toHaveLength(0);
  await engine.kill();
  await postgres.close();
});
