/** The schema `flagkeep` in PostgreSQL, migrated by the first node that starts with a newer version. */

import { NewerDataVersionError } from "../lib/sqlite.ts";
import { type Postgres, PostgresRejectedError, PostgresUnreachableError } from "./connection.ts";
import initialSql from "./migrations/001-initial.sql" with { type: "text" };
import changeTimeSql from "./migrations/002-change-time.sql" with { type: "text" };
import pauseSql from "./migrations/003-pause.sql" with { type: "text" };
import leaseBeatSql from "./migrations/004-lease-beat.sql" with { type: "text" };
import blockSequenceSql from "./migrations/005-block-sequence.sql" with { type: "text" };
import personsSql from "./migrations/006-persons.sql" with { type: "text" };
import partitionsSql from "./migrations/007-partitions.sql" with { type: "text" };

const migrations = [
  initialSql,
  changeTimeSql,
  pauseSql,
  leaseBeatSql,
  blockSequenceSql,
  personsSql,
  partitionsSql,
];
/** Of this version. */
export const schemaVersion = migrations.length;
/** Advisory lock: other nodes wait for the migration. */
const migrationLock = 0x66_6b_70_67;
const oldestServer = 140_000;
/** SQL_ASCII stores text without conversion. */
const encodings = ["UTF8", "SQL_ASCII"];

/**
 * Migrates the tables; several nodes may call it concurrently.
 * @throws {PostgresUnreachableError} @throws {PostgresRejectedError} @throws {NewerDataVersionError}
 */
export async function migratePostgres(postgres: Postgres): Promise<void> {
  try {
    await postgres.transaction(async (t) => {
      const [server] = await t`SELECT current_setting('server_version_num')::int AS version,
        current_setting('server_encoding') AS encoding`;
      if (server!.version < oldestServer) throw new Error("its version is older than 14");
      await t`SELECT pg_advisory_xact_lock(${migrationLock})`;
      await t`CREATE SCHEMA IF NOT EXISTS flagkeep`;
      await t`CREATE TABLE IF NOT EXISTS flagkeep.schema_migration (version integer PRIMARY KEY, at timestamptz NOT NULL)`;
      const [found] = await t`SELECT coalesce(max(version), 0) AS version FROM flagkeep.schema_migration`;
      if (found!.version > migrations.length)
        throw new NewerDataVersionError("schema in PostgreSQL", found!.version, migrations.length);
      // Names and properties can be in any language.
      if (found!.version === 0 && !encodings.includes(server!.encoding))
        throw new Error(`the database is in ${server!.encoding}, not in UTF8`);
      for (let version = found!.version + 1; version <= migrations.length; version++) {
        await t.unsafe(migrations[version - 1]!);
        await t`INSERT INTO flagkeep.schema_migration VALUES (${version}, clock_timestamp())`;
      }
    }, 60_000);
  } catch (error) {
    if (error instanceof NewerDataVersionError) throw error;
    const isUnavailable = error instanceof PostgresUnreachableError;
    if (isUnavailable && !error.isShutOut) throw error;
    throw new PostgresRejectedError(postgres.address, isUnavailable ? error.reason : error);
  }
}
