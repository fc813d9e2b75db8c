/** What the doctor checks about the files of a data directory: nobody else reaches them, and their user can work with all. */

import { accessSync, constants, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "../../lib/shell-text.ts";
import { paths } from "../../paths.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

/** Files in these may well be kept from being changed. */
function keptFolders(dataDir: string): string[] {
  const { backups, unsentBackups, native, quarantine } = paths(dataDir);
  return [backups, unsentBackups, native, quarantine];
}

/** The user whose files the directory's are. Not the folder's: that may be any user's where root runs in a container. */
export function userOfFiles(dataDir: string): number {
  return (statSync(paths(dataDir).metadata, { throwIfNoEntry: false }) ?? statSync(dataDir)).uid;
}

/** The directory and what is in it belong to one user, who can write it, and to nobody else. */
export function checkPermissions(dataDir: string): Finding[] {
  const user = userOfFiles(dataDir);
  const self = process.geteuid?.();
  const found = [
    ...reachable(dataDir),
    ...walk(dataDir, { dataDir, user, isUser: self === user, kept: keptFolders(dataDir) }),
  ];
  if (self !== undefined && self !== user) {
    const message = `The files in ${dataDir} belong to the user ${user}, this command runs as the user ${self}.`;
    found.push(warning("permissions", message, "Run Flagkeep and its commands as that user."));
  }
  return found.length > 0 ? found : [ok("permissions", "Only the owner can access the data directory.")];
}

/** What is in folders of the folder is behind those. */
function reachable(dataDir: string): Finding[] {
  const paths = [dataDir, ...(listOf(dataDir) ?? []).map((name) => join(dataDir, name))];
  return paths.flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined || (stats.mode & 0o077) === 0) return [];
    const hint = `Run: chmod ${stats.isDirectory() ? "700" : "600"} ${shellWord(path)}`;
    return [failure("permissions", `Other users can access ${path} (mode ${modeText(stats)}).`, hint)];
  });
}

interface Walk {
  dataDir: string;
  /** Who works with the files. */
  user: number;
  /** This process is that user's: the system says what it may do. */
  isUser: boolean;
  /** See `keptFolders`. */
  kept: readonly string[];
}

/** Of files beside each other with the same fault the first is named; what is in a folder with one is not looked at. */
function walk(folder: string, of: Walk): Finding[] {
  const own = folder === of.dataDir ? complaintAbout(folder, of) : undefined;
  const found: Finding[] = own === undefined ? [] : [own.finding];
  const faults = new Set<string>();
  for (const name of listOf(folder) ?? []) {
    const path = join(folder, name);
    const complaint = complaintAbout(path, of);
    if (complaint !== undefined) {
      if (!faults.has(complaint.kind)) found.push(complaint.finding);
      faults.add(complaint.kind);
    } else if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) found.push(...walk(path, of));
  }
  return found;
}

function complaintAbout(path: string, of: Walk): { kind: string; finding: Finding } | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  // A file may go while it is looked for, and a link may lead nowhere.
  if (stats === undefined) return undefined;
  const isTop = path === of.dataDir;
  if (!isTop && stats.uid !== of.user) {
    const message = `${path} belongs to the user ${stats.uid}, the other files to the user ${of.user}.`;
    const hint = `Run: chown -R ${of.user} ${shellWord(of.dataDir)}`;
    // Root may do what it wants with them.
    const finding = (of.user === 0 ? warning : failure)("permissions", message, hint);
    return { kind: `user ${stats.uid}`, finding };
  }
  const isKept = of.kept.some((folder) => path.startsWith(`${folder}/`));
  if (mayUse(path, stats, of, !stats.isDirectory() && isKept)) return undefined;
  const message = `${path} cannot be written by the user ${of.user} (mode ${modeText(stats)}).`;
  const isMode = stats.uid === of.user && (stats.mode & 0o200) === 0;
  const hint = isMode
    ? `Run: chmod u+rw${stats.isDirectory() ? "x" : ""} ${shellWord(path)}`
    : `Run: chown ${of.user} ${shellWord(path)}; or mount its volume so that it can be written.`;
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
      // It may have gone this moment.
      return statSync(path, { throwIfNoEntry: false }) === undefined;
    }
  }
  // Somebody else's process sees the mode alone; to root it means nothing.
  if (user === 0) return true;
  if (stats.uid === user) return ((stats.mode >> 6) & 0o7 & wanted) === wanted;
  return (stats.mode & wanted) === wanted || ((stats.mode >> 3) & wanted) === wanted;
}

/** Undefined for a folder that cannot be read, which is told of, and for one that has gone. */
function listOf(folder: string): string[] | undefined {
  try {
    return readdirSync(folder);
  } catch {
    return undefined;
  }
}

function modeText({ mode }: Stats): string {
  return (mode & 0o777).toString(8);
}
