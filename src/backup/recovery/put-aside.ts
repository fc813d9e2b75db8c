/** Broken files of the event store: put aside for a person to look at, and remembered when they seemed whole. */

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { firstLine } from "../../lib/errors.ts";
import { paths } from "../../paths.ts";

/** Moves the event store's file and its log to the quarantine. @returns where the file is now, if there was one */
export function putEventStoreAside(dataDir: string): string | undefined {
  const { events } = paths(dataDir);
  const putAside = existsSync(events) ? moveToQuarantine(dataDir, events) : undefined;
  putLogAside(dataDir);
  rmSync(markPath(dataDir), { force: true });
  return putAside;
}

/** Moves the event store's log to the quarantine. @returns where it is now, if there was one */
export function putLogAside(dataDir: string): string | undefined {
  const log = `${paths(dataDir).events}.wal`;
  return existsSync(log) ? moveToQuarantine(dataDir, log) : undefined;
}

function moveToQuarantine(dataDir: string, path: string): string {
  const { quarantine } = paths(dataDir);
  mkdirSync(quarantine, { recursive: true, mode: 0o700 });
  const target = join(quarantine, `${basename(path)}.${Date.now()}.broken`);
  renameSync(path, target);
  return target;
}

/** Remembers that a part of the file turned out to be damaged while it was read: the next start makes it again. */
export function markDamaged(dataDir: string, error: unknown): void {
  writeFileSync(markPath(dataDir), firstLine(error), { mode: 0o600 });
}

/**
 * Remembers that the file is being opened, in case that ends the process.
 *
 * @param opener who starts the process again, such as one run of the front. When that ended as well, whoever killed both is
 *               the reason and not the file.
 * @returns how many openings before this one ended their process and left the opener alive.
 */
export function noteOpening(dataDir: string, opener: string): number {
  const path = openingPath(dataDir);
  const before = openingsOf(path, opener);
  try {
    writeFileSync(path, `${opener} ${before + 1}`, { mode: 0o600 });
  } catch {
    // A full disk; what is counted is no need of opening.
  }
  return before;
}

/** The process outlived the opening. */
export function doneOpening(dataDir: string): void {
  rmSync(openingPath(dataDir), { force: true });
}

/** How often the file was put aside since then. @param sinceMs milliseconds since 1970 */
export function putAsideSince(dataDir: string, sinceMs: number): number {
  const { quarantine, events } = paths(dataDir);
  const pattern = new RegExp(`^${RegExp.escape(basename(events))}\\.(\\d+)\\.broken$`);
  const names = existsSync(quarantine) ? readdirSync(quarantine) : [];
  return names.filter((name) => Number(pattern.exec(name)?.[1] ?? 0) > sinceMs).length;
}

function openingsOf(path: string, opener: string): number {
  try {
    const [by, count] = readFileSync(path, "utf8").split(" ");
    return by === opener ? Number(count) || 0 : 0;
  } catch {
    return 0;
  }
}

function openingPath(dataDir: string): string {
  return `${paths(dataDir).events}.opening`;
}

/** What was remembered. */
export function readDamagedMark(dataDir: string): string | undefined {
  try {
    return readFileSync(markPath(dataDir), "utf8");
  } catch {
    return undefined;
  }
}

function markPath(dataDir: string): string {
  return `${paths(dataDir).events}.damaged`;
}
