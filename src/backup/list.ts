/** What is in a destination, read from the backups' beginnings and ends, and the removal of old ones. */

import { type Static, Type } from "@sinclair/typebox";
import { Count, exactly, orNull } from "../lib/schema.ts";
import { type Destination, isIndexName } from "./destination.ts";
import { BackupNotFound } from "./errors.ts";
import { type Manifest, manifestMembers, parseManifest, totalEvents } from "./manifest.ts";
import { type Index, readIndex } from "./piece-index.ts";
import { removeBackups } from "./pieces.ts";
import { kindOf, readManifest } from "./read-file.ts";
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
  /** What is in it can be read with its key only. */
  encrypted: Type.Boolean(),
  /** It shares pieces with others; `bytes` is what all of its pieces take. */
  incremental: Type.Boolean(),
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
  const names = (await destination.list()).sort().reverse();
  const pieces = names.some(isIndexName) ? await destination.pieces() : new Map();
  for (const name of names) {
    try {
      listed.push(await look(destination, name, pieces));
    } catch (error) {
      // Removed in the meantime.
      if (!(error instanceof BackupNotFound)) throw error;
    }
  }
  return listed;
}

type Pieces = Awaited<ReturnType<Destination["pieces"]>>;

async function look(destination: Destination, name: string, pieces: Pieces): Promise<ListedBackup> {
  const source = await destination.open(name);
  const facts = {
    ...{ file: `${destination.name}/${name}`, bytes: source.bytes, encrypted: false, incremental: false },
  };
  try {
    const kind = await kindOf(source);
    if (kind === "pieces") return lookAtIndex(facts, await readIndex(source), pieces);
    if (kind === "encrypted") {
      // It came there whole, and nothing more can be said without its key.
      const unknown = { version: null, events: null, projects: [], problem: null };
      return { ...facts, ...unknown, created_at: timeOf(name), verified: true, encrypted: true };
    }
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

function lookAtIndex(
  facts: Pick<ListedBackup, "file" | "bytes" | "encrypted" | "incremental">,
  index: Index,
  pieces: Pieces,
): ListedBackup {
  const missing = index.pieces.filter(({ name, bytes }) => pieces.get(name)?.bytes !== bytes).length;
  const { content } = index;
  const manifest = "manifest" in content ? parseManifest(JSON.stringify(content.manifest)) : undefined;
  return {
    ...{ ...facts, created_at: index.created_at, version: index.flagkeep },
    bytes: facts.bytes + index.pieces.reduce((sum, { bytes }) => sum + bytes, 0),
    encrypted: manifest === undefined,
    incremental: true,
    verified: missing === 0,
    problem: missing === 0 ? null : `${missing} of its ${index.pieces.length} pieces are missing or cut off`,
    events: manifest === undefined ? null : totalEvents(manifest),
    projects: manifest?.projects ?? [],
  };
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

export interface PruneOptions {
  rules: Rules;
  /** Says what would go, and removes nothing. */
  isDryRun: boolean;
  /** The backup that was made last, which stays whatever its date; null: none is known of. */
  lastFile: string | null;
}

/**
 * Removes what the rules do not keep.
 *
 * @returns what went, or would go, and what stays.
 */
export async function pruneBackups(
  destination: Destination,
  { rules, isDryRun, lastFile }: PruneOptions,
  now = new Date(),
) {
  const all = await listBackups(destination);
  const removed = backupsToRemove(
    all.map((backup) => ({
      ...{ backup, createdAt: backup.created_at, isGood: backup.verified },
      isPinned: backup.file === lastFile,
    })),
    rules,
    now,
  ).map(({ backup }) => backup);
  const names = removed.map(({ file }) => file.slice(file.lastIndexOf("/") + 1));
  if (!isDryRun) await removeBackups(destination, names);
  return { removed, kept: all.filter((backup) => !removed.includes(backup)) };
}
