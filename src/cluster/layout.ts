/** Where a cluster stores persons, in a replica on every node or as rows in PostgreSQL alone, and which engines load events. */

import type { Sql } from "postgres";
import { AppError, OperatorActionError } from "../lib/errors.ts";
import type { Postgres, Transaction } from "./connection.ts";

export type PersonsLayout = "replica" | "rows";

/** `single`: the engine of one node loads events. `partitions`: all engines, each some projects. */
export type LoadingLayout = "single" | "partitions";

export interface Layout {
  persons: PersonsLayout;
  loading: LoadingLayout;
}

/** A cluster loads events in another way than the setting says. */
class LoadingLayoutError extends OperatorActionError {
  readonly code = "loading_layout";
  override readonly hint =
    "Remove --cluster-loading: it is for new clusters. `migrate-from-cluster` and `migrate-to-cluster` change an existing one.";
  constructor(found: LoadingLayout, wanted: LoadingLayout) {
    super(`The cluster's loading is "${found}", not "${wanted}".`);
  }
}

/** Several engines can only change persons that are rows. */
export class PartitionsNeedRowsError extends OperatorActionError {
  readonly code = "partitions_need_rows";
  override readonly hint =
    "Use --cluster-persons rows. `migrate-from-cluster` and `migrate-to-cluster` change the loading of an existing cluster.";
  constructor() {
    super("Loading by partitions requires persons as rows.");
  }
}

/** A cluster stores persons in another way than the setting says. */
class PersonsLayoutError extends OperatorActionError {
  readonly code = "persons_layout";
  override readonly hint: string;
  constructor(found: PersonsLayout, wanted: PersonsLayout) {
    super(`The cluster stores persons as "${found}", not as "${wanted}".`);
    this.hint = `Remove --cluster-persons, or stop all nodes and run \`flagkeep cluster convert-persons --to ${wanted}\`.`;
  }
}

/** Persons were converted to the other layout while a process was starting or suspended. */
export class PersonsConvertedError extends OperatorActionError {
  readonly code = "persons_converted";
  override readonly hint = "Start the node again.";
  constructor(found: PersonsLayout) {
    super(`The cluster stores persons as "${found}" since a conversion that this node has missed.`);
  }
}

/** A conversion of persons between both layouts has not finished. */
export class ConversionPendingError extends OperatorActionError {
  readonly code = "persons_conversion";
  override readonly hint: string;
  constructor(to: PersonsLayout) {
    super(`The conversion of persons to "${to}" has not finished.`);
    this.hint = `Run \`flagkeep cluster convert-persons --to ${to}\` again; it continues where it was.`;
  }
}

/** PostgreSQL contains other data or an unfinished migration, or is not in a state to migrate from. */
export class ClusterMigrationError extends AppError {
  readonly code = "take_over_refused";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

/** A conversion of persons, recorded until it has finished. */
export interface Conversion {
  id: string;
  to: PersonsLayout;
  /** The state of what is copied: if it has changed since, the copy starts again. */
  source: string;
  /** Up to which row the replica is copied; null: not begun, or a conversion to replicas. */
  position: { table: string; key: string[] } | null;
}

/** Records in `flagkeep.secret`: of a conversion of persons, */
const conversionName = "persons conversion";
/** of an unfinished migration of a data directory, */
export const migrationName = "take-over";
/** and of a data directory that the data was migrated back to. */
export const returnedName = "brought back";
/** With one of them, no node starts or writes to the shared stores, and no engine loads. */
export const stopRecords: readonly string[] = [conversionName, migrationName, returnedName];

/** @param conversion undefined: it has finished */
export async function recordConversion(
  t: Transaction | Sql,
  conversion: Conversion | undefined,
): Promise<void> {
  if (conversion === undefined) await t`DELETE FROM flagkeep.secret WHERE name = ${conversionName}`;
  else
    await t`INSERT INTO flagkeep.secret VALUES (${conversionName}, ${JSON.stringify(conversion)})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
}

export interface NodeState {
  persons: PersonsLayout;
  conversion: Conversion | undefined;
  /** Of an unfinished migration of a data directory. */
  migrationId: string | undefined;
  /** The data directory that the data was migrated back to, and when. */
  returnedTo: string | undefined;
}

/** What decides whether nodes may start and write, in one statement. */
export async function readNodeState(sql: Sql | Transaction): Promise<NodeState> {
  const [row] = await sql`SELECT persons, (
      SELECT json_object_agg(name, value) FROM flagkeep.secret WHERE name = ANY(${stopRecords}::text[])
    ) AS records FROM flagkeep.layout`;
  const records: Partial<Record<string, string>> = row!.records ?? {};
  const conversion = records[conversionName];
  return {
    persons: row!.persons,
    conversion: conversion === undefined ? undefined : JSON.parse(conversion),
    migrationId: records[migrationName],
    returnedTo: records[returnedName],
  };
}

/** @throws {PostgresUnreachableError} */
export async function readLayout(postgres: Postgres): Promise<Layout> {
  const [row] = await postgres.run((sql) => sql<Layout[]>`SELECT persons, loading FROM flagkeep.layout`);
  return row!;
}

/**
 * Chooses the layout of a new cluster, which has no store of persons yet.
 * @param wanted undefined or null: any @throws {PersonsLayoutError} @throws {LoadingLayoutError}
 * @throws {PartitionsNeedRowsError} @throws {PostgresUnreachableError}
 */
export async function chooseLayout(
  postgres: Postgres,
  wanted: { [Name in keyof Layout]?: Layout[Name] | null },
): Promise<Layout> {
  const { persons, loading } = wanted;
  const found = await postgres.transaction(async (t) => {
    const [row] = await t<Layout[]>`SELECT persons, loading FROM flagkeep.layout FOR UPDATE`;
    const [store] = await t`SELECT 1 FROM flagkeep.store WHERE name = 'people'`;
    if (store !== undefined) return row!;
    const chosen: Layout = { persons: persons ?? row!.persons, loading: loading ?? row!.loading };
    if (chosen.loading === "partitions" && chosen.persons !== "rows") throw new PartitionsNeedRowsError();
    await t`UPDATE flagkeep.layout SET persons = ${chosen.persons}, loading = ${chosen.loading}`;
    return chosen;
  });
  if (found.persons !== (persons ?? found.persons)) throw new PersonsLayoutError(found.persons, persons!);
  if (found.loading !== (loading ?? found.loading)) throw new LoadingLayoutError(found.loading, loading!);
  return found;
}
