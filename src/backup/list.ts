/** What is in a destination, read from the backups' beginnings and ends, and the removal of old ones. */

import { type Static, Type } from "@sinclair/typebox";
import { Count, exactly, orNull } from "../lib/schema.ts";
import type { Destination } from "./destination.ts";
import { BackupNotFound } from "./errors.ts";
import { type Manifest, manifestMembers, totalEvents } from "./manifest.ts";
import { readManifest } from "./read-file.ts";
import { backupsToRemove, type Rules } from "./retention.ts";
import type { BackupSource } from "./source.ts";
import { endBytes, parseEndFrame } from "./write-file.ts";

/** As `backup list --json` prints it. */
export const ListedBackup = exactly({
  file: Type.String(),
  created_at: Type.String(),
  bytes: Count,
  /** It was verified before it got its name, and has its beginning, its end and its length. */
  verified: Type.Boolean(),
  /** Why it is not verified. */
  problem: orNull(Type.String()),
  version: orNull(Type.String()),
  events: orNull(Count),
  projects: manifestMembers.projects,
});
export type ListedBackup = Static<typeof ListedBackup>;

/** Where a manifest ends in nearly every backup. */
const beginningBytes = 1024 * 1024;
const beginningBytesMax = 64 * 1024 * 1024;

/** The backups of a destination, newest first. */
export async function listBackups(destination: Destination): Promise<ListedBackup[]> {
  const listed: ListedBackup[] = [];
  for (const name of (await destination.list()).sort().reverse()) {
    try {
      listed.push(await look(destination, name));
    } catch (error) {
      // Removed in the meantime.
      if (!(error instanceof BackupNotFound)) throw error;
    }
  }
  return listed;
}

async function look(destination: Destination, name: string): Promise<ListedBackup> {
  const source = await destination.open(name);
  const facts = { file: `${destination.name}/${name}`, bytes: source.bytes };
  try {
    const manifest = await beginningOf(source);
    const { created_at, versions, projects } = manifest;
    const isWhole = await hasEnd(source);
    return {
      ...{ ...facts, created_at, projects },
      verified: isWhole,
      problem: isWhole ? null : "it is cut off",
      version: versions.flagkeep,
      events: totalEvents(manifest),
    };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code !== "backup_damaged" && code !== "backup_from_newer_version") throw error;
    const unknown = { version: null, events: null, projects: [] };
    return { ...facts, created_at: timeOf(name), verified: false, problem: message, ...unknown };
  }
}

async function beginningOf(source: BackupSource): Promise<Manifest> {
  try {
    return await readManifest(source.stream(0, beginningBytes));
  } catch (error) {
    if (source.bytes <= beginningBytes) throw error;
    return await readManifest(source.stream(0, beginningBytesMax));
  }
}

async function hasEnd(source: BackupSource): Promise<boolean> {
  if (source.bytes < endBytes) return false;
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.stream(source.bytes - endBytes, source.bytes)) chunks.push(chunk);
  return parseEndFrame(Buffer.concat(chunks))?.bytes === source.bytes - endBytes;
}

/** `flagkeep-2026-11-21T19-53-40.123Z.tar.zst` */
function timeOf(name: string): string {
  const [, day, hour, minute, second] = /^flagkeep-([\d-]{10})T(\d\d)-(\d\d)-([\d.]+)Z/.exec(name) ?? [];
  return `${day}T${hour}:${minute}:${second}Z`;
}

/**
 * Removes what the rules do not keep.
 *
 * @param dryRun removes nothing.
 * @returns what went, or would go, and what stays.
 */
export async function pruneBackups(destination: Destination, rules: Rules, dryRun: boolean) {
  const all = await listBackups(destination);
  const removed = backupsToRemove(
    all.map((backup) => ({ backup, createdAt: backup.created_at, isGood: backup.verified })),
    rules,
  ).map(({ backup }) => backup);
  for (const { file } of dryRun ? [] : removed)
    await destination.remove(file.slice(file.lastIndexOf("/") + 1));
  return { removed, kept: all.filter((backup) => !removed.includes(backup)) };
}
