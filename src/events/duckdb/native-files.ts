/** Copies DuckDB's native library out of the executable; the build puts it in, and a source checkout never loads this. */

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
 * What is written at once some file systems keep in pages of 2 MB, and those are all in the memory of whoever looks at one byte
 * of each: 18 MB more for an engine that is idle.
 */
const pieceBytes = 64 * 1024;

/** Stays free beside the copy, for flags that are changed and what the log of a store takes. */
const leftFreeBytes = 8 * 1024 * 1024;
const temporaryEnding = ".tmp";
/** Nobody writes for so long to a copy that is being made. */
const abandonedMs = 60_000;

/** Puts the library and what binds it to JavaScript into a folder, each whole or not at all. @throws {Error} */
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
  requireRoom(folder, bytes.length);
  const temporary = `${path}.${process.pid}${temporaryEnding}`;
  try {
    const file = openSync(temporary, "w", 0o700);
    try {
      for (let at = 0; at < bytes.length; )
        at += writeSync(file, bytes, at, Math.min(pieceBytes, bytes.length - at));
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** What a process that was killed has left. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder).filter((one) => one.endsWith(temporaryEnding))) {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > abandonedMs) rmSync(path, { force: true });
  }
}

/** A copy that would fill the disk is not begun: flags and events go on with the room that there is. */
function requireRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free >= bytes + leftFreeBytes) return;
  const mib = (count: number) => `${Math.ceil(count / 1024 ** 2)} MiB`;
  throw new Error(
    `no space left on the disk, ${mib(bytes + leftFreeBytes)} are needed and ${mib(free)} are free`,
  );
}
