/**
 * Records restores: a restore reuses sequence numbers, and backups created between the restored one and the restore
 * belong to a history that did not continue.
 */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { paths } from "../paths.ts";

interface Restore {
  /** When the restored backup was created. */
  backup_created_at: string;
  restored_at: string;
}

/** @param folder the restored one; @param previous the data directory that it replaces. */
export function recordRestore(folder: string, previous: string, restore: Restore): void {
  const path = paths(folder).restores;
  writeFileSync(`${path}.tmp`, JSON.stringify([...readRestores(previous), restore]), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** Whether a backup created at this time belongs to the history of the current data. */
export function isOfThisHistory(dataDir: string, createdAt: string): boolean {
  const at = Date.parse(createdAt);
  return !readRestores(dataDir).some(
    ({ backup_created_at, restored_at }) =>
      at > Date.parse(backup_created_at) && at < Date.parse(restored_at),
  );
}

function readRestores(dataDir: string): Restore[] {
  try {
    return JSON.parse(readFileSync(paths(dataDir).restores, "utf8")) as Restore[];
  } catch {
    return [];
  }
}
