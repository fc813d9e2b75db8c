/** Verifies a backup like a restore: unpacks it into a temporary folder and checks all hashes, stores and counts. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { deleteIncrementally } from "../lib/remove-files.ts";
import { assertDiskSpace, type FreeSpace } from "./disk-space.ts";
import { BackupKeys } from "./keys.ts";
import { type Manifest, unpackedBytes } from "./manifest.ts";
import { unpackFrom } from "./read-file.ts";
import { assertKnownSchemas } from "./schema-versions.ts";
import type { BackupSource } from "./source.ts";
import { openRestored } from "./verify-restored.ts";

export interface VerifyOptions {
  /** Parent of the temporary folder; DuckDB's library must be set up. */
  workFolder: string;
  /** Decrypt the backup; absent: it is not encrypted. */
  keys?: BackupKeys;
  onProgress?: (done: number, total: number) => void;
  getFreeSpace?: FreeSpace;
}

/**
 * @returns the manifest of a restorable backup.
 * @throws {BackupCorruptError} @throws {BackupFromNewerVersionError} @throws {DiskSpaceError}
 */
export async function verifyBackup(source: BackupSource, options: VerifyOptions): Promise<Manifest> {
  const { workFolder, onProgress, getFreeSpace: getSpace } = options;
  const folder = join(workFolder, `verify-${crypto.randomUUID()}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    let done = 0;
    let total = 0;
    const manifest = await unpackFrom(
      source,
      options.keys ?? BackupKeys.none,
      folder,
      async (manifest) => {
        assertKnownSchemas(manifest);
        total = unpackedBytes(manifest);
        await assertDiskSpace(workFolder, total * 1.1, getSpace);
      },
      {
        isTemporary: true,
        onBytes: (bytes) => {
          done += bytes;
          onProgress?.(done, total);
        },
      },
    );
    await openRestored(folder, manifest, true);
    return manifest;
  } finally {
    await deleteIncrementally(folder);
  }
}
