/** Checks a backup as a restore would: unpacked into a temporary folder, every hash, both databases, all counts. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { removeSparingly } from "../lib/remove-files.ts";
import { BackupKeys } from "./keys.ts";
import { type Manifest, unpackedBytes } from "./manifest.ts";
import { openRestored } from "./open-restored.ts";
import { unpackFrom } from "./read-file.ts";
import { requireKnownSchemas } from "./schema-versions.ts";
import type { BackupSource } from "./source.ts";
import { requireSpace, type SpaceOf } from "./space.ts";

export interface VerifyOptions {
  /** Takes the temporary folder; DuckDB's library must be set up. */
  workFolder: string;
  /** What it is decrypted with; absent: it is not encrypted. */
  keys?: BackupKeys;
  onProgress?: (done: number, total: number) => void;
  spaceOf?: SpaceOf;
}

/**
 * @returns the manifest of a backup that can be restored.
 * @throws {BackupDamaged} @throws {BackupFromNewerVersion} @throws {NotEnoughSpace}
 */
export async function verifyBackup(source: BackupSource, options: VerifyOptions): Promise<Manifest> {
  const { workFolder, onProgress, spaceOf } = options;
  const folder = join(workFolder, `verify-${crypto.randomUUID()}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    let [done, total] = [0, 0];
    const manifest = await unpackFrom(
      source,
      options.keys ?? BackupKeys.none,
      folder,
      async (manifest) => {
        requireKnownSchemas(manifest);
        total = unpackedBytes(manifest);
        await requireSpace(workFolder, total * 1.1, spaceOf);
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
    await removeSparingly(folder);
  }
}
