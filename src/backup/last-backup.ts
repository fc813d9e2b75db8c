/** What became of the last backup: a file in the data directory, which `status` shows. */

import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { replaceFile } from "../journal/disk.ts";
import { Count, exactly, orNull } from "../lib/schema.ts";
import { paths } from "../paths.ts";
import { manifestMembers } from "./manifest.ts";

/** As `status --json` prints it. */
export const LastBackup = exactly({
  /** Of the last good one; null when there was none yet. */
  file: orNull(Type.String()),
  destination: orNull(Type.String()),
  created_at: orNull(Type.String()),
  verified_at: orNull(Type.String()),
  bytes: orNull(Count),
  positions: manifestMembers.positions,
  /** Of an attempt after that which failed. */
  failed_at: orNull(Type.String()),
  error: orNull(Type.String()),
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
/** The last one by data directory that could not be written down there: this process tells of it as long as it runs. */
const unwritten = new Map<string, Failure>();

/** Null when no backup was tried yet. */
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

/** Remembers a backup that is good. */
export async function noteBackup(
  dataDir: string,
  backup: Omit<LastBackup, "failed_at" | "error">,
): Promise<void> {
  await write(dataDir, { ...backup, failed_at: null, error: null });
}

/** Remembers that an attempt failed, where nothing can be written in this process; what is known of the last good one stays. */
export async function noteFailure(dataDir: string, at: Date, message: string): Promise<void> {
  const failure: Failure = { failed_at: at.toISOString(), error: message };
  await write(dataDir, { ...(readWritten(dataDir) ?? none), ...failure }).catch(() =>
    unwritten.set(dataDir, failure),
  );
}

async function write(dataDir: string, value: LastBackup): Promise<void> {
  await replaceFile(paths(dataDir).lastBackup, `${JSON.stringify(value)}\n`);
}
