/**
 * Converts the persons of a stopped cluster between replicas and rows. What is done is recorded in PostgreSQL and in a
 * working file, so that an interrupted conversion continues; nodes start only when it has finished.
 */

import { mkdirSync, renameSync } from "node:fs";
import type { Sql } from "postgres";
import { compactCommits } from "../cluster/commits.ts";
import { Postgres, type Transaction } from "../cluster/connection.ts";
import {
  type Conversion,
  ConversionPendingError,
  PartitionsNeedRowsError,
  type PersonsLayout,
  readLayout,
  readNodeState,
  recordConversion,
} from "../cluster/layout.ts";
import { fenceLease } from "../cluster/lease.ts";
import { assertNodesStopped, copyStore, isStoreSent } from "../cluster/migration.ts";
import { deleteSqlite } from "../cluster/replica-file.ts";
import { isReplica } from "../cluster/replica-marker.ts";
import { migratePostgres } from "../cluster/schema.ts";
import { StoreReplica } from "../cluster/store-replica.ts";
import { assertNotMigrating, lockStores } from "../cluster/write-check.ts";
import { AppError } from "../lib/errors.ts";
import type { PostgresAddress } from "../lib/store-urls.ts";
import { acquireStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { openPersons, personStore } from "../persons/open.ts";
import {
  compareRows,
  copyFromRows,
  copyToRows,
  RowsMismatchError,
  readRowsVersion,
  rowTables,
  truncateRows,
} from "../persons/postgres/copy.ts";
import { assertNoLocalData } from "./local-data.ts";

const connections = 2;
/** Deleted replicated rows per transaction. */
const deletedAtOnce = 20_000;
const deleteMs = 60_000;

/** A node that was suspended or starting has committed changes of persons that were not copied. */
class PersonsChangedError extends AppError {
  readonly code = "persons_changed";
  override readonly hint = "Nothing was switched. Stop all nodes and run the command again.";
  constructor() {
    super("Persons changed during the conversion.");
  }
}

export interface ConversionOptions {
  /** Of a stopped node, or an empty folder. */
  dataDir: string;
  to: PersonsLayout;
  onStep: (step: string) => void;
  /** Receives the number of rows that were copied by this command. */
  onRows: (count: number) => void;
}

/**
 * @returns false if the cluster has the layout already
 * @throws {ClusterMigrationError} a node is running, or a migration has not finished
 * @throws {ConversionPendingError} of a conversion to the other layout
 * @throws {PartitionsNeedRowsError} @throws {PersonsChangedError}
 * @throws {DirectoryInUseError} @throws {PostgresUnreachableError} the command can be retried
 */
export async function convertPersons(address: PostgresAddress, options: ConversionOptions): Promise<boolean> {
  const { dataDir, to } = options;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  assertNoLocalData(dataDir);
  const lock = await acquireStoresLock(paths(dataDir), dataDir);
  const postgres = new Postgres(address, { connections, name: "conversion" });
  try {
    await migratePostgres(postgres);
    const state = await postgres.run((sql) => readNodeState(sql));
    assertNotMigrating(state);
    const { conversion: pending, persons: layout } = state;
    await postgres.run((sql) => assertNodesStopped(sql));
    if (pending !== undefined && pending.to !== to) throw new ConversionPendingError(pending.to);
    const { loading } = await readLayout(postgres);
    if (loading === "partitions" && to !== "rows") throw new PartitionsNeedRowsError();
    if (layout === to && pending === undefined) {
      // A conversion was interrupted here and finished elsewhere.
      deleteSqlite(paths(dataDir).peopleConversion);
      return false;
    }
    if (layout !== to) await copyPersons(postgres, pending, options);
    options.onStep("deleting the previous copy");
    if (to === "rows") await deleteReplicated(postgres);
    else await truncateRows(postgres);
    await postgres.run((sql) => recordConversion(sql, undefined));
    keepReplica(dataDir, to);
    return true;
  } finally {
    await postgres.close();
    lock.release();
  }
}

/** Copies, compares and switches. */
async function copyPersons(
  postgres: Postgres,
  pending: Conversion | undefined,
  options: ConversionOptions,
): Promise<void> {
  const { to } = options;
  const conversion = await startConversion(postgres, pending, to);
  let source: string;
  try {
    source =
      to === "rows"
        ? await copyReplicaToRows(postgres, conversion, options)
        : await copyRowsToReplicas(postgres, conversion, options);
  } catch (error) {
    const different = { ...conversion, source: "" };
    if (error instanceof RowsMismatchError) await postgres.run((sql) => recordConversion(sql, different));
    throw error;
  }
  await postgres.transaction(async (t) => {
    await t`UPDATE flagkeep.layout SET persons = ${to}`;
    // Replicas that have not seen the conversion are copied again. Later commits wait for this transaction.
    await t`UPDATE flagkeep.store SET told_from = revision WHERE name = ${personStore.name}`;
    if ((await readSource(t, to)) !== source) throw new PersonsChangedError();
  });
}

/** Records the conversion and ends the lease: from then on no node starts, and none changes a store. */
async function startConversion(
  postgres: Postgres,
  pending: Conversion | undefined,
  to: PersonsLayout,
): Promise<Conversion> {
  const started = pending ?? { id: crypto.randomUUID(), to, source: "", position: null };
  await postgres.transaction(async (t) => {
    await lockStores(t);
    await assertNodesStopped(t);
    await recordConversion(t, started);
    await fenceLease(t);
  });
  // A node that started before it was recorded.
  await postgres
    .run((sql) => assertNodesStopped(sql))
    .catch(async (error) => {
      if (pending === undefined) await postgres.run((sql) => recordConversion(sql, undefined));
      throw error;
    });
  const source = await postgres.run((sql) => readSource(sql, to));
  if (source === started.source) return started;
  const conversion = { id: crypto.randomUUID(), to, source, position: null };
  await postgres.run((sql) => recordConversion(sql, conversion));
  return conversion;
}

/** Changes whenever what is copied does. */
const readSource = async (sql: Sql | Transaction, to: PersonsLayout): Promise<string> =>
  to === "rows" ? await readRevision(sql) : await readRowsVersion(sql);

/** @returns the revision that was copied */
async function copyReplicaToRows(
  postgres: Postgres,
  conversion: Conversion,
  { dataDir, onStep, onRows }: ConversionOptions,
): Promise<string> {
  const { people: replica, peopleConversion } = paths(dataDir);
  const path = isReplica(replica) ? replica : peopleConversion;
  onStep("updating the replica");
  await StoreReplica.prepare(path, personStore, postgres);
  const people = openPersons(path);
  try {
    onStep("copying rows");
    const record = (t: Transaction, position: Conversion["position"]) =>
      recordConversion(t, { ...conversion, position });
    await copyToRows(people, postgres, { position: conversion.position, record }, onRows);
    onStep("comparing");
    await compareRows(people, postgres);
    return String(StoreReplica.attach(people.$client, personStore, postgres).revision);
  } finally {
    people.$client.close();
  }
}

/** @returns the version of the rows that was copied */
async function copyRowsToReplicas(
  postgres: Postgres,
  { id, source }: Conversion,
  { dataDir, onStep, onRows }: ConversionOptions,
): Promise<string> {
  const { peopleConversion: path } = paths(dataDir);
  if (!isStoreSent(path, id)) {
    // Sent rows that were deleted since would stay.
    await deleteReplicated(postgres);
    await compactAll(postgres);
    deleteSqlite(path);
    onStep("reading rows");
    await StoreReplica.prepare(path, personStore, postgres);
  }
  const people = openPersons(path);
  try {
    if (!isStoreSent(path, id)) await copyFromRows(postgres, people);
    onStep("copying rows");
    let last: number | undefined;
    await copyStore(people.$client, personStore, postgres, {
      id,
      onProgress: (left) => {
        if (last !== undefined) onRows(last - left);
        last = left;
      },
    });
    onStep("comparing");
    await compareRows(people, postgres);
    return source;
  } finally {
    people.$client.close();
  }
}

/** Deletes the replicated rows of persons. */
async function deleteReplicated(postgres: Postgres): Promise<void> {
  await compactAll(postgres);
  for (const table of rowTables) {
    let deleted: number;
    do {
      const rows = await postgres.run(
        (
          sql,
        ) => sql`DELETE FROM flagkeep.row WHERE store = ${personStore.name} AND tbl = ${table} AND key_hash IN
          (SELECT key_hash FROM flagkeep.row WHERE store = ${personStore.name} AND tbl = ${table} LIMIT ${deletedAtOnce})`,
        deleteMs,
      );
      deleted = rows.count;
    } while (deleted > 0);
  }
}

/** Commits are no longer needed for the event store, which gets all persons again. */
async function compactAll(postgres: Postgres): Promise<void> {
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.store SET mirrored = revision WHERE name = ${personStore.name}`,
  );
  // A suspended node that is compacting would write deleted rows again.
  await compactCommits(postgres, personStore.name, true);
}

async function readRevision(sql: Sql | Transaction): Promise<string> {
  const [row] = await sql`SELECT revision FROM flagkeep.store WHERE name = ${personStore.name}`;
  return String(row!.revision);
}

/** Lets the node of the data directory start without copying all persons; removes the working file. */
function keepReplica(dataDir: string, to: PersonsLayout): void {
  const { people, peopleConversion } = paths(dataDir);
  if (to === "replica" && isReplica(people) && isReplica(peopleConversion)) {
    deleteSqlite(people);
    renameSync(peopleConversion, people);
  }
  deleteSqlite(peopleConversion);
}
