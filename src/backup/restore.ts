/** Restores a backup into a data directory: unpacked beside it, checked, opened, and only then put in its place. */

import { existsSync, realpathSync, rmSync } from "node:fs";
import { chmod, mkdir, rm } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { onInterrupt } from "../lib/interrupt.ts";
import { type Lock, takeFolderLock, takeLock, takeStoresLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { TargetNotEmpty } from "./errors.ts";
import { BackupKeys } from "./keys.ts";
import { noteBackup } from "./last-backup.ts";
import { type Manifest, unpackedBytes } from "./manifest.ts";
import { openRestored } from "./open-restored.ts";
import { unpackFrom } from "./read-file.ts";
import { noteRestore } from "./restore-note.ts";
import { requireKnownSchemas } from "./schema-versions.ts";
import { type BackupSource, openSource } from "./source.ts";
import { requireSpace, type SpaceOf } from "./space.ts";
import { entriesOf, planSwap, removeLeftovers, type SwapPlan, swap } from "./swap.ts";

export interface RestoreOptions {
  /** Restores over a directory that is not empty; what is there is kept under another name. */
  force?: boolean;
  /** What the backup is decrypted with; absent: it is not encrypted. */
  keys?: BackupKeys;
  onProgress?: (done: number, total: number) => void;
  spaceOf?: SpaceOf;
  /** Does more to the restored folder before it is put in place. */
  beforeSwap?: (folder: string, manifest: Manifest) => Promise<void>;
}

/**
 * What the new directory takes over from the old one: backups, so that who deletes the old one does not delete them with it;
 * and certificates, which are the machine's and of which an authority gives only a few a week.
 */
function carriedNames(dataDir: string): string[] {
  const { backups, unsentBackups, certificates } = paths(dataDir);
  return [backups, unsentBackups, certificates].map((path) => basename(path));
}

export interface Restored {
  dataDir: string;
  manifest: Manifest;
  /** What was there before, null when there was nothing. */
  previous: string | null;
}

/**
 * Restores a backup; until the last step nothing in the data directory changes.
 *
 * @param file    a path, `s3://bucket/key`, or an opened source.
 * @throws {TargetNotEmpty} @throws {DirectoryInUse} @throws {BackupDamaged} @throws {BackupFromNewerVersion}
 * @throws {NotEnoughSpace} @throws {BackupNotFound}
 */
export async function restoreBackup(
  file: string | BackupSource,
  dataDir: string,
  options: RestoreOptions = {},
): Promise<Restored> {
  const target = existsSync(dataDir) ? realpathSync(dataDir) : resolve(dataDir);
  const source = typeof file === "string" ? await openSource(file) : file;
  const held = await lockOf(target);
  try {
    requireEmpty(target, options);
    const plan = planSwap(target, new Date());
    await removeLeftovers(plan);
    return await restoreWith(plan, source, held !== undefined, options);
  } finally {
    held?.release();
  }
}

async function restoreWith(
  plan: SwapPlan,
  source: BackupSource,
  isLocked: boolean,
  { onProgress, spaceOf, beforeSwap, ...options }: RestoreOptions,
): Promise<Restored> {
  const { target, staging } = plan;
  await mkdir(dirname(staging), { recursive: true, mode: 0o700 });
  await mkdir(staging, { mode: 0o700 });
  // So that nobody takes it for a leftover, nor starts on it between the swap and the end.
  const lock = takeLock(paths(staging).lock, target);
  const stop = onInterrupt(() => rmSync(staging, { recursive: true, force: true }));
  try {
    setNativeFolder(paths(staging).native);
    let [done, total] = [0, 0];
    const manifest = await unpackFrom(
      source,
      options.keys ?? BackupKeys.none,
      staging,
      async (manifest) => {
        requireKnownSchemas(manifest);
        total = unpackedBytes(manifest);
        await requireSpace(staging, total * 1.1, spaceOf);
      },
      {
        onBytes: (bytes) => {
          done += bytes;
          onProgress?.(done, total);
        },
      },
    );
    await openRestored(staging, manifest, false);
    await beforeSwap?.(staging, manifest);
    noteRestore(staging, target, {
      backup_created_at: manifest.created_at,
      restored_at: new Date().toISOString(),
    });
    // What the data directory holds now is covered by the backup that it was made of.
    await noteBackup(staging, {
      ...{ file: source.name, destination: dirname(source.name), bytes: source.bytes },
      ...{ created_at: manifest.created_at, verified_at: new Date().toISOString() },
      positions: manifest.positions,
    });
    await chmod(staging, 0o700);
    // Somebody may have begun something there in the meantime.
    if (!isLocked) (await lockOf(target))?.release();
    requireEmpty(target, options);
    stop();
    const previous = await swap(plan, carriedNames(plan.target));
    return { dataDir: target, manifest, previous };
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  } finally {
    stop();
    lock.release();
  }
}

/** Takes the lock of the directory, when there is something in it. @throws {DirectoryInUse} */
async function lockOf(target: string): Promise<Lock | undefined> {
  const place = paths(target);
  if (existsSync(place.lock)) return await takeStoresLock(place, target);
  return existsSync(target) ? takeFolderLock(target) : undefined;
}

/** @throws {TargetNotEmpty} */
function requireEmpty(target: string, { force }: RestoreOptions): void {
  if (!force && entriesOf(target).length > 0) throw new TargetNotEmpty(target);
}
