/** Disk usage of the parts of a data directory, in bytes. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { listArchive } from "../journal/archive.ts";
import { lanes } from "../journal/segment.ts";
import { paths } from "../paths.ts";
import type { DiskUse } from "./status-schema.ts";

/** Folders that may hold very many files: chunks of incremental backups, and imported files. */
export type FolderUsage = Pick<DiskUse, "backups_bytes" | "other_bytes">;
export type StoreUsage = Omit<DiskUse, keyof FolderUsage>;

/** Entries per event loop tick: about a millisecond. */
const entriesPerTurn = 200;
/** Further entries are not counted: four terabytes of incremental backups have as many. */
const entriesMax = 1_000_000;
/** Cache lifetime of folder sizes, which every console page requests. */
const retainedMs = 10_000;

/** The stores, the journal and the library, which are few files. */
export function storeUsage(dataDir: string): StoreUsage {
  const dataPaths = paths(dataDir);
  return {
    metadata_bytes: bytesOfStore(dataPaths.metadata),
    people_bytes: bytesOfStore(dataPaths.people),
    events_bytes: bytesOfStore(dataPaths.events),
    journal_bytes: lanes.reduce((sum, lane) => sum + bytesInFolder(join(dataPaths.journal, lane)), 0),
    quarantine_bytes: bytesInFolder(dataPaths.quarantine),
    archive_bytes: lanes
      .flatMap((lane) => listArchive(dataPaths.archive, lane))
      .reduce((sum, { bytes }) => sum + bytes, 0),
    library_bytes: bytesBelow(dataPaths.native),
  };
}

/**
 * Backups in the data directory, and everything that belongs to no other part. Yields to the event loop between
 * batches.
 *
 * @param max entries, see `entriesMax`.
 */
export async function folderUsage(dataDir: string, max = entriesMax): Promise<FolderUsage> {
  const storePaths = paths(dataDir);
  const files = [storePaths.metadata, storePaths.people, storePaths.events].flatMap(filesOfStore);
  const known = [
    ...files,
    storePaths.journal,
    storePaths.native,
    storePaths.backups,
    storePaths.unsentBackups,
  ];
  const knownNames = new Set(known.map((path) => basename(path)));
  const walk = new Walk(max);
  const backups =
    (await walk.bytesBelow(storePaths.backups)) + (await walk.bytesBelow(storePaths.unsentBackups));
  const other = await walk.bytesBelow(dataDir, (name) => !knownNames.has(name));
  return { backups_bytes: backups, other_bytes: other };
}

/** `folderUsage` with a cache, for frequent callers. */
export class CachedFolderUsage {
  private last: { at: number; use: Promise<FolderUsage> } | undefined;

  constructor(private readonly dataDir: string) {}

  /** At most `keptMs` old. */
  read(): Promise<FolderUsage> {
    const now = performance.now();
    if (this.last === undefined || now - this.last.at > retainedMs) {
      this.last = { at: now, use: folderUsage(this.dataDir) };
    }
    return this.last.use;
  }
}

class Walk {
  private entries = 0;

  constructor(private readonly max: number) {}

  /**
   * Size of a folder's files, recursively; links are not followed. Deleted and unreadable files count as 0.
   *
   * @param isMeant receives the names in the folder itself.
   */
  async bytesBelow(top: string, isMeant: (name: string) => boolean = () => true): Promise<number> {
    let bytes = 0;
    const folders = [top];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const found = await readdir(folder, { withFileTypes: true }).catch(() => []);
      for (const entry of found) {
        if (folder === top && !isMeant(entry.name)) continue;
        if (this.entries === this.max) return bytes;
        this.entries += 1;
        if (this.entries % entriesPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
        const path = join(folder, entry.name);
        if (entry.isDirectory()) folders.push(path);
        else if (entry.isFile()) bytes += getBytes(path);
      }
    }
    return bytes;
  }
}

/** The write-ahead logs of a store are separate files next to it. */
const filesOfStore = (path: string): string[] => [path, `${path}-wal`, `${path}.wal`];

function bytesOfStore(path: string): number {
  return filesOfStore(path).reduce((sum, file) => sum + getBytes(file), 0);
}

function bytesInFolder(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + getBytes(join(folder, name)), 0);
}

/** Recursive. */
function bytesBelow(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { withFileTypes: true, recursive: true }).reduce(
    (sum, entry) => sum + (entry.isFile() ? getBytes(join(entry.parentPath, entry.name)) : 0),
    0,
  );
}

/** 0 when the file does not exist, even if it was just deleted. */
function getBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
