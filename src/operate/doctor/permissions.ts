/** Doctor checks of file permissions: no other user has access, and the owner can write every file. */

import { accessSync, constants, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "../../lib/terminal-text.ts";
import { paths } from "../../paths.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

/** Folders whose files may be write-protected on purpose. */
function preservedFolders(dataDir: string): string[] {
  const { backups, unsentBackups, native, quarantine } = paths(dataDir);
  return [backups, unsentBackups, native, quarantine];
}

/** The user who owns the directory's files. The folder's owner may differ when root runs in a container. */
export function userOfFiles(dataDir: string): number {
  return (statSync(paths(dataDir).metadata, { throwIfNoEntry: false }) ?? statSync(dataDir)).uid;
}

/** The directory and its files belong to one user, who can write them, and no other user has access. */
export function checkPermissions(dataDir: string): Finding[] {
  const user = userOfFiles(dataDir);
  const self = process.geteuid?.();
  const found = [
    ...checkAccess(dataDir),
    ...walk(dataDir, { dataDir, user, isUser: self === user, retainedFolders: preservedFolders(dataDir) }),
  ];
  if (self !== undefined && self !== user) {
    const message = `The files in ${dataDir} belong to the user ${user}, this command runs as the user ${self}.`;
    found.push(warning("permissions", message, "Run Flagkeep and its commands as that user."));
  }
  return found.length > 0 ? found : [ok("permissions", "Only the owner can access the data directory.")];
}

/** Files in subfolders are protected by the folder itself. */
function checkAccess(dataDir: string): Finding[] {
  const paths = [dataDir, ...(toList(dataDir) ?? []).map((name) => join(dataDir, name))];
  return paths.flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined || (stats.mode & 0o077) === 0) return [];
    // Such as the .gitkeep of a clone.
    if (stats.isFile() && stats.size === 0) return [];
    const hint = `Run: chmod ${stats.isDirectory() ? "700" : "600"} ${shellWord(path)}`;
    return [failure("permissions", `Other users can access ${path} (mode ${formatMode(stats)}).`, hint)];
  });
}

interface Walk {
  dataDir: string;
  /** The user who works with the files. */
  user: number;
  /** This process runs as that user: the operating system checks access. */
  isUser: boolean;
  /** See `preservedFolders`. */
  retainedFolders: readonly string[];
}

/** Reports the first of the files in a folder with the same fault, and skips the contents of a faulty folder. */
function walk(folder: string, options: Walk): Finding[] {
  const own = folder === options.dataDir ? complaintAbout(folder, options) : undefined;
  const found: Finding[] = own === undefined ? [] : [own.finding];
  const errors = new Set<string>();
  for (const name of toList(folder) ?? []) {
    const path = join(folder, name);
    const complaint = complaintAbout(path, options);
    if (complaint !== undefined) {
      if (!errors.has(complaint.kind)) found.push(complaint.finding);
      errors.add(complaint.kind);
    } else if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) found.push(...walk(path, options));
  }
  return found;
}

function complaintAbout(path: string, options: Walk): { kind: string; finding: Finding } | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  // A file may be deleted during the walk, and a link may be dangling.
  if (stats === undefined) return undefined;
  const isTop = path === options.dataDir;
  if (!isTop && stats.uid !== options.user) {
    const message = `${path} belongs to the user ${stats.uid}, the other files to the user ${options.user}.`;
    const hint = `Run: chown -R ${options.user} ${shellWord(options.dataDir)}`;
    // Root can access the files regardless.
    const finding = (options.user === 0 ? warning : failure)("permissions", message, hint);
    return { kind: `user ${stats.uid}`, finding };
  }
  const isPreserved = options.retainedFolders.some((folder) => path.startsWith(`${folder}/`));
  if (mayUse(path, stats, options, !stats.isDirectory() && isPreserved)) return undefined;
  const message = `${path} cannot be written by the user ${options.user} (mode ${formatMode(stats)}).`;
  const isMode = stats.uid === options.user && (stats.mode & 0o200) === 0;
  const hint = isMode
    ? `Run: chmod u+rw${stats.isDirectory() ? "x" : ""} ${shellWord(path)}`
    : `Run: chown ${options.user} ${shellWord(path)}; or mount its volume so that it can be written.`;
  return { kind: "mode", finding: failure("permissions", message, hint) };
}

function mayUse(path: string, stats: Stats, { user, isUser }: Walk, isOnlyRead: boolean): boolean {
  const wanted =
    constants.R_OK | (isOnlyRead ? 0 : constants.W_OK) | (stats.isDirectory() ? constants.X_OK : 0);
  if (isUser) {
    try {
      accessSync(path, wanted);
      return true;
    } catch {
      // It may just have been deleted.
      return statSync(path, { throwIfNoEntry: false }) === undefined;
    }
  }
  // Another user's access is derived from the mode, which does not apply to root.
  if (user === 0) return true;
  if (stats.uid === user) return ((stats.mode >> 6) & 0o7 & wanted) === wanted;
  return (stats.mode & wanted) === wanted || ((stats.mode >> 3) & wanted) === wanted;
}

/** Undefined for an unreadable folder, which is reported, and for a deleted one. */
function toList(folder: string): string[] | undefined {
  try {
    return readdirSync(folder);
  } catch {
    return undefined;
  }
}

function formatMode({ mode }: Stats): string {
  return (mode & 0o777).toString(8);
}
