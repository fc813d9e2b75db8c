/** Opens the persons store for the server, even if its file is missing or corrupt. */

import { isReplica } from "../cluster/replica-marker.ts";
import { isCorruptSqlite } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import type { SqliteCorruption } from "../operate/sqlite-corruption.ts";
import { paths } from "../paths.ts";
import { arePersonsMissing } from "../persons/missing.ts";
import { openPersons, type PersonsDb } from "../persons/open.ts";
import { unreadablePersons } from "../persons/unreadable.ts";

/**
 * Opens the store for reading. A file that is missing from a used data directory, or cannot be opened, stays as it is:
 * the fallback fails every statement, and flags without property conditions are evaluated.
 *
 * @throws {NewerDataVersionError}
 */
export function openServedPersons(
  dataDir: string,
  {
    cacheBytes,
    corruption,
    log,
    mayMigrate = true,
  }: {
    cacheBytes: number | undefined;
    corruption: SqliteCorruption;
    log: Pick<Log, "error">;
    /** False where another process has migrated the schema. */
    mayMigrate?: boolean;
  },
): PersonsDb {
  const dataPaths = paths(dataDir);
  // A cluster node has a replica, which is filled from PostgreSQL.
  if (!isReplica(dataPaths.metadata) && arePersonsMissing(dataDir)) {
    log.error({}, corruption.recordMissing());
    return unreadablePersons();
  }
  try {
    // Opened for writing first, so that the schema is current before anything reads.
    if (mayMigrate) openPersons(dataPaths.people).$client.close();
    return openPersons(dataPaths.people, { readonly: true, cacheBytes });
  } catch (error) {
    if (!isCorruptSqlite(error)) throw error;
    log.error({}, corruption.recordUnopenable(error));
    return unreadablePersons();
  }
}
