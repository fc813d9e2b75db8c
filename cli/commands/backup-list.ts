import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { ListedBackup, listBackups } from "../../src/backup/list.ts";
import { fileName, formatBytes, print, printJson, printTable, run } from "../output.ts";
import { backupCommand, chosenDestination, destinationSettings } from "./backup-common.ts";

export const list = backupCommand(new Command("list"), destinationSettings, Type.Array(ListedBackup))
  .description("List the backups of a destination, newest first.")
  .argument("[dest]", "folder or s3://bucket/prefix; default: the setting backup-destination", fileName)
  .addHelpText(
    "after",
    "\nReads only the start and end of each backup; `flagkeep backup verify` reads one completely.\n\n" +
      "Examples:\n  flagkeep backup list\n  flagkeep backup list s3://acme-backups/flagkeep --json",
  )
  .action(
    run(async (dest: string | undefined, options: { json?: true }) => {
      const destination = chosenDestination(dest, options);
      const backups = await listBackups(destination);
      if (options.json) {
        printJson(backups);
        return;
      }
      if (backups.length === 0) {
        print(`${destination.name} contains no backups.`);
        return;
      }
      printTable(
        ["created", "size", "kind", "events", "verified", "file"],
        backups.map((backup) => [
          backup.created_at.slice(0, 19),
          formatBytes(backup.bytes),
          [backup.incremental ? "incremental" : "full", ...(backup.encrypted ? ["encrypted"] : [])].join(
            ", ",
          ),
          backup.events === null ? "?" : String(backup.events),
          backup.verified ? "yes" : "NO",
          backup.file,
        ]),
      );
    }),
  );
