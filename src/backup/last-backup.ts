/** Result of the last backup: a file in the data directory, which `status` shows. */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { replaceFile } from "../journal/disk.ts";
import { NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import { paths } from "../paths.ts";
import { manifestMembers } from "./manifest.ts";

/** As `status --json` prints it. */
export const LastBackup = strictObject({
  /** File of the last successful backup; null before the first. */
  file: nullable(Type.String()),
  destination: nullable(Type.String()),
  created_at: nullable(Type.String()),
  verified_at: nullable(Type.String()),
  bytes: nullable(NonNegativeInt),
  positions: manifestMembers.positions,
  /** Time of a later attempt that failed. */
  failed_at: nullable(Type.String()),
  error: nullable(Type.String()),
});
export type LastBackup = Static<typeof LastBackup>;

const none: LastBackup = {
  file: null,
  destination: null,
  created_at: null,
  verified_at: null,
  bytes: null,
  positions: [],
  failed_at: null,
  error: null,
};

type Failure = { failed_at: string; error: string };
/** Per data directory, the last failure that could not be recorded in the file; reported while this process runs. */
const unwritten = new Map<string, Failure>();

/** Null before the first attempt. */
export function readLastBackup(dataDir: string): LastBackup | null {
  const written = readWritten(dataDir);
  const failure = unwritten.get(dataDir);
  if (failure === undefined) return written;
  const { verified_at, failed_at } = written ?? none;
  const isOld = failure.failed_at < (verified_at ?? "") || failure.failed_at < (failed_at ?? "");
  return isOld ? written : { ...(written ?? none), ...failure };
}

function readWritten(dataDir: string): LastBackup | null {
  try {
    return { ...none, ...(JSON.parse(readFileSync(paths(dataDir).lastBackup, "utf8")) as LastBackup) };
  } catch {
    return null;
  }
}

/** Records a successful backup. */
export async function recordBackup(
  dataDir: string,
  backup: Omit<LastBackup, "failed_at" | "error">,
): Promise<void> {
  await write(dataDir, { ...backup, failed_at: null, error: null });
}

/** Records a failed attempt, in this process if the file cannot be written; the last success stays recorded. */
export async function recordFailure(dataDir: string, at: Date, message: string): Promise<void> {
  const failure: Failure = { failed_at: at.toISOString(), error: message };
  await write(dataDir, { ...(readWritten(dataDir) ?? none), ...failure }).catch(() =>
    unwritten.set(dataDir, failure),
  );
}

async function write(dataDir: string, value: LastBackup): Promise<void> {
  await replaceFile(paths(dataDir).lastBackup, `${JSON.stringify(value)}\n`);
}

/*
 * Records restores: a restore reuses sequence numbers, and backups created between the restored one and the restore
 * belong to a history that did not continue.
 */

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
