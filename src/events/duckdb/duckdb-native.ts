/**
 * Loads DuckDB's native library, which is embedded in the executable: shared objects cannot be loaded from its file
 * system, and `duckdb.node` links to `libduckdb.so` in its own folder. Both are copied once to a folder in the data
 * directory. The build resolves `@duckdb/node-bindings` to this file; a source checkout never loads it.
 */

import { existsSync, statSync } from "node:fs";
import { AppError, firstLine } from "../../lib/errors.ts";
import { hashOfFile, type NativeFile, nativeFiles, nativeFolder, unpackRole } from "./native-folder.ts";

/** Disk space or the permission to write it is missing. */
class NativeLibraryError extends AppError {
  readonly code = "library_not_written";
  override readonly hint = "Free disk space, or fix the permissions of its folder; the start then continues.";
  constructor(path: string, reason: string) {
    super(`DuckDB's library could not be written to ${path}: ${firstLine(reason)}.`);
  }
}

const files = nativeFiles(nativeFolder());
if (!isThere(files.library) || !isThere(files.addon)) unpackElsewhere();

const loaded: { exports: Record<string, unknown> } = { exports: {} };
process.dlopen(loaded, files.addon.path);
export default loaded.exports;

/** In a separate process: pages read from the executable stay in its memory, 71 MB. */
function unpackElsewhere(): void {
  const { stderr } = Bun.spawnSync([process.execPath, unpackRole, nativeFolder()], { stdout: "ignore" });
  for (const file of [files.library, files.addon]) {
    if (!isThere(file)) throw new NativeLibraryError(file.path, stderr.toString().trim());
  }
}

function isThere({ path, bytes, xxhash }: NativeFile): boolean {
  return existsSync(path) && statSync(path).size === bytes && hashOfFile(path) === xxhash;
}
