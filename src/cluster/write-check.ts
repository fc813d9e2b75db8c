/** What a node requires to start and to change the shared stores. */

import type { Sql } from "postgres";
import type { Transaction } from "./connection.ts";
import {
  ClusterMigrationError,
  ConversionPendingError,
  type NodeState,
  PersonsConvertedError,
  type PersonsLayout,
  readNodeState,
  returnedName,
} from "./layout.ts";

/** Waits for changes of the stores, and keeps others from starting until the transaction ends. */
export async function lockStores(t: Transaction): Promise<void> {
  await t`SELECT 1 FROM flagkeep.store ORDER BY name FOR UPDATE`;
}

/**
 * Nodes check it at their start, at each heartbeat and, because a suspended process continues after a conversion or
 * migration, in the transaction of each change. Exempt are upgrades of the schema, and what preserves the contents:
 * compaction, positions of readers and the deletion of loaded blocks. Statements of the journal and of leases check
 * `stopRecords` themselves.
 * @param persons the layout that the process was started with; default: any
 * @throws {ConversionPendingError} @throws {PersonsConvertedError}
 * @throws {ClusterMigrationError} the data was migrated back to a data directory, or a migration is in progress
 */
export async function assertNodeMayWrite(sql: Sql | Transaction, persons?: PersonsLayout): Promise<void> {
  const state = await readNodeState(sql);
  assertNothingPending(state);
  if (persons !== undefined && state.persons !== persons) throw new PersonsConvertedError(state.persons);
  if (state.returnedTo === undefined) return;
  throw new ClusterMigrationError(
    `The data in PostgreSQL was migrated to the data directory ${state.returnedTo}. Both would load into the same ClickHouse.`,
    `Use that directory. If it was never used: DELETE FROM flagkeep.secret WHERE name = '${returnedName}'.`,
  );
}

/** @throws {ConversionPendingError} @throws {ClusterMigrationError} a migration is in progress or was interrupted */
export function assertNothingPending(state: NodeState): void {
  const { conversion } = state;
  if (conversion !== undefined) throw new ConversionPendingError(conversion.to);
  assertNotMigrating(state);
}

/** @throws {ClusterMigrationError} a migration is in progress or was interrupted */
export function assertNotMigrating({ migrationId }: NodeState): void {
  if (migrationId !== undefined)
    throw new ClusterMigrationError(
      "The migration of a data directory to PostgreSQL has not finished.",
      "Wait for it, or run `flagkeep migrate-to-cluster` with that data directory again; it continues where it was.",
    );
}
