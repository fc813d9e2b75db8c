/**
 * Quarantines corrupt files of the event store for an operator to examine, and marks a file as corrupt for the next
 * start.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { firstLine } from "../../lib/errors.ts";
import { paths } from "../../paths.ts";

/** Moves the event store's file and its log to the quarantine. @returns the new path of the file, if it existed */
export function quarantineEventStore(dataDir: string): string | undefined {
  const { events } = paths(dataDir);
  const quarantined = existsSync(events) ? moveToQuarantine(dataDir, events) : undefined;
  quarantineWal(dataDir);
  rmSync(markPath(dataDir), { force: true });
  return quarantined;
}

/** Moves the event store's log to the quarantine. @returns its new path, if it existed */
export function quarantineWal(dataDir: string): string | undefined {
  const log = `${paths(dataDir).events}.wal`;
  return existsSync(log) ? moveToQuarantine(dataDir, log) : undefined;
}

/** Moves a file to the quarantine. @returns its new path */
export function moveToQuarantine(dataDir: string, path: string): string {
  const { quarantine } = paths(dataDir);
  mkdirSync(quarantine, { recursive: true, mode: 0o700 });
  const target = join(quarantine, `${basename(path)}.${Date.now()}.broken`);
  renameSync(path, target);
  return target;
}

/** Marks the file as corrupt after a read failed: the next start rebuilds it. */
export function markCorrupt(dataDir: string, error: unknown): void {
  writeFileSync(markPath(dataDir), firstLine(error), { mode: 0o600 });
}

/**
 * Records that the file is being opened, in case that crashes the process.
 *
 * @param opener identifies the process that restarts this one, such as one run of the server. If that exited as well,
 *               the cause is a kill of both and not the file.
 * @returns how many previous openings crashed their process while the opener survived.
 */
export function openingStarted(dataDir: string, opener: string): number {
  const path = openingPath(dataDir);
  const before = getOpenings(path, opener);
  try {
    writeFileSync(path, `${opener} ${before + 1}`, { mode: 0o600 });
  } catch {
    // The disk may be full; opening does not depend on the counter.
  }
  return before;
}

/** The process survived the opening. */
export function openingSucceeded(dataDir: string): void {
  rmSync(openingPath(dataDir), { force: true });
}

/** How often the file was quarantined since then. @param sinceMs milliseconds since 1970 */
export function quarantinedSince(dataDir: string, sinceMs: number): number {
  const { quarantine, events } = paths(dataDir);
  const pattern = new RegExp(`^${RegExp.escape(basename(events))}\\.(\\d+)\\.broken$`);
  const names = existsSync(quarantine) ? readdirSync(quarantine) : [];
  return names.filter((name) => Number(pattern.exec(name)?.[1] ?? 0) > sinceMs).length;
}

function getOpenings(path: string, opener: string): number {
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

/** The reason that `markDamaged` recorded. */
export function readCorruptMark(dataDir: string): string | undefined {
  try {
    return readFileSync(markPath(dataDir), "utf8");
  } catch {
    return undefined;
  }
}

function markPath(dataDir: string): string {
  return `${paths(dataDir).events}.damaged`;
}
