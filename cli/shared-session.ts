/**
 * A copy of the store of several fronts, for as long as a command works on it; no front changes anything meanwhile. Of the
 * store of persons, which may be large, it has the types of groups, which files of flags name.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getTableName } from "drizzle-orm";
import { metadataStore } from "../src/accounts/db.ts";
import { newPayloadKey, writePayloadKey } from "../src/flags/store/payload-key.ts";
import type { PostgresAddress } from "../src/lib/postgres-address.ts";
import { openSqlite } from "../src/lib/sqlite/open.ts";
import { paths } from "../src/paths.ts";
import { openPeople, peopleStore } from "../src/people/open.ts";
import { groupType } from "../src/people/schema.ts";
import { CapturedTables } from "../src/postgres/captured-tables.ts";
import { tableRows } from "../src/postgres/commits.ts";
import { Postgres } from "../src/postgres/connection.ts";
import { sharedSecret } from "../src/postgres/fronts.ts";
import { migratePostgres } from "../src/postgres/schema.ts";
import { StoreCopy } from "../src/postgres/store-copy.ts";
import { payloadKeyName } from "../src/serve/own-data.ts";

const connections = 2;

export class SharedSession {
  private constructor(
    /** Where the copy is, as in a data directory. */
    readonly folder: string,
    private readonly postgres: Postgres,
    private readonly finish: () => void,
    private readonly changing: Promise<void>,
  ) {}

  /** Brings the store here. @throws {PostgresUnreachable} @throws {PostgresRefuses} */
  static async begin(address: PostgresAddress): Promise<SharedSession> {
    const folder = mkdtempSync(join(tmpdir(), "flagkeep-command-"));
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    const postgres = new Postgres(address, { connections, name: "command" });
    await migratePostgres(postgres);
    const place = paths(folder);
    await StoreCopy.prepare(place.metadata, metadataStore, postgres);
    const key = await sharedSecret(postgres, payloadKeyName, newPayloadKey());
    writePayloadKey(place.payloadKey, Buffer.from(key, "base64"));
    await bringGroupTypes(place.people, postgres);
    const copy = StoreCopy.attach(openSqlite(place.metadata, {}).$client, metadataStore, postgres);
    const begun = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    const changing = copy.change(() => {
      begun.resolve();
      return done.promise;
    });
    await Promise.race([begun.promise, changing]);
    return new SharedSession(folder, postgres, done.resolve, changing);
  }

  /** What was changed is everybody's when this resolves. @throws {PostgresUnreachable} it may not be. */
  async end(): Promise<void> {
    this.finish();
    await this.changing;
    await this.postgres.close();
  }
}

/** @param path of a store of persons that is not there yet */
async function bringGroupTypes(path: string, postgres: Postgres): Promise<void> {
  const rows = await postgres.transaction(async (t) => {
    await t`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
    return await tableRows(t, peopleStore.name, getTableName(groupType));
  });
  const { $client: client } = openPeople(path);
  try {
    const tables = new CapturedTables(client);
    client.transaction(() => tables.write(rows)).immediate();
    tables.drop();
  } finally {
    client.close();
  }
}
