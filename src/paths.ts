/** Paths in the data directory. */

import { join } from "node:path";

/**
 * The files and folders of a data directory, as paths that start with `dataDir`. Accesses no file.
 *
 * `docs/reference/data-directory.md` lists all of them, which a test checks.
 */
export function paths(dataDir: string) {
  return {
    /** Organizations, projects, users, keys, flags, activity: SQLite. */
    metadata: join(dataDir, "flagkeep.sqlite"),
    /** Persons, groups, warnings, usage: SQLite, written by the engine alone. */
    people: join(dataDir, "people.sqlite"),
    /** Copy of the persons of a cluster while they are converted. */
    peopleConversion: join(dataDir, "people.sqlite.converting"),
    /** Events: DuckDB. */
    events: join(dataDir, "events.duckdb"),
    /** Acknowledged entries that are not in the stores yet. */
    journal: join(dataDir, "journal"),
    /** Applied segments, compressed, until a backup covers them. */
    archive: join(dataDir, "journal", "archive"),
    /** Unreadable data, preserved for inspection. */
    quarantine: join(dataDir, "journal", "quarantine"),
    /** DuckDB's native library, copied out of the executable. */
    native: join(dataDir, "native"),
    /** Working files, removed at every start. */
    work: join(dataDir, "work"),
    /** Files of a backup that is being created; they survive a restart of the engine. */
    backupWork: join(dataDir, "backup-work"),
    /** Default backup destination. */
    backups: join(dataDir, "backups"),
    /** The newest backup that could not be uploaded. */
    unsentBackups: join(dataDir, "backups-unsent"),
    /** Progress of interrupted imports, and uploaded files. */
    importState: join(dataDir, "import-state"),
    /** Result of the last backup, as JSON. */
    lastBackup: join(dataDir, "last-backup.json"),
    /** Result of the last scrub, as JSON. */
    lastScrub: join(dataDir, "last-scrub.json"),
    /** Time of the last deletion of expired events, as JSON. */
    lastRetention: join(dataDir, "last-retention.json"),
    /** Restored backups, as JSON. */
    restores: join(dataDir, "restores.json"),
    /** An empty folder: the engine that uses the stores has it locked. */
    engine: join(dataDir, "engine"),
    /** Held while a process uses the directory. */
    lock: join(dataDir, "lock"),
    /** Certificates for https, and the key of the account with their authority; for the owner alone. */
    certificates: join(dataDir, "certificates"),
    /** The key that encrypts payloads of flags, mode 0600. */
    payloadKey: join(dataDir, "payload.key"),
  };
}
