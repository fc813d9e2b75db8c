import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { formatGaps } from "../../src/backup/recovery/range.ts";
import { type SalvageResult, salvageEntries } from "../../src/backup/recovery/salvage.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { getS3Settings } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { getEntries } from "../../src/backup/swap.ts";
import { AppError } from "../../src/lib/errors.ts";
import { NonNegativeInt, nullable, strictObject } from "../../src/lib/schema.ts";
import { shellWord } from "../../src/lib/terminal-text.ts";
import { acquireStoresLock } from "../../src/lock.ts";
import { paths } from "../../src/paths.ts";
import { fileName, print, printJson, run } from "../output.ts";
import { configFromOptions } from "../settings.ts";
import { backupCommand, getKeys, sourceSettings, withProgress } from "./backup-common.ts";

const RestoredBackup = strictObject({
  data_dir: Type.String(),
  /** Location of the replaced data directory. */
  previous: nullable(Type.String()),
  file: Type.String(),
  created_at: Type.String(),
  /** Flagkeep version that created the backup. */
  version: Type.String(),
  events: NonNegativeInt,
  positions: manifestMembers.positions,
  projects: manifestMembers.projects,
  /** Result of `--replay`. */
  replayed: nullable(
    strictObject({
      from: Type.String(),
      /** Journal entries that the next start applies. */
      entries: NonNegativeInt,
      /** Origin of the restored flags, keys and projects. */
      metadata: Type.Union([Type.Literal("old"), Type.Literal("backup")]),
      /** Entries of projects unknown to the backup; they are in the quarantine. */
      put_aside: NonNegativeInt,
      lost: Type.Array(
        strictObject({ lane: Type.String(), first_seq: NonNegativeInt, last_seq: NonNegativeInt }),
      ),
    }),
  ),
});

interface RestoreOptions {
  json?: true;
  force?: true;
  replay?: string | true;
  acceptLoss?: true;
}

/** `--replay` was given without a directory, and there is no old one. */
class NothingToReplayError extends AppError {
  readonly code = "nothing_to_replay";
  override readonly hint = "Name the old data directory: --replay OLD_DATA_DIR.";
}

export const restore = backupCommand(new Command("restore"), sourceSettings, RestoredBackup)
  .description("Restore a backup into a data directory.")
  .argument("<backup>", "file or s3://bucket/key", fileName)
  .option("--force", "replace a directory that is not empty; the old one is kept under another name")
  .option(
    "--replay [old-data-dir]",
    "replay to the last acknowledged event from an old data directory; default: the one --force replaces",
  )
  .option("--accept-loss", "with --replay: continue although some events are lost")
  .addHelpText(
    "after",
    "\nThe backup is extracted and verified next to the data directory first, and then swapped in. A directory\n" +
      "in use by a server is never overwritten. Keys stay valid: SDKs continue to work.\n\n" +
      "With --replay later events are restored from the old directory's journal and archive, and so are\n" +
      "its flags, keys and projects if flagkeep.sqlite is intact there. Otherwise the backup's are kept, and events\n" +
      "of unknown projects are moved to journal/quarantine.\n\n" +
      "Examples:\n  flagkeep backup restore flagkeep-2026-11-21T03-00-00.000Z.tar.zst --data-dir /var/lib/flagkeep\n" +
      "  flagkeep backup restore flagkeep-2026-11-21T03-00-00.000Z.tar.zst --force --replay\n" +
      "  flagkeep backup restore s3://acme-backups/flagkeep/flagkeep-2026-11-21T03-00-00.000Z.tar.zst --force",
  )
  .action(
    run(async (backup: string, options: RestoreOptions) => {
      const config = configFromOptions(options as never);
      const old = oldDirectory(options.replay, config["data-dir"]);
      let carried: SalvageResult | undefined;
      const source = await openSource(backup, getS3Settings(config));
      const keys = await getKeys(config);
      const { dataDir, manifest, previous } = await withProgress(options, (progress) =>
        restoreBackup(source, config["data-dir"], {
          force: options.force,
          keys,
          async beforeSwap(folder, manifest) {
            if (old === undefined) return;
            progress.show("Copying later events", 0, 0);
            carried = await withLock(old, config["data-dir"], () =>
              salvageEntries(old, folder, manifest, options.acceptLoss === true),
            );
          },
          onProgress: (done, total) => progress.show("Unpacking", done, total),
        }),
      );
      const { created_at, versions, positions, projects } = manifest;
      const events = totalEvents(manifest);
      if (options.json) {
        const restored: Static<typeof RestoredBackup> = {
          data_dir: dataDir,
          previous,
          file: source.name,
          created_at,
          version: versions.flagkeep,
          events,
          positions,
          projects,
          replayed: getReplayed(options.replay === true ? previous : (old ?? null), carried),
        };
        printJson(restored);
        return;
      }
      if (carried === undefined) print(`Restored ${dataDir} to its state of ${created_at}.`);
      else showCarried(dataDir, created_at, carried);
      if (previous !== null) print(`The previous directory is now ${previous}.`);
      print(`Start it with: flagkeep serve --data-dir ${shellWord(dataDir)}`);
    }),
  );

/** @returns undefined without `--replay`. */
function oldDirectory(replay: string | true | undefined, dataDir: string): string | undefined {
  if (typeof replay === "string") {
    if (existsSync(paths(replay).journal)) return resolve(replay);
    throw new NothingToReplayError(`${replay} has no journal.`);
  }
  if (replay === undefined) return undefined;
  if (getEntries(dataDir).length === 0)
    throw new NothingToReplayError(`${dataDir} contains no data to replay.`);
  return dataDir;
}

/** Keeps other processes from writing to the old directory. @throws {DirectoryInUseError} */
async function withLock<Result>(old: string, dataDir: string, work: () => Promise<Result>): Promise<Result> {
  // The restore itself locks the directory that it replaces.
  const isReplaced = realpathSync(old) === (existsSync(dataDir) ? realpathSync(dataDir) : dataDir);
  const lock = isReplaced ? undefined : await acquireStoresLock(paths(old), old);
  try {
    return await work();
  } finally {
    lock?.release();
  }
}

function getReplayed(
  from: string | null,
  carried: SalvageResult | undefined,
): Static<typeof RestoredBackup>["replayed"] {
  if (from === null || carried === undefined) return null;
  const { entries, metadata, put_aside } = carried;
  const lost = carried.lost.map(({ lane, first, last }) => ({ lane, first_seq: first, last_seq: last }));
  return { from, entries, metadata, put_aside, lost };
}

function showCarried(dataDir: string, createdAt: string, carried: SalvageResult): void {
  const { entries, metadata, reason, put_aside, lost } = carried;
  print(
    `Restored ${dataDir} to its state of ${createdAt}. The next start applies ${entries} later journal entries.`,
  );
  print(
    metadata === "old"
      ? "Flags, keys and projects are those of the old directory."
      : `Flags, keys and projects are the backup's: the old flagkeep.sqlite is ${reason === "newer" ? "of a newer version" : reason}.`,
  );
  if (put_aside > 0) print(`${put_aside} entries of unknown projects are in ${paths(dataDir).quarantine}.`);
  if (lost.length > 0) print(`Lost: ${formatGaps(lost)}.`);
}
