/** What tells a copy of rows that are in PostgreSQL from a store of its own. */

import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { patientClient } from "../lib/sqlite/open.ts";

/** A file is a copy from then on, as of a commit. */
export function markAsCopy(client: Database, revision = 0, commitId: string | null = null): void {
  client.run(
    "CREATE TABLE IF NOT EXISTS copy_state (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, commit_id TEXT)",
  );
  client.run("INSERT OR IGNORE INTO copy_state VALUES (1, ?, ?)", [revision, commitId]);
}

/** Whether an SQLite file is a copy of rows that are in PostgreSQL; no file is none. */
export function isCopy(path: string): boolean {
  if (!existsSync(path)) return false;
  // Not for reading only: such a connection leaves its files behind.
  const client = patientClient(path, { readwrite: true });
  try {
    return client.query("SELECT 1 FROM sqlite_schema WHERE name = 'copy_state'").get() !== null;
  } catch {
    // A damaged one: whoever opens it says so.
    return false;
  } finally {
    client.close();
  }
}
