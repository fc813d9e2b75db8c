/** The copy of flags and keys that a node serves from: what is in memory of it follows what it becomes. */

import { expect } from "bun:test";
import { join } from "node:path";
import { metadataStore } from "../../src/accounts/db.ts";
import { initialize } from "../../src/accounts/initialize.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { Postgres } from "../../src/cluster/connection.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { StoreReplica } from "../../src/cluster/store-replica.ts";
import { FlagSets } from "../../src/flags/store/flag-sets.ts";
import { createFlag, updateFlag } from "../../src/flags/store/flag-writes.ts";
import { payloadCipher } from "../../src/flags/store/payload-cipher.ts";
import { newPayloadKey } from "../../src/flags/store/payload-key.ts";
import { toHttpError } from "../../src/http/error-mapping.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { createDatabase, server, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/server.ts";

const test = testWithPostgres("a node's copy of flags and keys");
usePostgres();

test("flags of a change that was rejected are not served when the next change has the same revision", async () => {
  const { postgres, database } = await createDatabase();
  const path = join(temporaryFolder(), "metadata.sqlite");
  await StoreReplica.prepare(path, metadataStore, postgres);
  const metadata = openMetadata(path);
  const copy = StoreReplica.attach(metadata.db.$client, metadataStore, postgres, {
    onApplied: (isBack) => metadata.changes.syncRows(isBack),
  });
  const flagSets = new FlagSets(metadata, () => []);
  const writing = { metadata, payloads: payloadCipher(Buffer.from(newPayloadKey(), "base64")) };
  const names = () => flagSets.get(1).definitions.map(({ name }) => name);
  const { id } = await copy.change(() => {
    const { user } = initialize(metadata, { organization: "o", project: "p", email: "a@example.com" });
    const fields = { key: "flag", name: "first" };
    return createFlag(writing, {
      by: user.id,
      projectId: 1,
      fields,
      createsUsageDashboard: false,
      now: new Date(),
    });
  });
  const rename = (name: string) =>
    updateFlag(writing, { by: 1, projectId: 1, id, now: new Date(), fields: { name }, sent: { name } });
  const rejected = copy.change(async () => {
    rename("refused");
    // Served while it is on its way, and then PostgreSQL goes away.
    expect(names()).toEqual(["refused"]);
    await server.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'",
      database,
    );
  });
  await expect(rejected).rejects.toThrow("is unavailable");
  expect(names()).toEqual(["refused"]);
  await postgres.untilDone(() => copy.change(() => rename("second")));
  expect(names()).toEqual(["second"]);
  metadata.close();
  await postgres.close();
});

test("a change that cannot be committed, and those queued after it, fail within their timeout", async () => {
  const address = parsePostgresUrl(await server.create("held_up"))!;
  const errors: unknown[] = [];
  const postgres = new Postgres(
    address,
    { connections: 4, name: "test" },
    (reason) => reason !== null && errors.push(reason),
  );
  await migratePostgres(postgres);
  const path = join(temporaryFolder(), "metadata.sqlite");
  await StoreReplica.prepare(path, metadataStore, postgres);
  const metadata = openMetadata(path);
  const copy = StoreReplica.attach(metadata.db.$client, metadataStore, postgres);
  await copy.change(() => initialize(metadata, { organization: "o", project: "p", email: "a@example.com" }));
  const rename = (name: string) =>
    metadata.db.$client.query("UPDATE project SET name = ? WHERE id = 1").run(name);
  // As a commit does that waits for a standby which has gone: it has the lock, and does not end.
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const holding = postgres.transaction(async (t) => {
    await t`SELECT 1 FROM flagkeep.store FOR UPDATE`;
    held.resolve();
    await released.promise;
  }, 60_000);
  await held.promise;
  const start = performance.now();
  const changes = await Promise.allSettled(
    ["a", "b", "c"].map((name) => copy.change(() => rename(name), undefined, 500)),
  );
  expect(performance.now() - start).toBeLessThan(5_000);
  // PostgreSQL answers, and so it is not what the client and the operator are told of.
  for (const change of changes) {
    const { code, message } = toHttpError(change.status === "rejected" && change.reason);
    expect([code, message]).toEqual([
      "change_in_progress",
      "Another change is still in progress; nothing was changed.",
    ]);
  }
  expect(errors).toEqual([]);
  released.resolve();
  await holding;
  await postgres.untilDone(() => copy.change(() => rename("d")));
  const name = () => metadata.db.$client.query("SELECT name FROM project WHERE id = 1").get();
  expect(name()).toEqual({ name: "d" });
  metadata.close();
  await postgres.close();
});
