/** Connections that are lost are never replaced by ones to a standby, which would reject every write. */

import { expect } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { PostgresJournal } from "../../src/cluster/journal.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";

const test = testWithPostgres("connections after losses");
const rounds = 30;

test("no connection is to the standby after connections were lost again and again", async () => {
  await using primary = await startPostgres();
  await using standby = await primary.standby();
  const address = parsePostgresUrl(`postgres://postgres@${standby.host},${primary.host}/postgres`)!;
  const postgres = new Postgres(address, { connections: 8, name: "test" });
  await postgres.run((sql) => sql`CREATE TABLE kept (number integer)`);
  await postgres.listen("notices", () => undefined);
  const write = (number: number) => postgres.run((sql) => sql`INSERT INTO kept VALUES (${number})`);
  const end =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'flagkeep test'";
  for (let round = 0; round < rounds; round++) {
    const writes = Promise.allSettled(Array.from({ length: 24 }, (_, number) => write(number)));
    await Promise.all([primary.run(end), standby.run(end)]);
    await writes;
  }
  await until(
    () =>
      write(0).then(
        () => true,
        () => false,
      ),
    "a write succeeds",
  );
  const results = await Promise.allSettled(Array.from({ length: 200 }, (_, number) => write(number)));
  const rejected = results.flatMap((result) => (result.status === "rejected" ? String(result.reason) : []));
  expect(rejected).toEqual([]);
  const there = await standby.run(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'flagkeep test'",
  );
  expect(there).toEqual([]);
  await postgres.close();
}, 60_000);

test("a server that becomes read-only is replaced by another one, and until then nothing is reported as ready", async () => {
  await using server = await startPostgres();
  const address = parsePostgresUrl(server.url("postgres"))!;
  const postgres = new Postgres(address, { connections: 4, name: "test" });
  await migratePostgres(postgres);
  const journal = new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 1_000_000 });
  await journal.append("realtime", ['"one"']);
  const pids = () =>
    server.run<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE application_name = 'flagkeep test'");
  const before = new Set((await pids()).map(({ pid }) => pid));
  await server.run("ALTER SYSTEM SET default_transaction_read_only = on");
  await server.run("SELECT pg_reload_conf()");
  const write = () => postgres.run((sql) => sql`DELETE FROM flagkeep.front`);
  await until(
    () =>
      write().then(
        () => false,
        () => true,
      ),
    "writes are rejected",
  );
  await until(async () => !(await pids()).some(({ pid }) => before.has(pid)), "its connections are renewed");
  await expect(journal.append("realtime", ['"two"'])).rejects.toThrow();
  // The journal looks at the numbers meanwhile, which still can be read.
  const end = performance.now() + 2_500;
  while (performance.now() < end) {
    expect(journal.admission().isOpen).toBe(false);
    await Bun.sleep(50);
  }
  await server.run("ALTER SYSTEM RESET default_transaction_read_only");
  await server.run("SELECT pg_reload_conf()");
  await until(() => journal.admission().isOpen, "it is ready again", 15_000);
  await journal.append("realtime", ['"three"']);
  await journal.close();
  await postgres.close();
}, 60_000);
