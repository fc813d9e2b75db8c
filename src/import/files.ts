/** The files of an import, and where what is rejected of them goes. */

import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { FileUnreadable } from "./read/input.ts";

export const rejectEnding = ".rejected.ndjson";

export interface ImportFiles {
  /** Absolute, in the order in which they are taken; `-` for standard input. */
  paths: string[];
  /** Undefined for what is no file. */
  totalBytes: number | undefined;
}

/** As people count: `part-2` is before `part-10`. */
const byName = new Intl.Collator("en", { numeric: true });

/**
 * One file, or those of a folder and the folders in it, by name. Hidden files and reject files are left out, and so are
 * links: they may lead out of the folder, or in circles.
 *
 * @param path absolute, or `-`; a link here is followed.
 * @throws {FileUnreadable}
 */
export function importFiles(path: string): ImportFiles {
  if (path === "-") return { paths: ["-"], totalBytes: undefined };
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new FileUnreadable(`${path} does not exist.`);
  if (!found.isDirectory()) return { paths: [path], totalBytes: found.isFile() ? found.size : undefined };
  const names: string[] = [];
  const links = collect(path, "", names);
  if (names.length === 0) {
    const hint = links === 0 ? "" : " (links in a folder are not followed)";
    throw new FileUnreadable(`${path} holds no files${hint}.`);
  }
  names.sort((one, other) => byName.compare(one, other) || (one < other ? -1 : 1));
  const paths = names.map((name) => join(path, name));
  return { paths, totalBytes: paths.reduce((sum, file) => sum + statSync(file).size, 0) };
}

/** @returns how many links were passed over. */
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
 * Beside the file, or in the data directory when that folder cannot be written to.
 *
 * @param content the name of the content: longer than the path for a file in an archive.
 */
export function rejectPathOf(path: string, content: string, dataDir: string): string {
  const inside = content.slice(path.length);
  const part = inside === "" ? "" : `.${fileNameOf(inside)}`;
  if (path === "-") return join(dataDir, `stdin${part}${rejectEnding}`);
  try {
    accessSync(dirname(path), constants.W_OK);
    return `${path}${part}${rejectEnding}`;
  } catch {
    return join(dataDir, `${basename(path)}${part}${rejectEnding}`);
  }
}

/** A name in an archive as the name of a file: what another would be is told by a hash. */
function fileNameOf(inside: string): string {
  const plain = inside
    .replace(/^\//, "")
    .replace(/[^A-Za-z0-9._-]/g, "_")
    .slice(-80);
  return `/${plain}` === inside ? plain : `${plain}-${Bun.hash(inside).toString(16).slice(0, 8)}`;
}

/** `exports/pageviews.csv.gz` is the table `pageviews`. */
export function tableOf(name: string): string {
  return name
    .slice(name.search(/[^/\\]*$/))
    .replace(/\.(?:gz|zst|csv|tsv|json|jsonl|ndjson|parquet|txt)\b.*$/i, "");
}
