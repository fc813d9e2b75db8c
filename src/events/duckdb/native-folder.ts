/** Where the executable keeps its copy of DuckDB's native library; set once, before DuckDB is loaded. */

import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** The hidden command that copies it there. */
export const unpackRole = "unpack-library";

// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_DUCKDB_FILES: Record<"addon" | "library", Omit<NativeFile, "path">>;

export interface NativeFile {
  path: string;
  bytes: number;
  xxhash: string;
}

/** The library, and what binds it to JavaScript. */
export interface NativeFiles {
  library: NativeFile;
  addon: NativeFile;
}

let folder: string | undefined;

export function setNativeFolder(path: string): void {
  folder = path;
}

export function nativeFolder(): string {
  if (folder === undefined) throw new Error("setNativeFolder() must run before DuckDB is loaded.");
  return folder;
}

/** The files as they must be below such a folder, in an executable. */
export function nativeFiles(parent: string): NativeFiles {
  const { library, addon } = FLAGKEEP_DUCKDB_FILES;
  // The folder's name is the content, so an upgrade never overwrites a library that is in use.
  const place = join(parent, library.xxhash);
  return {
    library: { ...library, path: join(place, "libduckdb.so") },
    addon: { ...addon, path: join(place, "duckdb.node") },
  };
}

/** Whether the files are there already; in a source checkout none are needed. */
export function areNativeFilesThere(parent: string): boolean {
  if (typeof FLAGKEEP_DUCKDB_FILES === "undefined") return true;
  return Object.values(nativeFiles(parent)).every(({ path }) => existsSync(path));
}

const pieceBytes = 1024 * 1024;

/**
 * What tells a file from a damaged one: xxHash64 of one piece after the other, each seeded with the hash of those before it.
 * The library whole would be 70 MB of memory at each start.
 *
 * @throws {Error} the file cannot be read.
 */
export function hashOfFile(path: string): string {
  const piece = Buffer.allocUnsafeSlow(pieceBytes);
  const file = openSync(path, "r");
  try {
    for (let hash = 0n; ; ) {
      let filled = 0;
      for (let read = -1; filled < pieceBytes && read !== 0; filled += read)
        read = readSync(file, piece, filled, pieceBytes - filled, null);
      if (filled === 0) return hash.toString(16);
      hash = Bun.hash.xxHash64(piece.subarray(0, filled), hash);
    }
  } finally {
    closeSync(file);
  }
}
