/**
 * A temporary copy of the cluster's metadata for one command; meanwhile no node can change anything. Of the persons
 * store, which may be large, it contains only the group types, which flag files reference.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getTableName } from "drizzle-orm";
import { metadataStore } from "../src/accounts/db.ts";
import { ChangeCapture } from "../src/cluster/change-capture.ts";
import { tableRows } from "../src/cluster/commits.ts";
import { Postgres } from "../src/cluster/connection.ts";
import { readLayout } from "../src/cluster/layout.ts";
import { sharedSecret } from "../src/cluster/nodes.ts";
import { migratePostgres } from "../src/cluster/schema.ts";
import { StoreReplica } from "../src/cluster/store-replica.ts";
import { newPayloadKey, writePayloadKey } from "../src/flags/store/payload-key.ts";
import { openSqlite } from "../src/lib/sqlite.ts";
import type { PostgresAddress } from "../src/lib/store-urls.ts";
import { paths } from "../src/paths.ts";
import { openPersons, personStore } from "../src/persons/open.ts";
import type { PersonReader } from "../src/persons/person-reader.ts";
import { PostgresPersonReader } from "../src/persons/postgres/reader.ts";
import { groupType } from "../src/persons/schema.ts";
import { payloadKeyName } from "../src/serve/local-data.ts";

const connections = 2;

export class ClusterSession {
  private constructor(
    /** Folder of the copy, laid out as a data directory. */
    readonly folder: string,
    private readonly postgres: Postgres,
    private readonly finish: () => void,
    private readonly changing: Promise<void>,
    /** The time to record: later than that of all earlier changes. */
    readonly now: Date,
    /** Undefined if persons are in the replicas of nodes. */
    readonly persons: PersonReader | undefined,
  ) {}

  /** Copies the store. @throws {PostgresUnreachableError} @throws {PostgresRejectedError} */
  static async start(address: PostgresAddress): Promise<ClusterSession> {
    const folder = mkdtempSync(join(tmpdir(), "flagkeep-command-"));
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    const postgres = new Postgres(address, { connections, name: "command" });
    await migratePostgres(postgres);
    const dataPaths = paths(folder);
    await StoreReplica.prepare(dataPaths.metadata, metadataStore, postgres);
    const key = await sharedSecret(postgres, payloadKeyName, newPayloadKey());
    writePayloadKey(dataPaths.payloadKey, Buffer.from(key, "base64"));
    await copyGroupTypes(dataPaths.people, postgres);
    const copy = StoreReplica.attach(openSqlite(dataPaths.metadata, {}).$client, metadataStore, postgres);
    const started = Promise.withResolvers<Date>();
    const done = Promise.withResolvers<void>();
    const changing = copy.change((_, now) => {
      started.resolve(now);
      return done.promise;
    });
    const now = await Promise.race([started.promise, changing.then(() => started.promise)]);
    const layout = await readLayout(postgres);
    const persons = layout.persons === "rows" ? new PostgresPersonReader(postgres) : undefined;
    return new ClusterSession(folder, postgres, done.resolve, changing, now, persons);
  }

  /**
   * Resolves once the changes are committed to the cluster. @throws {PostgresUnreachableError} the commit is uncertain.
   */
  async end(): Promise<void> {
    this.finish();
    await this.changing;
    await this.postgres.close();
  }
}

/** @param path of a persons store that does not exist yet. */
async function copyGroupTypes(path: string, postgres: Postgres): Promise<void> {
  const rows = await postgres.transaction(async (t) => {
    await t`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
    return await tableRows(t, personStore.name, getTableName(groupType));
  });
  const { $client: client } = openPersons(path);
  try {
    const tables = new ChangeCapture(client);
    client.transaction(() => tables.write(rows)).immediate();
    tables.drop();
  } finally {
    client.close();
  }
}
