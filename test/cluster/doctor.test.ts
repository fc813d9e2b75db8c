/** What the doctor says of PostgreSQL, to whichever user it may ask as. */

import { expect } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { checkPostgres } from "../../src/operate/doctor/postgres.ts";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";

const test = testWithPostgres("the doctor of PostgreSQL");

test("the standby is found, also by a user without the privilege to see it", async () => {
  await using server = await startPostgres();
  const getAddress = (user: string) => parsePostgresUrl(`postgres://${user}@${server.host}/postgres`)!;
  await server.run("CREATE ROLE ordinary LOGIN");
  await server.run("GRANT CREATE ON DATABASE postgres TO ordinary");
  const postgres = new Postgres(getAddress("ordinary"), { connections: 1, name: "test" });
  await migratePostgres(postgres);
  await postgres.close();
  const saidTo = async (user: string) =>
    (await checkPostgres(getAddress(user))).map(({ level, message }) => `${level} ${message}`);
  for (const user of ["ordinary", "postgres"])
    expect(await saidTo(user)).toContainEqual(expect.stringMatching(/^warning .* no synchronous standby/));
  await using _ = await server.standby();
  for (const user of ["ordinary", "postgres"]) {
    const said = await saidTo(user);
    expect(said.filter((one) => !one.startsWith("ok"))).toEqual([]);
    expect(said).toContainEqual(expect.stringMatching(/^ok .*(every commit|Every commit)/));
  }
}, 60_000);
