import { Command } from "commander";
import { create } from "./backup-create.ts";
import { drill } from "./backup-drill.ts";
import { list } from "./backup-list.ts";
import { prune } from "./backup-prune.ts";
import { restore } from "./backup-restore.ts";
import { verify } from "./backup-verify.ts";

export const backup = new Command("backup")
  .description("Create, verify, restore, list and delete backups.")
  .addHelpText(
    "after",
    "\nA running server creates backups on the schedule of --backup-schedule.\n\n" +
      "Examples:\n  flagkeep backup create\n  flagkeep backup list\n  flagkeep backup drill",
  );
for (const command of [create, verify, drill, restore, list, prune]) backup.addCommand(command);
