/**
 * Extracts DuckDB's native library from the executable; the build embeds it, and a source checkout never loads this
 * file.
 */

// @ts-expect-error resolved by the build to the file of the target platform
import addonFile from "flagkeep:duckdb.addon" with { type: "file" };
// @ts-expect-error resolved by the build to the file of the target platform
import libraryFile from "flagkeep:libduckdb.so" with { type: "file" };
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { nativeFiles } from "./native-folder.ts";

/**
 * Chunk size of writes: some file systems cache large writes in 2 MB pages, all of which count as memory of a process
 * that touches them: 18 MB more for an idle engine.
 */
const chunkBytes = 64 * 1024;

/** Space kept free for flag changes and a store's log. */
const reservedBytes = 8 * 1024 * 1024;
const temporaryEnding = ".tmp";
/** A partial copy without writes for this long is abandoned. */
const abandonedMs = 60_000;

/** Extracts the library and its JavaScript binding to a folder, each atomically. @throws {Error} */
export function unpack(folder: string): void {
  const { library, addon } = nativeFiles(folder);
  copy(libraryFile, library.path);
  copy(addonFile, addon.path);
}

function copy(embedded: string, path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeAbandoned(folder);
  const bytes = readFileSync(embedded);
  assertCapacity(folder, bytes.length);
  const temporary = `${path}.${process.pid}${temporaryEnding}`;
  try {
    const file = openSync(temporary, "w", 0o700);
    try {
      for (let at = 0; at < bytes.length; )
        at += writeSync(file, bytes, at, Math.min(chunkBytes, bytes.length - at));
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Removes partial copies of killed processes. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder).filter((value) => value.endsWith(temporaryEnding))) {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > abandonedMs) rmSync(path, { force: true });
  }
}

/** Do not start a copy that would fill the disk: flags and events need the space. */
function assertCapacity(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free >= bytes + reservedBytes) return;
  const mib = (count: number) => `${Math.ceil(count / 1024 ** 2)} MiB`;
  throw new Error(`no space left on the disk: ${mib(bytes + reservedBytes)} required, ${mib(free)} free`);
}
