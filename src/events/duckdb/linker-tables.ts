/** Memory that DuckDB's library takes only while it is put together. */

import { readFileSync } from "node:fs";
import { cLibrary } from "../../lib/c-library.ts";

/** The pages of a file are read again if they are needed again. */
const notNeeded = 4;

/**
 * Gives back what the linker has read of the library, which is nearly all of its table of names: 8 MB that an idle engine never
 * looks at. Of use once the store is open and was asked, for functions are looked up when they are called first. Only on Linux.
 */
export function giveBackLinkerTables(): void {
  if (process.platform !== "linux") return;
  // The first part of the file; nothing writes to it, unlike to the library's data, so nothing gets lost.
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
