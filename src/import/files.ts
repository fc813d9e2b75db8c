/** The files of an import, and the paths of its reject files. */

import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { compareNames } from "./read/file-order.ts";
import { UnreadableFileError } from "./read/input.ts";
import { isPiped, standardInput, standardInputName } from "./read/piped-input.ts";

export const rejectEnding = ".rejected.ndjson";

export interface ImportFiles {
  /** Absolute, in import order; `-` for standard input. */
  paths: string[];
  /** Undefined if it is not a regular file. */
  totalBytes: number | undefined;
}

/**
 * One file, or all files of a folder, recursively, by name. Hidden files, reject files and links are skipped: links may
 * lead out of the folder, or in circles.
 *
 * @param path absolute, or `-`; a link here is followed.
 * @throws {UnreadableFileError}
 */
export function importFiles(path: string): ImportFiles {
  if (path === standardInput) return { paths: [path], totalBytes: undefined };
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new UnreadableFileError(`${path} does not exist.`);
  if (!found.isDirectory()) return { paths: [path], totalBytes: found.isFile() ? found.size : undefined };
  const names: string[] = [];
  const links = collect(path, "", names);
  if (names.length === 0) {
    const hint = links === 0 ? "" : " (links in a folder are not followed)";
    throw new UnreadableFileError(`${path} holds no files${hint}.`);
  }
  names.sort(compareNames);
  const paths = names.map((name) => join(path, name));
  return { paths, totalBytes: paths.reduce((sum, file) => sum + statSync(file).size, 0) };
}

/** @returns the number of skipped links. */
function collect(root: string, folder: string, names: string[]): number {
  let links = 0;
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const name = join(folder, entry.name);
    if (entry.isSymbolicLink()) links += 1;
    else if (entry.isDirectory()) links += collect(root, name, names);
    else if (entry.isFile() && !entry.name.endsWith(rejectEnding)) names.push(name);
  }
  return links;
}

/**
 * Next to the file, or in the data directory for input without a folder, or with one that is not writable.
 *
 * @param inside name of a file in an archive, after that of the archive.
 */
export function getRejectPath(path: string, inside: string, dataDir: string): string {
  const part = inside === "" ? "" : `.${getFileName(inside)}`;
  // A pipe may be in `/dev/fd`, where no file can be created.
  if (isPiped(path))
    return join(dataDir, `${path === standardInput ? "stdin" : basename(path)}${part}${rejectEnding}`);
  try {
    accessSync(dirname(path), constants.W_OK);
    return `${path}${part}${rejectEnding}`;
  } catch {
    return join(dataDir, `${basename(path)}${part}${rejectEnding}`);
  }
}

/** A name in an archive as a file name; a hash distinguishes altered names. */
function getFileName(inside: string): string {
  const plain = inside
    .replace(/^\//, "")
    .replace(/[^A-Za-z0-9._-]/g, "_")
    .slice(-80);
  return `/${plain}` === inside ? plain : `${plain}-${Bun.hash(inside).toString(16).slice(0, 8)}`;
}

/** `exports/pageviews.csv.gz` is the table `pageviews`; standard input has no name. */
export function getTable(name: string): string {
  if (name === standardInputName) return "";
  return name
    .slice(name.search(/[^/\\]*$/))
    .replace(/\.(?:gz|zst|csv|tsv|json|jsonl|ndjson|parquet|txt)\b.*$/i, "");
}
