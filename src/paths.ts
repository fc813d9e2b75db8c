/** Where things are in the data directory. */

import { join } from "node:path";

/**
 * The files and folders of a data directory, each as a path that begins with `dataDir`; nothing is looked at or made.
 *
 * `docs/reference/data-directory.md` lists all of them, which a test checks.
 */
export function paths(dataDir: string) {
  return {
    /** Organizations, projects, users, keys, flags, activity: SQLite. */
    metadata: join(dataDir, "flagkeep.sqlite"),
    /** Persons, groups, warnings, usage: SQLite, written by the engine alone. */
    people: join(dataDir, "people.sqlite"),
    /** Events: DuckDB. */
    events: join(dataDir, "events.duckdb"),
    /** What was acknowledged and is not in the stores' files yet. */
    journal: join(dataDir, "journal"),
    /** Applied segments, compressed, until a backup covers them. */
    archive: join(dataDir, "journal", "archive"),
    /** What could not be read back, kept for a person to look at. */
    quarantine: join(dataDir, "journal", "quarantine"),
    /** DuckDB's native library, copied out of the executable. */
    native: join(dataDir, "native"),
    /** Working files, removed at every start. */
    work: join(dataDir, "work"),
    /** Working files of a backup that is being created; they outlive a restart of the engine. */
    backupWork: join(dataDir, "backup-work"),
    /** Where backups go when nothing else is said. */
    backups: join(dataDir, "backups"),
    /** The newest backup that could not be brought to its destination. */
    unsentBackups: join(dataDir, "backups-unsent"),
    /** How far interrupted imports are, and files that were sent to be imported. */
    importState: join(dataDir, "import-state"),
    /** What became of the last backup, as JSON. */
    lastBackup: join(dataDir, "last-backup.json"),
    /** What the last scrub found, as JSON. */
    lastScrub: join(dataDir, "last-scrub.json"),
    /** When events were last looked at for those that are too old, as JSON. */
    lastRetention: join(dataDir, "last-retention.json"),
    /** When backups were restored, as JSON. */
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
