/** Releases memory that only the dynamic linker needs. */

import { readFileSync } from "node:fs";
import { cLibrary } from "../../lib/c-library.ts";

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
