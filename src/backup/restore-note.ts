/**
 * Remembers restores: after one, numbers of journal entries are given out a second time, and backups that were taken
 * between the restored one and the restore belong to a history that did not go on.
 */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { paths } from "../paths.ts";

interface Restore {
  /** When the restored backup was taken. */
  backup_created_at: string;
  restored_at: string;
}

/** @param folder the restored one; @param previous the data directory that it replaces. */
export function noteRestore(folder: string, previous: string, restore: Restore): void {
  const path = paths(folder).restores;
  writeFileSync(`${path}.tmp`, JSON.stringify([...readRestores(previous), restore]), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** Whether a backup taken at this moment belongs to the history of what is in the data directory now. */
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
