/** The schema `flagkeep` in PostgreSQL, brought up to date by whichever front comes first. */

import { DataFromNewerVersion } from "../lib/sqlite/migrate.ts";
import { type Postgres, PostgresRefuses, PostgresUnreachable } from "./connection.ts";
import initialSql from "./migrations/001-initial.sql" with { type: "text" };

const migrations = [initialSql];
/** Taken by whoever migrates, so that the others wait. */
const migrationLock = 0x66_6b_70_67;
const oldestServer = 140_000;
/** The second one takes texts as they are. */
const encodings = ["UTF8", "SQL_ASCII"];

/**
 * Brings the tables up to date; many fronts may do so at once.
 *
 * @throws {PostgresUnreachable} @throws {PostgresRefuses} @throws {DataFromNewerVersion}
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
        throw new DataFromNewerVersion("schema in PostgreSQL", found!.version, migrations.length);
      // Names and properties are in any language.
      if (found!.version === 0 && !encodings.includes(server!.encoding))
        throw new Error(`the database is in ${server!.encoding}, not in UTF8`);
      for (let version = found!.version + 1; version <= migrations.length; version++) {
        await t.unsafe(migrations[version - 1]!);
        await t`INSERT INTO flagkeep.schema_migration VALUES (${version}, clock_timestamp())`;
      }
    }, 60_000);
  } catch (error) {
    if (error instanceof DataFromNewerVersion) throw error;
    const isAway = error instanceof PostgresUnreachable;
    if (isAway && !error.isShutOut) throw error;
    throw new PostgresRefuses(postgres.address, isAway ? error.reason : error);
  }
}
