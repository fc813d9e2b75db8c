/** Lists the backups of a destination by reading their first and last bytes, and deletes old ones. */

import { type Static, Type } from "@sinclair/typebox";
import { NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import { dayMs } from "../lib/time.ts";
import { type BackupIndex, readIndex } from "./chunk-index.ts";
import { removeBackups } from "./chunks.ts";
import { type Destination, isIndexName } from "./destination.ts";
import { BackupNotFoundError } from "./errors.ts";
import { type Manifest, manifestMembers, parseManifest, totalEvents } from "./manifest.ts";
import { getKind, readManifest } from "./read-file.ts";
import type { BackupSource } from "./source.ts";
import { endBytes, parseEndFrame } from "./write-file.ts";

/** As `backup list --json` prints it. */
export const ListedBackup = strictObject({
  file: Type.String(),
  created_at: Type.String(),
  bytes: NonNegativeInt,
  /** It was verified before it got its name, and its start, end and length are intact. */
  verified: Type.Boolean(),
  /** Its contents require a key. */
  encrypted: Type.Boolean(),
  /** It shares chunks with others; `bytes` is the size of all its chunks. */
  incremental: Type.Boolean(),
  /** Why it is not verified. */
  problem: nullable(Type.String()),
  version: nullable(Type.String()),
  events: nullable(NonNegativeInt),
  projects: manifestMembers.projects,
});
export type ListedBackup = Static<typeof ListedBackup>;

/** Nearly every manifest ends within this. */
const beginningBytes = 1024 * 1024;
const beginningBytesMax = 64 * 1024 * 1024;

/** The backups of a destination, newest first. */
export async function listBackups(destination: Destination): Promise<ListedBackup[]> {
  const listed: ListedBackup[] = [];
  const names = (await destination.list()).sort().reverse();
  const chunks = names.some(isIndexName) ? await destination.chunks() : new Map();
  for (const name of names) {
    try {
      listed.push(await inspect(destination, name, chunks));
    } catch (error) {
      // Deleted in the meantime.
      if (!(error instanceof BackupNotFoundError)) throw error;
    }
  }
  return listed;
}

type Chunks = Awaited<ReturnType<Destination["chunks"]>>;

async function inspect(destination: Destination, name: string, chunks: Chunks): Promise<ListedBackup> {
  const source = await destination.open(name);
  const facts = {
    file: `${destination.name}/${name}`,
    bytes: source.bytes,
    encrypted: false,
    incremental: false,
  };
  try {
    const kind = await getKind(source);
    if (kind === "pieces") return describeIndex(facts, await readIndex(source), chunks);
    if (kind === "encrypted") {
      // The upload was complete, and nothing more is known without the key.
      const unknown = { version: null, events: null, projects: [], problem: null };
      return { ...facts, ...unknown, created_at: toTime(name), verified: true, encrypted: true };
    }
    const manifest = await getBeginning(source);
    const { created_at, versions, projects } = manifest;
    const isWhole = await hasEnd(source);
    return {
      ...facts,
      created_at,
      projects,
      verified: isWhole,
      problem: isWhole ? null : "it is truncated",
      version: versions.flagkeep,
      events: totalEvents(manifest),
    };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code !== "backup_damaged" && code !== "backup_from_newer_version") throw error;
    const unknown = { version: null, events: null, projects: [] };
    return { ...facts, created_at: toTime(name), verified: false, problem: message, ...unknown };
  }
}

function describeIndex(
  facts: Pick<ListedBackup, "file" | "bytes" | "encrypted" | "incremental">,
  index: BackupIndex,
  chunks: Chunks,
): ListedBackup {
  const missing = index.pieces.filter(({ name, bytes }) => chunks.get(name)?.bytes !== bytes).length;
  const { content } = index;
  const manifest = "manifest" in content ? parseManifest(JSON.stringify(content.manifest)) : undefined;
  return {
    ...facts,
    created_at: index.created_at,
    version: index.flagkeep,
    bytes: facts.bytes + index.pieces.reduce((sum, { bytes }) => sum + bytes, 0),
    encrypted: manifest === undefined,
    incremental: true,
    verified: missing === 0,
    problem:
      missing === 0 ? null : `${missing} of its ${index.pieces.length} chunks are missing or truncated`,
    events: manifest === undefined ? null : totalEvents(manifest),
    projects: manifest?.projects ?? [],
  };
}

async function getBeginning(source: BackupSource): Promise<Manifest> {
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
function toTime(name: string): string {
  const [, day, hour, minute, second] = /^flagkeep-([\d-]{10})T(\d\d)-(\d\d)-([\d.]+)Z/.exec(name) ?? [];
  return `${day}T${hour}:${minute}:${second}Z`;
}

export interface PruneOptions {
  rules: Rules;
  /** Reports what would be deleted, and deletes nothing. */
  isDryRun: boolean;
  /** The most recently created backup, kept whatever its date; null: unknown. */
  lastFile: string | null;
}

/**
 * Deletes the backups that the rules do not keep.
 *
 * @returns the deleted backups (with a dry run, those that would be deleted) and the kept ones.
 */
export async function pruneBackups(
  destination: Destination,
  { rules, isDryRun, lastFile }: PruneOptions,
  now = new Date(),
) {
  const all = await listBackups(destination);
  const removed = backupsToRemove(
    all.map((backup) => ({
      backup,
      createdAt: backup.created_at,
      isGood: backup.verified,
      isPinned: backup.file === lastFile,
    })),
    rules,
    now,
  ).map(({ backup }) => backup);
  const names = removed.map(({ file }) => file.slice(file.lastIndexOf("/") + 1));
  if (!isDryRun) await removeBackups(destination, names);
  return { removed, retained: all.filter((backup) => !removed.includes(backup)) };
}

export interface Rules {
  /** Number of newest backups to keep. */
  last: number;
  /** Number of days of which the newest backup is kept; days without one do not count. Days and weeks are UTC. */
  daily: number;
  /** Number of weeks of which the newest backup is kept; weeks begin on Monday. */
  weekly: number;
}

export interface Candidate {
  /** ISO 8601. */
  createdAt: string;
  /** A bad one is neither counted nor deleted: an operator should examine it. */
  isGood: boolean;
  /** Kept by every rule, as the most recently created one: a wrong clock may have dated it long ago. */
  isPinned?: boolean;
}

/**
 * The backups to delete, oldest first. The newest good one is always kept.
 *
 * Future-dated backups, created with a wrong clock, are neither counted nor deleted: they would be the newest for
 * years, and every other backup would be deleted.
 */
export function backupsToRemove<One extends Candidate>(
  backups: readonly One[],
  rules: Rules,
  now: Date,
): One[] {
  const good = backups
    .filter(({ createdAt, isGood }) => isGood && Date.parse(createdAt) <= now.getTime())
    .sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0));
  const retained = new Set(good.slice(0, Math.max(1, rules.last)));
  for (const backup of good) if (backup.isPinned) retained.add(backup);
  const retainNewestOfEach = (periods: number, getPeriod: (day: number) => number) => {
    const seen = new Set<number>();
    for (const backup of good) {
      if (seen.size >= periods) return;
      const period = getPeriod(Math.floor(Date.parse(backup.createdAt) / dayMs));
      if (seen.has(period)) continue;
      seen.add(period);
      retained.add(backup);
    }
  };
  retainNewestOfEach(rules.daily, (day) => day);
  // The first day of 1970 was a Thursday.
  retainNewestOfEach(rules.weekly, (day) => Math.floor((day + 3) / 7));
  return good.filter((backup) => !retained.has(backup)).reverse();
}
