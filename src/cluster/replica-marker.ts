/** Distinguishes a replica of rows in PostgreSQL from a standalone store. */

import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { patientClient } from "../lib/sqlite.ts";

/** Marks a file as a replica, at a revision. */
export function markAsReplica(client: Database, revision = 0, commitId: string | null = null): void {
  client.run(
    "CREATE TABLE IF NOT EXISTS copy_state (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, commit_id TEXT)",
  );
  client.run("INSERT OR IGNORE INTO copy_state VALUES (1, ?, ?)", [revision, commitId]);
  client.run(
    "CREATE TABLE IF NOT EXISTS copy_position (one INTEGER PRIMARY KEY CHECK (one = 1), at TEXT NOT NULL)",
  );
}

/** Whether an SQLite file is a replica of rows in PostgreSQL; false if it does not exist. */
export function isReplica(path: string): boolean {
  if (!existsSync(path)) return false;
  // Writable: a read-only connection leaves its -wal and -shm files.
  const client = patientClient(path, { readwrite: true });
  try {
    return client.query("SELECT 1 FROM sqlite_schema WHERE name = 'copy_state'").get() !== null;
  } catch {
    // Corruption is reported when the store is opened.
    return false;
  } finally {
    client.close();
  }
}
