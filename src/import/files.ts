/** The files of an import, and where what is rejected of them goes. */

import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { FileUnreadable } from "./input.ts";

const rejectEnding = ".rejected.ndjson";

export interface ImportFiles {
  /** Absolute, in the order in which they are taken; `-` for standard input. */
  paths: string[];
  /** Undefined for what is no file. */
  totalBytes: number | undefined;
}

/** As people count: `part-2` is before `part-10`. */
const byName = new Intl.Collator("en", { numeric: true });

/**
 * One file, or those of a folder and the folders in it, by name. Hidden files and reject files are left out.
 *
 * @param path absolute, or `-`.
 * @throws {FileUnreadable}
 */
export function importFiles(path: string): ImportFiles {
  if (path === "-") return { paths: ["-"], totalBytes: undefined };
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new FileUnreadable(`${path} does not exist.`);
  if (!found.isDirectory()) return { paths: [path], totalBytes: found.isFile() ? found.size : undefined };
  const names = readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(rejectEnding))
    .map((entry) => relative(path, join(entry.parentPath, entry.name)))
    .filter((name) => !name.split("/").some((part) => part.startsWith(".")))
    .sort((one, other) => byName.compare(one, other) || (one < other ? -1 : 1));
  if (names.length === 0) throw new FileUnreadable(`${path} holds no files.`);
  const paths = names.map((name) => join(path, name));
  return { paths, totalBytes: paths.reduce((sum, file) => sum + statSync(file).size, 0) };
}

/** Beside the file, or in the data directory when that folder can not be written to. */
export function rejectPathOf(path: string, dataDir: string): string {
  if (path === "-") return join(dataDir, `stdin${rejectEnding}`);
  try {
    accessSync(dirname(path), constants.W_OK);
    return `${path}${rejectEnding}`;
  } catch {
    return join(dataDir, `${basename(path)}${rejectEnding}`);
  }
}
