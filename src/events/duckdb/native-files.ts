/** Copies DuckDB's native library out of the executable; the build puts it in, and a source checkout never loads this. */

// @ts-expect-error resolved by the build to the file of the target platform
import addonFile from "flagkeep:duckdb.addon" with { type: "file" };
// @ts-expect-error resolved by the build to the file of the target platform
import libraryFile from "flagkeep:libduckdb.so" with { type: "file" };
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { nativeFiles } from "./native-folder.ts";

/** Puts the library and what binds it to JavaScript into a folder, each whole or not at all. @throws {Error} */
export function unpack(folder: string): void {
  const { library, addon } = nativeFiles(folder);
  copy(libraryFile, library.path);
  copy(addonFile, addon.path);
}

function copy(embedded: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, readFileSync(embedded), { mode: 0o700 });
  renameSync(temporary, path);
}
