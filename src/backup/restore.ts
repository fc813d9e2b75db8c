/** Restores a backup into a data directory: unpacked next to it, verified, opened, and only then swapped in. */

import { existsSync, realpathSync, rmSync } from "node:fs";
import { chmod, mkdir, rm } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { onInterrupt } from "../lib/cancellation.ts";
import { acquireLock, acquireStoresLock, type Lock, lockFolder } from "../lock.ts";
import { paths } from "../paths.ts";
import { TargetNotEmptyError } from "./errors.ts";
import { BackupKeys } from "./keys.ts";
import { recordBackup, recordRestore } from "./last-backup.ts";
import { type Manifest, unpackedBytes } from "./manifest.ts";
import { unpackFrom } from "./read-file.ts";
import { assertKnownSchemas } from "./schema-versions.ts";
import { type BackupSource, openSource } from "./source.ts";
import { getEntries, planSwap, removeLeftovers, type SwapPlan, swap } from "./swap.ts";
import { openRestored } from "./verify-restored.ts";
import { assertDiskSpace, type FreeSpace } from "./write-file.ts";

export interface RestoreOptions {
  /** Restores over a non-empty directory, which is kept under another name. */
  force?: boolean;
  /** Decrypt the backup; absent: it is not encrypted. */
  keys?: BackupKeys;
  onProgress?: (done: number, total: number) => void;
  spaceOf?: FreeSpace;
  /** Completes the restored folder before the swap. */
  beforeSwap?: (folder: string, manifest: Manifest) => Promise<void>;
}

/**
 * Entries moved from the old directory to the new one: backups, which would otherwise be deleted with the old
 * directory, and certificates, which belong to the machine and are rate-limited by the authority per week.
 */
function carriedNames(dataDir: string): string[] {
  const { backups, unsentBackups, certificates } = paths(dataDir);
  return [backups, unsentBackups, certificates].map((path) => basename(path));
}

export interface Restored {
  dataDir: string;
  manifest: Manifest;
  /** Path of the previous data; null if the directory was empty. */
  previous: string | null;
}

/**
 * Restores a backup; nothing in the data directory changes before the last step.
 *
 * @param file    a path, `s3://bucket/key`, or an opened source.
 * @throws {TargetNotEmptyError} @throws {DirectoryInUseError} @throws {BackupCorruptError}
 * @throws {BackupFromNewerVersionError}
 * @throws {DiskSpaceError} @throws {BackupNotFoundError}
 */
export async function restoreBackup(
  file: string | BackupSource,
  dataDir: string,
  options: RestoreOptions = {},
): Promise<Restored> {
  const target = existsSync(dataDir) ? realpathSync(dataDir) : resolve(dataDir);
  const source = typeof file === "string" ? await openSource(file) : file;
  const held = await getLock(target);
  try {
    assertEmpty(target, options);
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
  { onProgress, spaceOf: getSpace, beforeSwap, ...options }: RestoreOptions,
): Promise<Restored> {
  const { target, staging } = plan;
  await mkdir(dirname(staging), { recursive: true, mode: 0o700 });
  await mkdir(staging, { mode: 0o700 });
  // Prevents a cleanup, and a server start between the swap and the end.
  const lock = acquireLock(paths(staging).lock, target);
  const stop = onInterrupt(() => rmSync(staging, { recursive: true, force: true }));
  try {
    setNativeFolder(paths(staging).native);
    let done = 0;
    let total = 0;
    const manifest = await unpackFrom(
      source,
      options.keys ?? BackupKeys.none,
      staging,
      async (manifest) => {
        assertKnownSchemas(manifest);
        total = unpackedBytes(manifest);
        await assertDiskSpace(staging, total * 1.1, getSpace);
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
    recordRestore(staging, target, {
      backup_created_at: manifest.created_at,
      restored_at: new Date().toISOString(),
    });
    // The restored backup covers the data directory's new contents.
    await recordBackup(staging, {
      file: source.name,
      destination: dirname(source.name),
      bytes: source.bytes,
      created_at: manifest.created_at,
      verified_at: new Date().toISOString(),
      positions: manifest.positions,
    });
    await chmod(staging, 0o700);
    // Another process may have created files there meanwhile.
    if (!isLocked) (await getLock(target))?.release();
    assertEmpty(target, options);
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

/** Acquires the lock of a non-empty directory. @throws {DirectoryInUseError} */
async function getLock(target: string): Promise<Lock | undefined> {
  const dataPaths = paths(target);
  if (existsSync(dataPaths.lock)) return await acquireStoresLock(dataPaths, target);
  return existsSync(target) ? lockFolder(target) : undefined;
}

/** @throws {TargetNotEmptyError} */
function assertEmpty(target: string, { force }: RestoreOptions): void {
  if (!force && getEntries(target).length > 0) throw new TargetNotEmptyError(target);
}
