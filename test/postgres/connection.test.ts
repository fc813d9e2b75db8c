/** Connections over several hosts: the primary is found, and whatever breaks while they are made ends nobody's process. */

import { expect } from "bun:test";
import { parsePostgresUrl } from "../../src/lib/postgres-address.ts";
import { Postgres } from "../../src/postgres/connection.ts";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";

const test = testWithPostgres("connections to PostgreSQL");

test("the primary is found behind a standby, also when it is another one", async () => {
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
  await expect(postgres.run((sql) => sql`SELECT 1`)).rejects.toThrow("cannot be used");
  await primary.restart();
  await write();
  await primary.kill();
  await standby.promote();
  await write();
  await postgres.close();
}, 60_000);

test("calls that are given up while connections are made fail for their callers alone", async () => {
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
