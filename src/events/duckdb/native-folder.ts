/** Folder of the extracted native library of DuckDB; set once, before DuckDB is loaded. */

import { closeSync, existsSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { cLibrary } from "../../lib/operating-system.ts";

/** The hidden command that extracts it. */
export const unpackRole = "unpack-library";

// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_DUCKDB_FILES: Record<"addon" | "library", Omit<NativeFile, "path">>;

export interface NativeFile {
  path: string;
  bytes: number;
  xxhash: string;
}

/** The library and its JavaScript binding. */
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

/** Expected paths of the files below a folder, in an executable. */
export function nativeFiles(parent: string): NativeFiles {
  const { library, addon } = FLAGKEEP_DUCKDB_FILES;
  // Named by content, so that an upgrade never overwrites a library in use.
  const folder = join(parent, library.xxhash);
  return {
    library: { ...library, path: join(folder, "libduckdb.so") },
    addon: { ...addon, path: join(folder, "duckdb.node") },
  };
}

/** Whether the files exist; a source checkout needs none. */
export function areNativeFilesThere(parent: string): boolean {
  if (typeof FLAGKEEP_DUCKDB_FILES === "undefined") return true;
  return Object.values(nativeFiles(parent)).every(({ path }) => existsSync(path));
}

const chunkBytes = 1024 * 1024;

/**
 * Detects corrupt files: xxHash64 by chunks, each seeded with the previous hash. Hashing the whole library at once
 * would take 70 MB of memory at each start. @throws {Error} the file cannot be read
 */
export function hashOfFile(path: string): string {
  const chunk = Buffer.allocUnsafeSlow(chunkBytes);
  const file = openSync(path, "r");
  try {
    for (let hash = 0n; ; ) {
      let filled = 0;
      for (let read = -1; filled < chunkBytes && read !== 0; filled += read)
        read = readSync(file, chunk, filled, chunkBytes - filled, null);
      if (filled === 0) return hash.toString(16);
      hash = Bun.hash.xxHash64(chunk.subarray(0, filled), hash);
    }
  } finally {
    closeSync(file);
  }
}

/** MADV_DONTNEED: file-backed pages are read again when accessed. */
const notNeeded = 4;

/**
 * Releases the pages of the library read by the linker, mainly its symbol table: 8 MB that an idle engine never
 * accesses. Call it after the store was opened and queried, because symbols are resolved on first use. Only on Linux.
 */
export function releaseLinkerTables(): void {
  if (process.platform !== "linux") return;
  // The file's first segment is read-only, unlike the library's data, so nothing is lost.
  const [, start, end] =
    /^([0-9a-f]+)-([0-9a-f]+) r--p 0+ .*\/libduckdb\.so$/m.exec(readFileSync("/proc/self/maps", "latin1")) ??
    [];
  if (start === undefined || end === undefined) return;
  const from = Number.parseInt(start, 16);
  cLibrary({ madvise: { args: ["ptr", "usize", "i32"], returns: "i32" } })?.madvise(
    from as never,
    Number.parseInt(end, 16) - from,
    notNeeded,
  );
}
