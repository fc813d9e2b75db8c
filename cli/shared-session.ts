/** A copy of the store of several fronts, for as long as a command works on it; no front changes anything meanwhile. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { metadataStore } from "../src/accounts/db.ts";
import { newPayloadKey, writePayloadKey } from "../src/flags/store/payload-cipher.ts";
import type { PostgresAddress } from "../src/lib/postgres-address.ts";
import { openSqlite } from "../src/lib/sqlite/open.ts";
import { paths } from "../src/paths.ts";
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
