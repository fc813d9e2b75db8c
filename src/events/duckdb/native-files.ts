/** Copies DuckDB's native library out of the executable; the build puts it in, and a source checkout never loads this. */

// @ts-expect-error resolved by the build to the file of the target platform
import addonFile from "flagkeep:duckdb.addon" with { type: "file" };
// @ts-expect-error resolved by the build to the file of the target platform
import libraryFile from "flagkeep:libduckdb.so" with { type: "file" };
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { nativeFiles } from "./native-folder.ts";

/**
 * What is written at once some file systems keep in pages of 2 MB, and those are all in the memory of whoever looks at one byte
 * of each: 18 MB more for an engine that is idle.
 */
const pieceBytes = 64 * 1024;

/** Puts the library and what binds it to JavaScript into a folder, each whole or not at all. @throws {Error} */
export function unpack(folder: string): void {
  const { library, addon } = nativeFiles(folder);
  copy(libraryFile, library.path);
  copy(addonFile, addon.path);
}

function copy(embedded: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.tmp`;
  const bytes = readFileSync(embedded);
  const file = openSync(temporary, "w", 0o700);
  try {
    for (let at = 0; at < bytes.length; )
      at += writeSync(file, bytes, at, Math.min(pieceBytes, bytes.length - at));
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}
