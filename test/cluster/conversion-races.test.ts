/** Conversions of persons that compete with a suspended node, or were interrupted in another data directory. */

import { expect } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import type { Postgres, Transaction } from "../../src/cluster/connection.ts";
import { type PersonsLayout, readLayout } from "../../src/cluster/layout.ts";
import { startMigration } from "../../src/cluster/migration.ts";
import { paths } from "../../src/paths.ts";
import { personStore } from "../../src/persons/open.ts";
import { convertPersons } from "../../src/serve/persons-conversion.ts";
import {
  createDatabase,
  openPostgres,
  server,
  untilLockAwaited,
  usePostgres,
} from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder, until } from "../support/server.ts";

const test = testWithPostgres("competing conversions of persons");
usePostgres();

/** A stopped cluster without persons. */
async function connectCluster(persons: PersonsLayout) {
  const connected = await createDatabase();
  await connected.postgres.transaction(async (t) => {
    await t`INSERT INTO flagkeep.store (name, schema_version, revision)
      VALUES ('people', ${personStore.migrations.length}, 0), ('metadata', 1, 1)`;
    await t`UPDATE flagkeep.layout SET persons = ${persons}`;
    await t`INSERT INTO flagkeep.person_change (project_id, is_cached_only) VALUES (0, true)`;
  });
  return connected;
}

const convert = async (postgres: Postgres, to: PersonsLayout, dataDir = temporaryFolder()) => {
  const ignore = () => undefined;
  return await convertPersons(postgres.address, { dataDir, to, onStep: ignore, onRows: ignore });
};

const lateChanges: Record<PersonsLayout, (t: Transaction) => Promise<unknown>> = {
  rows: (t) => t`UPDATE flagkeep.store SET revision = revision + 1 WHERE name = 'people'`,
  replica: (t) => t`INSERT INTO flagkeep.person_change (project_id, is_cached_only) VALUES (1, false)`,
};

test.each([
  ["rows", "replica"],
  ["replica", "rows"],
] as const)(
  "a conversion to %s does not switch if persons changed after they were copied",
  async (to, from) => {
    const { postgres, url, database } = await connectCluster(from);
    const node = openPostgres(url, 1);
    const isChanged = Promise.withResolvers<void>();
    const isCopied = Promise.withResolvers<void>();
    // A suspended node commits after it resumes. The conversion has copied everything when it waits for the layout.
    const late = node.transaction(async (t) => {
      await t`SELECT 1 FROM flagkeep.layout FOR UPDATE`;
      isChanged.resolve();
      await isCopied.promise;
      await lateChanges[to](t);
    });
    await isChanged.promise;
    const dataDir = temporaryFolder();
    const converted = convert(postgres, to, dataDir).then(
      () => "switched",
      (error) => error.code,
    );
    await untilLockAwaited(database);
    isCopied.resolve();
    await late;
    expect(await converted).toBe("persons_changed");
    expect(await readLayout(postgres)).toMatchObject({ persons: from });
    // The next attempt copies the changes.
    expect(await convert(postgres, to, dataDir)).toBe(true);
    expect(await readLayout(postgres)).toMatchObject({ persons: to });
    await Promise.all([postgres.close(), node.close()]);
  },
);

test("the tables have statistics when a conversion to rows has ended", async () => {
  const { postgres, database } = await connectCluster("replica");
  await convert(postgres, "rows");
  await until(async () => {
    const tables = await server.run<{ name: string }>(
      "SELECT relname AS name FROM pg_stat_user_tables WHERE schemaname = 'flagkeep' AND last_analyze IS NOT NULL",
      database,
    );
    const names = tables.map(({ name }) => name);
    return ["person", "distinct_id", "pending_override"].every((name) => names.includes(name));
  }, "the tables have statistics");
  await postgres.close();
});

test("a conversion waits for an unfinished migration of a data directory", async () => {
  const { postgres } = await createDatabase();
  await startMigration(postgres, "some directory");
  await expect(convert(postgres, "rows")).rejects.toMatchObject({
    code: "take_over_refused",
    hint: expect.stringContaining("migrate-to-cluster"),
  });
  await postgres.close();
});

test("the working file of a conversion that another data directory has finished is deleted", async () => {
  const { postgres } = await connectCluster("rows");
  const dataDir = temporaryFolder();
  const { peopleConversion } = paths(dataDir);
  writeFileSync(peopleConversion, "");
  expect(await convert(postgres, "rows", dataDir)).toBe(false);
  expect(existsSync(peopleConversion)).toBe(false);
  await postgres.close();
});
