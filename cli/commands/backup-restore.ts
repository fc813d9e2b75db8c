import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { openSource } from "../../src/backup/source.ts";
import { Count, exactly, orNull } from "../../src/shapes.ts";
import { print, printJson, run } from "../output.ts";
import { configOf } from "../settings.ts";
import { backupCommand, s3SettingsOf, sourceSettings, withProgress } from "./backup-common.ts";

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
});

export const restore = backupCommand(new Command("restore"), sourceSettings, RestoredBackup)
  .description("Restore a backup into a data directory.")
  .argument("<backup>", "the file, or s3://bucket/key")
  .option("--force", "also over a directory that is not empty; what is there is kept under another name")
  .addHelpText(
    "after",
    "\nEverything is unpacked and checked beside the data directory first; only then the two change places. A directory\n" +
      "in use by an appliance is never restored over. Keys stay valid: SDKs go on with the same ones.\n\n" +
      "Examples:\n  flagkeep backup restore flagkeep-2026-11-21T03-00-00.000Z.tar.zst --data-dir /var/lib/flagkeep\n" +
      "  flagkeep backup restore s3://acme-backups/flagkeep/flagkeep-2026-11-21T03-00-00.000Z.tar.zst --force",
  )
  .action(
    run(async (backup: string, options: { json?: true; force?: true }) => {
      const config = configOf(options as never);
      const source = await openSource(backup, s3SettingsOf(config));
      const { dataDir, manifest, previous } = await withProgress(options.json === true, (progress) =>
        restoreBackup(source, config["data-dir"], {
          force: options.force,
          onProgress: (done, total) => progress.show("Unpacking", done, total),
        }),
      );
      const { created_at, versions, positions, projects } = manifest;
      const events = totalEvents(manifest);
      if (options.json) {
        const restored: Static<typeof RestoredBackup> = {
          ...{ data_dir: dataDir, previous, file: source.name, created_at },
          ...{ version: versions.flagkeep, events, positions, projects },
        };
        printJson(restored);
        return;
      }
      print(`${dataDir} is as it was ${created_at}.`);
      if (previous !== null) print(`What was there before is in ${previous}.`);
      print(`Start it with: flagkeep serve --data-dir ${dataDir}`);
    }),
  );
