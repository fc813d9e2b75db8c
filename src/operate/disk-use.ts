/** How many bytes the parts of a data directory take. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { listArchive } from "../journal/archive.ts";
import { lanes } from "../journal/segment.ts";
import { paths } from "../paths.ts";
import type { DiskUse } from "./status-shape.ts";

/** Folders that may hold very many files: the pieces of incremental backups, and whatever imports bring. */
export type FolderUse = Pick<DiskUse, "backups_bytes" | "other_bytes">;
export type StoreUse = Omit<DiskUse, keyof FolderUse>;

/** Entries that are looked at in one turn of the event loop: about a millisecond. */
const entriesPerTurn = 200;
/** What comes behind so many entries is not counted: four terabytes of incremental backups have as many. */
export const entriesMax = 1_000_000;
/** How long figures of folders are kept for whoever asks again, such as every page of the console. */
const keptMs = 10_000;

/** Of the stores, the journal and the library, which are few files. */
export function storeUse(dataDir: string): StoreUse {
  const place = paths(dataDir);
  return {
    metadata_bytes: bytesOfStore(place.metadata),
    people_bytes: bytesOfStore(place.people),
    events_bytes: bytesOfStore(place.events),
    journal_bytes: lanes.reduce((sum, lane) => sum + bytesInFolder(join(place.journal, lane)), 0),
    quarantine_bytes: bytesInFolder(place.quarantine),
    archive_bytes: lanes
      .flatMap((lane) => listArchive(place.archive, lane))
      .reduce((sum, { bytes }) => sum + bytes, 0),
    library_bytes: bytesBelow(place.native),
  };
}

/**
 * Of backups in the data directory, and of all that belongs to no other part. Others get their turn meanwhile.
 *
 * @param max entries, see `entriesMax`.
 */
export async function folderUse(dataDir: string, max = entriesMax): Promise<FolderUse> {
  const place = paths(dataDir);
  const files = [place.metadata, place.people, place.events].flatMap(filesOfStore);
  const known = [...files, place.journal, place.native, place.backups, place.unsentBackups];
  const knownNames = new Set(known.map((path) => basename(path)));
  const walk = new Walk(max);
  const backups = (await walk.bytesBelow(place.backups)) + (await walk.bytesBelow(place.unsentBackups));
  const other = await walk.bytesBelow(dataDir, (name) => !knownNames.has(name));
  return { backups_bytes: backups, other_bytes: other };
}

/** `folderUse` for a process that is asked often. */
export class KeptFolderUse {
  private last: { at: number; use: Promise<FolderUse> } | undefined;

  constructor(private readonly dataDir: string) {}

  /** At most ten seconds old. */
  read(): Promise<FolderUse> {
    const now = performance.now();
    if (this.last === undefined || now - this.last.at > keptMs) {
      this.last = { at: now, use: folderUse(this.dataDir) };
    }
    return this.last.use;
  }
}

class Walk {
  private entries = 0;

  constructor(private readonly max: number) {}

  /**
   * Of the files in a folder and in its folders; links are not followed. What has gone or cannot be read takes nothing.
   *
   * @param isMeant told the names in the folder itself.
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
        else if (entry.isFile()) bytes += bytesOf(path);
      }
    }
    return bytes;
  }
}

/** What is not in the file yet is beside it. */
const filesOfStore = (path: string): string[] => [path, `${path}-wal`, `${path}.wal`];

function bytesOfStore(path: string): number {
  return filesOfStore(path).reduce((sum, file) => sum + bytesOf(file), 0);
}

function bytesInFolder(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0);
}

/** Also in folders of the folder. */
function bytesBelow(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { withFileTypes: true, recursive: true }).reduce(
    (sum, entry) => sum + (entry.isFile() ? bytesOf(join(entry.parentPath, entry.name)) : 0),
    0,
  );
}

/** 0 when there is no such file, also when it has just gone. */
function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
