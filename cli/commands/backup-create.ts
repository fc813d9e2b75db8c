import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { type BackupStep, createBackup } from "../../src/backup/create.ts";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { Count, exactly } from "../../src/lib/schema.ts";
import { requireBackedUpHere } from "../../src/serve/own-data.ts";
import { bytesText, fileName, print, printJson, run } from "../output.ts";
import { configOf } from "../settings.ts";
import { requireInitialised } from "../stores.ts";
import {
  backupCommand,
  chosenDestination,
  destinationSettings,
  keysOf,
  progressLines,
  waitOption,
  withProgress,
} from "./backup-common.ts";

const steps: Record<BackupStep, string> = {
  snapshot: "Copying the stores",
  pack: "Packing",
  verify: "Verifying",
  send: "Bringing it to its destination",
};

const CreatedBackup = exactly({
  file: Type.String(),
  bytes: Count,
  /** Brought to the destination; the rest of an incremental backup was there. */
  sent_bytes: Count,
  /** Of earlier incremental backups: damaged at the destination, and brought there again. */
  mended_pieces: Count,
  encrypted: Type.Boolean(),
  sha256: manifestMembers.parts.items.properties.sha256,
  created_at: Type.String(),
  verified_at: Type.String(),
  destination: Type.String(),
  events: Count,
  positions: manifestMembers.positions,
  projects: manifestMembers.projects,
});

export const create = backupCommand(
  new Command("create"),
  [...destinationSettings, "backup-mode", "backup-recipients", "journal-reserve"],
  CreatedBackup,
)
  .description("Create a backup of all stores and the journal.")
  .argument("[dest]", "folder or s3://bucket/prefix; default: the setting backup-destination", fileName)
  .addOption(progressLines)
  .addOption(waitOption)
  .addHelpText(
    "after",
    "\nEvery event that was acknowledged before the call is in the backup, also while events stream in. The file is\n" +
      "verified before it gets its name. It holds secrets, such as the keys of projects: keep it as safe as the data, or\n" +
      "encrypt it: with --backup-recipients age1…, or --backup-key-file with a passphrase or age keys. `age -d` reads it too.\n\n" +
      "With --backup-mode incremental only what is not in the destination yet is brought there, in pieces that the backups\n" +
      "share; each can be restored by itself, and removing one leaves what another needs.\n\n" +
      "Credentials for S3 are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID and\n" +
      "FLAGKEEP_BACKUP_S3_SECRET_ACCESS_KEY) in the environment, or a file.\n\n" +
      "Examples:\n  flagkeep backup create\n  flagkeep backup create /mnt/backups --json\n" +
      "  flagkeep backup create s3://acme-backups/flagkeep --backup-s3-endpoint https://s3.example.com",
  )
  .action(
    run(async (dest: string | undefined, options: { json?: true; progressLines?: true; wait: number }) => {
      const config = configOf(options as never);
      const dataDir = requireInitialised(config["data-dir"]);
      requireBackedUpHere(dataDir);
      const keys = await keysOf(config);
      const backup = await withProgress(options, (progress) =>
        createBackup({
          ...{ dataDir, reserveBytes: config["journal-reserve"], keys, waitMs: options.wait },
          isIncremental: config["backup-mode"] === "incremental",
          openDestination: () => chosenDestination(dest, options),
          onProgress: (step, done, total) => progress.show(steps[step], done, total),
        }),
      );
      const { file, destination, bytes, sentBytes, mendedPieces, sha256, verifiedAt, manifest } = backup;
      const { created_at, positions, projects } = manifest;
      const events = totalEvents(manifest);
      if (options.json) {
        const created: Static<typeof CreatedBackup> = {
          ...{ file, bytes, sha256, created_at, verified_at: verifiedAt },
          ...{ sent_bytes: sentBytes, mended_pieces: mendedPieces, encrypted: keys.encrypts },
          ...{ destination, events, positions, projects },
        };
        printJson(created);
        return;
      }
      print(`Backup    ${file}`);
      const sent = sentBytes < bytes ? `, ${bytesText(sentBytes)} of it new` : "";
      print(`Size      ${bytesText(bytes)}, verified${keys.encrypts ? ", encrypted" : ""}${sent}`);
      if (mendedPieces > 0)
        print(`Mended    damaged pieces of earlier backups, brought there again: ${mendedPieces}`);
      print(`SHA-256   ${sha256}`);
      print(`Events    ${events} loaded${waiting(positions)}`);
    }),
  );

function waiting(positions: readonly { loaded_seq: number; last_seq: number }[]): string {
  const entries = positions.reduce((sum, { loaded_seq, last_seq }) => sum + last_seq - loaded_seq, 0);
  return entries === 0 ? "" : `, and ${entries} journal entries that are loaded after a restore`;
}
