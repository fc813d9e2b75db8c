import { existsSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import { readLastBackup } from "../../src/backup/last-backup.ts";
import { ListedBackup, pruneBackups } from "../../src/backup/list.ts";
import { withBackupLock } from "../../src/backup/work-folder.ts";
import { strictObject } from "../../src/lib/schema.ts";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import { paths } from "../../src/paths.ts";
import { fileName, formatBytes, print, printJson, run } from "../output.ts";
import { getDataDir } from "../settings.ts";
import { backupCommand, chosenDestination, destinationSettings, waitOption } from "./backup-common.ts";

interface PruneOptions {
  keepLast?: number;
  keepDaily?: number;
  keepWeekly?: number;
  dryRun?: true;
  json?: true;
  wait: number;
}

const { file, created_at, bytes, verified } = ListedBackup.properties;
const BriefBackup = strictObject({ file, created_at, bytes, verified });
const PrunedBackups = strictObject({
  removed: Type.Array(BriefBackup),
  kept: Type.Array(BriefBackup),
  dry_run: Type.Boolean(),
});

export const prune = backupCommand(new Command("prune"), destinationSettings, PrunedBackups)
  .description("Delete old backups; a backup that any rule keeps, and the newest one, are kept.")
  .argument("[dest]", "folder or s3://bucket/prefix; default: the setting backup-destination", fileName)
  .option("--keep-last <n>", "number of most recent backups to keep", count)
  .option("--keep-daily <n>", "number of daily backups to keep (UTC)", count)
  .option("--keep-weekly <n>", "number of weekly backups to keep (UTC)", count)
  .option("--dry-run", "print what would be deleted, delete nothing")
  .addOption(waitOption)
  .addHelpText(
    "after",
    "\nBackups that `flagkeep backup list` shows as not verified are neither counted nor deleted, nor are those that a\n" +
      "wrong clock dated in the future; the last one created remains, whatever its date. Encrypted backups can only be\n" +
      "checked with their key: `flagkeep backup verify` does.\n\n" +
      "Examples:\n  flagkeep backup prune --keep-last 3 --keep-daily 7 --keep-weekly 4 --dry-run\n" +
      "  flagkeep backup prune s3://acme-backups/flagkeep --keep-daily 30",
  )
  .action(
    run(async (dest: string | undefined, options: PruneOptions) => {
      const { keepLast = 0, keepDaily = 0, keepWeekly = 0, dryRun = false, wait } = options;
      if (keepLast + keepDaily + keepWeekly === 0) {
        throw new InvalidSettingError(
          "Backups to keep are not specified: use --keep-last, --keep-daily or --keep-weekly with a number above 0.",
        );
      }
      const rules = { last: keepLast, daily: keepDaily, weekly: keepWeekly };
      const dataDir = getDataDir(options as never);
      const prune = () =>
        pruneBackups(chosenDestination(dest, options), {
          rules,
          isDryRun: dryRun,
          lastFile: readLastBackup(dataDir)?.file ?? null,
        });
      // A backup in progress here relies on existing chunks.
      const isOwn = !dryRun && existsSync(paths(dataDir).metadata);
      const { removed, kept } = await (isOwn ? withBackupLock(dataDir, prune, wait) : prune());
      if (options.json) {
        printJson({ removed: removed.map(brief), kept: kept.map(brief), dry_run: dryRun });
        return;
      }
      for (const { file, bytes } of removed)
        print(`${dryRun ? "would delete" : "deleted"}  ${file}  ${formatBytes(bytes)}`);
      print(`Backups deleted: ${removed.length}${dryRun ? " (dry run)" : ""}, kept: ${kept.length}.`);
    }),
  );

function brief({ file, created_at, bytes, verified }: ListedBackup): Static<typeof BriefBackup> {
  return { file, created_at, bytes, verified };
}

function count(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("Expected an integer.");
  return Number(text);
}
