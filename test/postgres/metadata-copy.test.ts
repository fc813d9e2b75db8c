/** The copy of flags and keys that a front serves from: what is in memory of it follows what it becomes. */

import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { metadataStore } from "../../src/accounts/db.ts";
import { initialise } from "../../src/accounts/initialise.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { FlagSets } from "../../src/flags/store/flag-sets.ts";
import { createFlag, updateFlag } from "../../src/flags/store/flag-writes.ts";
import { newPayloadKey, payloadCipher } from "../../src/flags/store/payload-cipher.ts";
import { parsePostgresUrl } from "../../src/lib/postgres-address.ts";
import { Postgres } from "../../src/postgres/connection.ts";
import { migratePostgres } from "../../src/postgres/schema.ts";
import { StoreCopy } from "../../src/postgres/store-copy.ts";
import { temporaryFolder } from "../support/appliance.ts";
import { hasPostgres, startPostgres, type TestPostgres, testWithPostgres } from "../support/postgres.ts";

const test = testWithPostgres("a front's copy of flags and keys");

let server: TestPostgres;

if (hasPostgres) {
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(async () => await server[Symbol.asyncDispose]());
}

test("flags of a change that was refused are not served when the next change has the same revision", async () => {
  const postgres = new Postgres(parsePostgresUrl(await server.create("refused"))!, {
    ...{ connections: 4, name: "test" },
  });
  await migratePostgres(postgres);
  const path = join(temporaryFolder(), "metadata.sqlite");
  await StoreCopy.prepare(path, metadataStore, postgres);
  const metadata = openMetadata(path);
  const copy = StoreCopy.attach(metadata.db.$client, metadataStore, postgres, {
    onTaken: (isBack) => metadata.changes.retake(isBack),
  });
  const flagSets = new FlagSets(metadata, () => []);
  const writing = { metadata, payloads: payloadCipher(Buffer.from(newPayloadKey(), "base64")) };
  const names = () => flagSets.of(1).definitions.map(({ name }) => name);
  const { id } = await copy.change(() => {
    const { user } = initialise(metadata, { organization: "o", project: "p", email: "a@example.com" });
    const fields = { key: "flag", name: "first" };
    return createFlag(writing, {
      ...{ by: user.id, projectId: 1, fields, createsUsageDashboard: false, now: new Date() },
    });
  });
  const rename = (name: string) =>
    updateFlag(writing, { by: 1, projectId: 1, id, now: new Date(), fields: { name }, sent: { name } });
  const refused = copy.change(async () => {
    rename("refused");
    // Served while it is on its way, and then PostgreSQL goes away.
    expect(names()).toEqual(["refused"]);
    await server.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'",
      "refused",
    );
  });
  await expect(refused).rejects.toThrow("cannot be used");
  expect(names()).toEqual(["refused"]);
  await postgres.untilDone(() => copy.change(() => rename("second")));
  expect(names()).toEqual(["second"]);
  metadata.close();
  await postgres.close();
});
