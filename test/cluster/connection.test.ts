/** Connections over several hosts: the primary is found, and whatever breaks while they are created ends no one's process. */

import { expect } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { acquireLease, renewLease } from "../../src/cluster/lease.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { assertPatched } from "../support/patched-client.ts";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";

const test = testWithPostgres("connections to PostgreSQL");
test("the primary is found after a standby in the list, also when it changes", async () => {
  await using primary = await startPostgres();
  await using standby = await primary.standby();
  const address = parsePostgresUrl(`postgres://postgres@${standby.host},${primary.host}/postgres`)!;
  const postgres = new Postgres(address, { connections: 4, name: "test" });
  const write = () =>
    postgres.untilDone(() => postgres.run((sql) => sql`CREATE TABLE IF NOT EXISTS kept (texts text[])`));
  await write();
  const texts = ['a "quoted" \\ one', "", "NULL", "{,}", "é\n", null];
  await postgres.run(
    (sql) => sql`INSERT INTO kept SELECT array_agg(text) FROM unnest(${texts}::text[]) AS text`,
  );
  const [row] = await postgres.run((sql) => sql`SELECT to_json(texts) AS texts FROM kept`);
  expect(row!.texts).toEqual(texts);
  // Back without a change of roles: those that went to the standby meanwhile must not stay there.
  await primary.kill();
  await expect(postgres.run((sql) => sql`SELECT 1`)).rejects.toThrow("is unavailable");
  await primary.restart();
  await write();
  await primary.kill();
  await standby.promote();
  await write();
  await postgres.close();
}, 60_000);

test("the server ends the transaction of a hung process, and the lease is held without one", async () => {
  await using server = await startPostgres();
  const address = parsePostgresUrl(server.url("postgres"))!;
  const postgres = new Postgres(address, { connections: 1, name: "test" });
  const hung = postgres.transaction(
    async (t) => {
      await t`SELECT 1`;
      return await new Promise<never>(() => undefined);
    },
    30_000,
    200,
  );
  await expect(hung).rejects.toThrow("CONNECTION_CLOSED");
  await migratePostgres(postgres);
  const lease = (await acquireLease(postgres, { node: crypto.randomUUID(), holder: crypto.randomUUID() }))!;
  postgres.transaction = async () => {
    throw new Error("A process that hangs in here would keep everybody from the lease.");
  };
  await renewLease(postgres, lease);
  await expect(renewLease(postgres, { ...lease, epoch: 99 })).rejects.toThrow("Another node");
  await postgres.close();
}, 60_000);

test("responses to a transaction whose connection was lost reach no other query", async () => {
  assertPatched();
  await using server = await startPostgres();
  await server.run("CREATE TABLE said (text text)");
  const address = parsePostgresUrl(server.url("postgres"))!;
  const postgres = new Postgres(address, { connections: 1, name: "test" });
  const started = Promise.withResolvers<void>();
  const isNext = Promise.withResolvers<void>();
  const late = Promise.withResolvers<string>();
  const lost = postgres
    .transaction(async (t) => {
      await t`SELECT 1`;
      started.resolve();
      await isNext.promise;
      await t`INSERT INTO said VALUES ('late')`.then(
        () => late.resolve("said"),
        () => late.resolve("refused"),
      );
    })
    .then(() => "done", String);
  await started.promise;
  await server.restart();
  expect(await lost).toContain("is unavailable");
  await postgres.untilDone(() =>
    postgres.transaction(async (t) => {
      await t`INSERT INTO said VALUES ('next')`;
      isNext.resolve();
      expect(await late.promise).toBe("refused");
      await Bun.sleep(50);
      // Still in its own transaction, which no one else has ended.
      const [row] = await t`SELECT pg_current_xact_id_if_assigned() IS NOT NULL AS within`;
      expect(row!.within).toBe(true);
    }),
  );
  expect(await server.run("SELECT text FROM said")).toEqual([{ text: "next" }]);
  await postgres.close();
}, 60_000);

test("calls aborted while connections are created fail for their callers alone", async () => {
  await using server = await startPostgres();
  const address = parsePostgresUrl(server.url("postgres"))!;
  for (let ms = 0; ms < 30; ms += 2) {
    const postgres = new Postgres(address, { connections: 4, name: "test" });
    const calls = Array.from({ length: 12 }, (_, index) =>
      postgres
        .transaction((t) => t`SELECT ${index}::int`)
        .then(
          () => "done",
          () => "given up",
        ),
    );
    await Bun.sleep(ms);
    await postgres.close();
    expect(["done", "given up"]).toContain((await Promise.all(calls))[0]!);
  }
}, 60_000);

test("a user who loses access later waits; at a start it is a configuration error", async () => {
  await using server = await startPostgres();
  await server.run("CREATE ROLE front LOGIN SUPERUSER");
  const address = parsePostgresUrl(`postgres://front@${server.host}/postgres`)!;
  const states: (string | undefined)[] = [];
  const postgres = new Postgres(address, { connections: 2, name: "test" }, (reason) =>
    states.push(reason?.message),
  );
  await migratePostgres(postgres);
  await server.run("ALTER ROLE front NOLOGIN");
  await server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'front'");
  const select = () => postgres.run((sql) => sql`SELECT 1 AS one`);
  // Those that were idle find out one after the other.
  for (let call = 0; call < 4; call++)
    await expect(select()).rejects.toThrow(
      `PostgreSQL at postgres://front@${server.host}/postgres is unavailable`,
    );
  expect(states.at(-1)).toContain("not permitted to log in");
  await expect(migratePostgres(postgres)).rejects.toThrow("rejects the connection: role");
  const waiting = postgres.untilDone(select);
  await server.run("ALTER ROLE front LOGIN");
  expect([...(await waiting)]).toEqual([{ one: 1 }]);
  expect(states.at(-1)).toBeUndefined();
  await server.run("ALTER ROLE front NOSUPERUSER");
  await server.run("REVOKE ALL ON SCHEMA flagkeep FROM front");
  await server.run("ALTER SCHEMA flagkeep OWNER TO postgres");
  await expect(postgres.run((sql) => sql`SELECT * FROM flagkeep.lane`)).rejects.toThrow("permission denied");
  await expect(postgres.run((sql) => sql`SELECT 1 / 0`)).rejects.toThrow("division by zero");
  await postgres.close();
}, 60_000);

test("a database that cannot hold every text is rejected", async () => {
  await using server = await startPostgres();
  await server.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const postgres = new Postgres(parsePostgresUrl(server.url("latin"))!, { connections: 1, name: "test" });
  await expect(migratePostgres(postgres)).rejects.toThrow("the database is in LATIN1, not in UTF8");
  await postgres.close();
}, 60_000);
