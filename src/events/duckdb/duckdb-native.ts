/**
 * Loads DuckDB's native library from inside the executable.
 *
 * A compiled executable cannot load a shared object from its own file system, and `duckdb.node` links to
 * `libduckdb.so` beside it. So both are embedded, copied once into a folder below the data directory and loaded
 * from there. The build resolves `@duckdb/node-bindings` to this file; a source checkout never loads it.
 */

import { existsSync, statSync } from "node:fs";
import { AppError, firstLine } from "../../lib/errors.ts";
import { hashOfFile, type NativeFile, nativeFiles, nativeFolder, unpackRole } from "./native-folder.ts";

/** There is no room for it, or no right to write it. */
class LibraryNotWritten extends AppError {
  readonly code = "library_not_written";
  override readonly hint = "Make room, or mend the permissions of its folder; then it goes on.";
  constructor(path: string, reason: string) {
    super(`DuckDB's library could not be written to ${path}: ${firstLine(reason)}.`);
  }
}

const files = nativeFiles(nativeFolder());
if (!isThere(files.library) || !isThere(files.addon)) unpackElsewhere();

const loaded: { exports: Record<string, unknown> } = { exports: {} };
process.dlopen(loaded, files.addon.path);
export default loaded.exports;

/** In a process of its own: what is read of the executable stays in the memory of the one that reads it, 71 MB. */
function unpackElsewhere(): void {
  const { stderr } = Bun.spawnSync([process.execPath, unpackRole, nativeFolder()], { stdout: "ignore" });
  for (const file of [files.library, files.addon]) {
    if (!isThere(file)) throw new LibraryNotWritten(file.path, stderr.toString().trim());
  }
}

function isThere({ path, bytes, xxhash }: NativeFile): boolean {
  return existsSync(path) && statSync(path).size === bytes && hashOfFile(path) === xxhash;
}
