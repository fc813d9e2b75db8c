/** Converts a data directory to a cluster node with its data in PostgreSQL, and creates one from a cluster. */

import { existsSync, readdirSync } from "node:fs";
import { metadataStore } from "../accounts/db.ts";
import { openMetadata } from "../accounts/metadata.ts";
import type { StoreName } from "../cluster/commits.ts";
import { Postgres, type Transaction } from "../cluster/connection.ts";
import { ClusterMigrationError, chooseLayout, readLayout } from "../cluster/layout.ts";
import {
  assertIdle,
  copyStore,
  deleteLocally,
  finishCopy,
  finishMigration,
  markReturned,
  startMigration,
} from "../cluster/migration.ts";
import { sharedSecret } from "../cluster/nodes.ts";
import { readHighestApplied } from "../cluster/partitions.ts";
import { ReplicaFile } from "../cluster/replica-file.ts";
import { isReplica } from "../cluster/replica-marker.ts";
import { migratePostgres } from "../cluster/schema.ts";
import { StoreReplica } from "../cluster/store-replica.ts";
import { postgresAddress } from "../config/secrets.ts";
import type { Config } from "../config/settings.ts";
import { newPayloadKey, openPayloadKey, writePayloadKey } from "../flags/store/payload-key.ts";
import { openSqlite } from "../lib/sqlite.ts";
import type { PostgresAddress } from "../lib/store-urls.ts";
import { acquireStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { hasExternalEvents, recordPositions } from "../persons/external-events.ts";
import { openPersons, personStore } from "../persons/open.ts";
import { copyFromRows, copyToRows, readRowsVersion, rowTables } from "../persons/postgres/copy.ts";
import { laneCursors } from "../persons/reader.ts";
import { openDataDirectory } from "./data-directory.ts";
import { assertEventsUrl, payloadKeyName } from "./local-data.ts";

const connections = 2;

/** Number of migrated rows of both stores. */
export interface MigrationResult {
  metadata: number;
  people: number;
}

/**
 * Copies everything but the events of a data directory to PostgreSQL, and makes it a cluster node. The events are in
 * ClickHouse, and all of them are loaded.
 *
 * @param onProgress receives how many rows of a store remain.
 * @throws {ClusterMigrationError} @throws {DirectoryInUseError} @throws {PostgresUnreachableError} the command can be
 * retried.
 */
export async function migrateToCluster(
  config: Config,
  onProgress: (left: number) => void,
): Promise<MigrationResult> {
  const dataPaths = paths(config["data-dir"]);
  const lock = await acquireStoresLock(dataPaths, config["data-dir"]);
  const postgres = connect(config);
  try {
    if (isReplica(dataPaths.metadata))
      throw new ClusterMigrationError(
        "The data directory already belongs to a cluster node.",
        "Start it with --postgres-url and --events-url.",
      );
    // Opening migrates both to this version's schema.
    const opened = openMetadata(dataPaths.metadata);
    const payloadKey = openPayloadKey(dataPaths.payloadKey, opened);
    opened.close();
    const people = openPersons(dataPaths.people);
    const metadata = openSqlite(dataPaths.metadata, {});
    try {
      if (!hasExternalEvents(people))
        throw new ClusterMigrationError("The events are not in ClickHouse.", "Run it again.");
      const id = people.$client.query<{ id: string }, []>("SELECT id FROM outside_store").get()!.id;
      await migratePostgres(postgres);
      await startMigration(postgres, id);
      const chosen = { persons: config["cluster-persons"], loading: config["cluster-loading"] };
      const isInRows = (await chooseLayout(postgres, chosen)).persons === "rows";
      if (isInRows) await copyToRows(people, postgres);
      // Metadata is marked as a replica last: its marker is what identifies the directory as a node's.
      const persons = await copyStore(people.$client, personStore, postgres, {
        id,
        onProgress,
        ...(isInRows ? { omitted: rowTables } : {}),
      });
      const others = await copyStore(metadata.$client, metadataStore, postgres, { id, onProgress });
      const key = payloadKey.toString("base64");
      await finishMigration(postgres, { lastSeqs: laneCursors(people), secrets: { [payloadKeyName]: key } });
      if (isInRows) deleteLocally(people.$client, rowTables);
      return { metadata: others.rows, people: persons.rows };
    } finally {
      people.$client.close();
      metadata.$client.close();
    }
  } finally {
    await postgres.close();
    lock.release();
  }
}

/**
 * Deletes the persons that a migration has left in the file of a node with persons as rows: it was interrupted when
 * everything else was done. @param path of the replica, which nothing else changes
 */
export function deleteLeftPersons(path: string): void {
  const { $client: client } = openSqlite(path, {});
  try {
    const hasRows = (table: string) => client.query(`SELECT 1 FROM ${table} LIMIT 1`).get() !== null;
    if ([...rowTables].some(hasRows)) deleteLocally(client, rowTables);
  } finally {
    client.close();
  }
}

/**
 * Creates a local data directory from a stopped cluster; the events stay in ClickHouse.
 *
 * @throws {ClusterMigrationError} @throws {PostgresUnreachableError}
 */
export async function migrateFromCluster(config: Config): Promise<void> {
  const postgres = connect(config);
  try {
    await migratePostgres(postgres);
    await postgres.run((sql) => assertIdle(sql));
    await bringInto(config["data-dir"], postgres);
  } finally {
    await postgres.close();
  }
}

async function bringInto(dataDir: string, postgres: Postgres): Promise<void> {
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0)
    throw new ClusterMigrationError(
      `${dataDir} is not empty.`,
      "Use a folder that is empty or does not exist.",
    );
  const lock = openDataDirectory(dataDir);
  const storePaths = paths(dataDir);
  try {
    await StoreReplica.prepare(storePaths.people, personStore, postgres);
    const rowsVersion = await postgres.run((sql) => readRowsVersion(sql));
    const { persons, loading } = await readLayout(postgres);
    if (persons === "rows") {
      const people = openPersons(storePaths.people);
      try {
        await copyFromRows(postgres, people);
        // Nothing waits: all partitions are at the end.
        if (loading === "partitions") recordPositions(people, await readHighestApplied(postgres));
      } finally {
        people.$client.close();
      }
    }
    await StoreReplica.prepare(storePaths.metadata, metadataStore, postgres);
    writePayloadKey(
      storePaths.payloadKey,
      Buffer.from(await sharedSecret(postgres, payloadKeyName, newPayloadKey()), "base64"),
    );
    const copied = {
      people: getRevision(storePaths.people),
      metadata: getRevision(storePaths.metadata),
      rowsVersion,
    };
    await markReturned(postgres, dataDir, async (t) => {
      if (Bun.deepEquals(await readState(t), copied)) return;
      throw new ClusterMigrationError(
        "A node has changed data during the migration.",
        `Stop all nodes, empty ${dataDir} and run the command again.`,
      );
    });
    for (const path of [storePaths.people, storePaths.metadata]) {
      const { $client } = openSqlite(path, {});
      finishCopy($client);
      $client.close();
    }
  } finally {
    lock.release();
  }
}

/** The newest commit in a replica. */
function getRevision(path: string): number {
  const { $client: client } = openSqlite(path, {});
  try {
    return new ReplicaFile(client).state.revision;
  } finally {
    client.close();
  }
}

/** The state of the stores in PostgreSQL, which every change changes. */
async function readState(t: Transaction) {
  const rows = await t<{ name: StoreName; revision: number }[]>`
    SELECT name, revision::float8 AS revision FROM flagkeep.store`;
  const getStored = (store: StoreName) => rows.find(({ name }) => name === store)?.revision;
  return {
    people: getStored("people"),
    metadata: getStored("metadata"),
    rowsVersion: await readRowsVersion(t),
  };
}

function connect(config: Config): Postgres {
  assertEventsUrl(config);
  return new Postgres(assertTarget(config), { connections, name: "migration" });
}

/** @throws {ClusterMigrationError} PostgreSQL or ClickHouse is not configured. */
export function assertTarget(config: Config): PostgresAddress {
  const address = postgresAddress(config, process.env);
  if (address !== null && config["events-url"] !== null) return address;
  throw new ClusterMigrationError(
    "The addresses of PostgreSQL and ClickHouse are missing.",
    "Set --postgres-url and --events-url.",
  );
}
