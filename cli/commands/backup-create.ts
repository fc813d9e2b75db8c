import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { type BackupStep, createBackup } from "../../src/backup/create.ts";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { assertLocalBackups } from "../../src/serve/local-data.ts";
import { withServer } from "../operations/server.ts";
import { fileName, formatBytes, print, printJson, run } from "../output.ts";
import { configFromOptions } from "../settings.ts";
import { assertInitialized } from "../stores.ts";
import {
  backupCommand,
  chosenDestination,
  destinationSettings,
  getKeys,
  progressLines,
  waitOption,
  withProgress,
} from "./backup-common.ts";
import { getBackupServer, runBackupJob } from "./backup-remote.ts";

const steps: Record<BackupStep, string> = {
  snapshot: "Copying the stores",
  pack: "Packing",
  verify: "Verifying",
  send: "Uploading to the destination",
};

const CreatedBackup = strictObject({
  file: Type.String(),
  bytes: NonNegativeInt,
  /** Uploaded bytes; an incremental backup reuses the rest. */
  sent_bytes: NonNegativeInt,
  /** Chunks of earlier incremental backups that were corrupt at the destination and uploaded again. */
  mended_pieces: NonNegativeInt,
  encrypted: Type.Boolean(),
  sha256: manifestMembers.parts.items.properties.sha256,
  created_at: Type.String(),
  verified_at: Type.String(),
  destination: Type.String(),
  events: NonNegativeInt,
  positions: manifestMembers.positions,
  projects: manifestMembers.projects,
});
type CreatedBackup = Static<typeof CreatedBackup>;

interface CreateOptions {
  json?: true;
  progressLines?: true;
  wait: number;
}

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
    "\nThe backup contains every event acknowledged before the call, also while events arrive. The file is\n" +
      "verified before it gets its final name. It contains secrets, for example project keys: protect it like the data, or\n" +
      "encrypt it: with --backup-recipients age1…, or --backup-key-file with a passphrase or age keys. `age -d` reads it too.\n\n" +
      "With --backup-mode incremental only data that is missing at the destination is uploaded, as chunks that backups\n" +
      "share; each backup can be restored alone, and removing one keeps the chunks of the others.\n\n" +
      "Credentials for S3 are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID and\n" +
      "FLAGKEEP_BACKUP_S3_SECRET_ACCESS_KEY) in the environment, or a file.\n\n" +
      "With --url, the server creates the backup with its own settings; the key must be that of an operator.\n\n" +
      "Examples:\n  flagkeep backup create\n  flagkeep backup create /mnt/backups --json\n" +
      "  flagkeep backup create s3://acme-backups/flagkeep --backup-s3-endpoint https://s3.example.com",
  )
  .action(
    run(async (dest: string | undefined, options: CreateOptions, command: Command) => {
      const server = getBackupServer(command, dest);
      const created =
        server === undefined
          ? await createHere(dest, options)
          : await runBackupJob<CreatedBackup>(server, "/backups", options);
      if (options.json) return printJson(created);
      const { bytes, sent_bytes, mended_pieces } = created;
      print(`Backup    ${created.file}`);
      const sent = sent_bytes < bytes ? `, ${formatBytes(sent_bytes)} of it new` : "";
      print(`Size      ${formatBytes(bytes)}, verified${created.encrypted ? ", encrypted" : ""}${sent}`);
      if (mended_pieces > 0)
        print(`Repaired  corrupt chunks of earlier backups, uploaded again: ${mended_pieces}`);
      print(`SHA-256   ${created.sha256}`);
      print(`Events    ${created.events} loaded${waiting(created.positions)}`);
    }),
  );
withServer(create);

async function createHere(dest: string | undefined, options: CreateOptions): Promise<CreatedBackup> {
  const config = configFromOptions(options as never);
  const dataDir = assertInitialized(config["data-dir"]);
  assertLocalBackups(dataDir);
  const keys = await getKeys(config);
  const backup = await withProgress(options, (progress) =>
    createBackup({
      dataDir,
      reserveBytes: config["journal-reserve"],
      keys,
      waitMs: options.wait,
      isIncremental: config["backup-mode"] === "incremental",
      openDestination: () => chosenDestination(dest, options),
      onProgress: (step, done, total) => progress.show(steps[step], done, total),
    }),
  );
  const { file, destination, bytes, sentBytes, repairedChunks, sha256, verifiedAt, manifest } = backup;
  const { created_at, positions, projects } = manifest;
  return {
    file,
    bytes,
    sha256,
    created_at,
    verified_at: verifiedAt,
    sent_bytes: sentBytes,
    mended_pieces: repairedChunks,
    encrypted: keys.encrypts,
    destination,
    events: totalEvents(manifest),
    positions,
    projects,
  };
}

function waiting(positions: readonly { loaded_seq: number; last_seq: number }[]): string {
  const entries = positions.reduce((sum, { loaded_seq, last_seq }) => sum + last_seq - loaded_seq, 0);
  return entries === 0 ? "" : `, and ${entries} journal entries to load after a restore`;
}
