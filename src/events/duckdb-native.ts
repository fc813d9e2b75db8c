/**
 * Loads DuckDB's native library from inside the executable.
 *
 * A compiled executable cannot load a shared object from its own file system, and `duckdb.node` links to
 * `libduckdb.so` beside it. So both are embedded, copied once into a folder below the data directory and loaded
 * from there. The build resolves `@duckdb/node-bindings` to this file; a source checkout never loads it.
 */

// @ts-expect-error resolved by the build to the file of the target platform
import addonFile from "flagkeep:duckdb.addon" with { type: "file" };
// @ts-expect-error resolved by the build to the file of the target platform
import libraryFile from "flagkeep:libduckdb.so" with { type: "file" };
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nativeFolder } from "./native-folder.ts";

// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_DUCKDB_FILES: { addon: EmbeddedFile; library: EmbeddedFile };
interface EmbeddedFile {
  bytes: number;
  xxhash: string;
}

const files = FLAGKEEP_DUCKDB_FILES;
// The folder's name is the content, so an upgrade never overwrites a library that is in use.
const folder = join(nativeFolder(), files.library.xxhash);
mkdirSync(folder, { recursive: true, mode: 0o700 });
place(libraryFile, join(folder, "libduckdb.so"), files.library);
place(addonFile, join(folder, "duckdb.node"), files.addon);

const loaded: { exports: Record<string, unknown> } = { exports: {} };
process.dlopen(loaded, join(folder, "duckdb.node"));
export default loaded.exports;

function place(embedded: string, path: string, expected: EmbeddedFile): void {
  if (existsSync(path) && statSync(path).size === expected.bytes && hashOf(path) === expected.xxhash) return;
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, readFileSync(embedded), { mode: 0o700 });
  if (hashOf(temporary) !== expected.xxhash)
    throw new Error(`DuckDB's library could not be written to ${path}.`);
  renameSync(temporary, path);
}

function hashOf(path: string): string {
  return Bun.hash.xxHash64(readFileSync(path)).toString(16);
}
