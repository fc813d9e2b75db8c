/** Whether a data directory holds its own data, or replicas of data in a cluster. */

import { existsSync } from "node:fs";
import { isReplica } from "../cluster/replica-marker.ts";
import type { Config } from "../config/settings.ts";
import { AppError } from "../lib/errors.ts";
import { InvalidSettingError } from "../lib/setting-types.ts";
import { paths } from "../paths.ts";

/** Name of the payload encryption key in PostgreSQL. */
export const payloadKeyName = "payload key";

/** The data directory has data that is not in PostgreSQL. */
class LocalDataError extends AppError {
  readonly code = "own_data";
  override readonly hint =
    "Migrate it with `flagkeep migrate-to-cluster --postgres-url … --events-url …`, or use an empty --data-dir.";
}

/** The data directory holds only replicas. */
class ReplicaOnlyError extends AppError {
  readonly code = "only_copies";
  override readonly hint =
    "Set --postgres-url and --events-url, or migrate it back with `flagkeep migrate-from-cluster`.";
  constructor(dataDir: string) {
    super(`The data directory ${dataDir} belongs to a cluster node; its data is in PostgreSQL.`);
  }
}

/**
 * @throws {InvalidSettingError} PostgreSQL is configured without ClickHouse: nodes would share flags, but not events.
 */
export function assertEventsUrl(config: Config): void {
  if (config["postgres-url"] !== null && config["events-url"] === null)
    throw new InvalidSettingError(
      "--postgres-url requires --events-url: the nodes of a cluster share their events.",
    );
}

/** @throws {ReplicaOnlyError} the data directory cannot be used alone. */
export function assertLocalData(dataDir: string): void {
  if (isReplica(paths(dataDir).metadata)) throw new ReplicaOnlyError(dataDir);
}

/** The data directory holds only replicas, whose originals are backed up elsewhere. */
class RemoteBackupsError extends AppError {
  readonly code = "backed_up_elsewhere";
  override readonly hint = "Back up PostgreSQL and ClickHouse as described in docs/operations/cluster.md.";
  constructor(dataDir: string) {
    super(`The data directory ${dataDir} belongs to a cluster node and contains only copies.`);
  }
}

/** @throws {RemoteBackupsError} */
export function assertLocalBackups(dataDir: string): void {
  if (isReplica(paths(dataDir).metadata)) throw new RemoteBackupsError(dataDir);
}

/** @throws {LocalDataError} data in the data directory is not in PostgreSQL. */
export function assertNoLocalData(dataDir: string): void {
  const { metadata } = paths(dataDir);
  if (existsSync(metadata) && !isReplica(metadata))
    throw new LocalDataError(`The data directory ${dataDir} is not empty: it has local data.`);
}
