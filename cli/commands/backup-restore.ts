import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { type CarriedOver, carryOver } from "../../src/backup/recovery/carry-over.ts";
import { gapsText } from "../../src/backup/recovery/range.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { s3SettingsOf } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { entriesOf } from "../../src/backup/swap.ts";
import { AppError } from "../../src/lib/errors.ts";
import { Count, exactly, orNull } from "../../src/lib/schema.ts";
import { shellWord } from "../../src/lib/shell-text.ts";
import { takeStoresLock } from "../../src/lock.ts";
import { paths } from "../../src/paths.ts";
import { fileName, print, printJson, run } from "../output.ts";
import { configOf } from "../settings.ts";
import { backupCommand, keysOf, sourceSettings, withProgress } from "./backup-common.ts";

const RestoredBackup = exactly({
  data_dir: Type.String(),
  /** Where that is which was there before. */
  previous: orNull(Type.String()),
  file: Type.String(),
  created_at: Type.String(),
  /** Of the Flagkeep that made it. */
  version: Type.String(),
  events: Count,
  positions: manifestMembers.positions,
  projects: manifestMembers.projects,
  /** Of `--replay`. */
  replayed: orNull(
    exactly({
      from: Type.String(),
      /** Journal entries that the next start applies. */
      entries: Count,
      /** Whose flags, keys and projects are in it now. */
      metadata: Type.Union([Type.Literal("old"), Type.Literal("backup")]),
      /** Entries of projects that the backup does not know; they are in the quarantine. */
      put_aside: Count,
      lost: Type.Array(exactly({ lane: Type.String(), first_seq: Count, last_seq: Count })),
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
class NothingToReplay extends AppError {
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
    "\nThe backup is unpacked and verified next to the data directory first, and then swapped in. A directory\n" +
      "in use by an appliance is never restored over. Keys stay valid: SDKs go on with the same ones.\n\n" +
      "With --replay the events that came after the backup are taken from the old directory's journal and archive, and so\n" +
      "are its flags, keys and projects when flagkeep.sqlite is whole there; otherwise those of the backup stay, and events\n" +
      "of projects that it does not know go to journal/quarantine.\n\n" +
      "Examples:\n  flagkeep backup restore flagkeep-2026-11-21T03-00-00.000Z.tar.zst --data-dir /var/lib/flagkeep\n" +
      "  flagkeep backup restore flagkeep-2026-11-21T03-00-00.000Z.tar.zst --force --replay\n" +
      "  flagkeep backup restore s3://acme-backups/flagkeep/flagkeep-2026-11-21T03-00-00.000Z.tar.zst --force",
  )
  .action(
    run(async (backup: string, options: RestoreOptions) => {
      const config = configOf(options as never);
      const old = oldDirectory(options.replay, config["data-dir"]);
      let carried: CarriedOver | undefined;
      const source = await openSource(backup, s3SettingsOf(config));
      const keys = await keysOf(config);
      const { dataDir, manifest, previous } = await withProgress(options, (progress) =>
        restoreBackup(source, config["data-dir"], {
          ...{ force: options.force, keys },
          async beforeSwap(folder, manifest) {
            if (old === undefined) return;
            progress.show("Taking over later events", 0, 0);
            carried = await withLockOf(old, config["data-dir"], () =>
              carryOver(old, folder, manifest, options.acceptLoss === true),
            );
          },
          onProgress: (done, total) => progress.show("Unpacking", done, total),
        }),
      );
      const { created_at, versions, positions, projects } = manifest;
      const events = totalEvents(manifest);
      if (options.json) {
        const restored: Static<typeof RestoredBackup> = {
          ...{ data_dir: dataDir, previous, file: source.name, created_at },
          ...{ version: versions.flagkeep, events, positions, projects },
          replayed: replayedOf(options.replay === true ? previous : (old ?? null), carried),
        };
        printJson(restored);
        return;
      }
      if (carried === undefined) print(`${dataDir} is as it was ${created_at}.`);
      else showCarried(dataDir, created_at, carried);
      if (previous !== null) print(`What was there before is in ${previous}.`);
      print(`Start it with: flagkeep serve --data-dir ${shellWord(dataDir)}`);
    }),
  );

/** @returns undefined without `--replay`. */
function oldDirectory(replay: string | true | undefined, dataDir: string): string | undefined {
  if (typeof replay === "string") {
    if (existsSync(paths(replay).journal)) return resolve(replay);
    throw new NothingToReplay(`${replay} has no journal.`);
  }
  if (replay === undefined) return undefined;
  if (entriesOf(dataDir).length === 0) throw new NothingToReplay(`${dataDir} holds nothing to go on from.`);
  return dataDir;
}

/** Nobody may write to the old directory meanwhile. @throws {DirectoryInUse} */
async function withLockOf<Result>(
  old: string,
  dataDir: string,
  work: () => Promise<Result>,
): Promise<Result> {
  // The restore itself holds the lock of the directory that it replaces.
  const isReplaced = realpathSync(old) === (existsSync(dataDir) ? realpathSync(dataDir) : dataDir);
  const lock = isReplaced ? undefined : await takeStoresLock(paths(old), old);
  try {
    return await work();
  } finally {
    lock?.release();
  }
}

function replayedOf(
  from: string | null,
  carried: CarriedOver | undefined,
): Static<typeof RestoredBackup>["replayed"] {
  if (from === null || carried === undefined) return null;
  const { entries, metadata, put_aside } = carried;
  const lost = carried.lost.map(({ lane, first, last }) => ({ lane, first_seq: first, last_seq: last }));
  return { from, entries, metadata, put_aside, lost };
}

function showCarried(dataDir: string, createdAt: string, carried: CarriedOver): void {
  const { entries, metadata, reason, put_aside, lost } = carried;
  print(
    `${dataDir} is as it was ${createdAt}, and the next start applies ${entries} journal entries after that.`,
  );
  print(
    metadata === "old"
      ? "Flags, keys and projects are those of the old directory."
      : `Flags, keys and projects are the backup's: the old flagkeep.sqlite is ${reason === "newer" ? "of a newer version" : reason}.`,
  );
  if (put_aside > 0) print(`${put_aside} entries of unknown projects are in ${paths(dataDir).quarantine}.`);
  if (lost.length > 0) print(`Lost: ${gapsText(lost)}.`);
}
