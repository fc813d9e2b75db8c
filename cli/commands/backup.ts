import { existsSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import { verifyBackup } from "../../src/backup/describe.ts";
import { readLastBackup } from "../../src/backup/last-backup.ts";
import { ListedBackup, listBackups, pruneBackups } from "../../src/backup/list.ts";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { getS3Settings } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { withBackupLock, withWorkFolder } from "../../src/backup/work-folder.ts";
import { setNativeFolder } from "../../src/events/duckdb/native-folder.ts";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import { paths } from "../../src/paths.ts";
import { withServer } from "../operations/server.ts";
import { fileName, formatBytes, print, printJson, printTable, run } from "../output.ts";
import { configFromOptions, getDataDir } from "../settings.ts";
import {
  backupCommand,
  chosenDestination,
  destinationSettings,
  getKeys,
  printProjects,
  progressLines,
  sourceSettings,
  waitOption,
  withProgress,
} from "./backup-common.ts";
import { create } from "./backup-create.ts";
import { drill } from "./backup-drill.ts";
import { getBackupServer, listBackupsOnServer, nameOnServer, runBackupJob } from "./backup-remote.ts";
import { restore } from "./backup-restore.ts";

const list = backupCommand(new Command("list"), destinationSettings, Type.Array(ListedBackup))
  .description("List the backups of a destination, newest first.")
  .argument("[dest]", "folder or s3://bucket/prefix; default: the setting backup-destination", fileName)
  .addHelpText(
    "after",
    "\nReads only the start and end of each backup; `flagkeep backup verify` reads one completely.\n" +
      "With --url, lists the backups of the server's destination; the key must be that of an operator.\n\n" +
      "Examples:\n  flagkeep backup list\n  flagkeep backup list s3://acme-backups/flagkeep --json",
  )
  .action(
    run(async (dest: string | undefined, options: { json?: true }, command: Command) => {
      const { destination, backups } = await readList(dest, command);
      if (options.json) {
        printJson(backups);
        return;
      }
      if (backups.length === 0) {
        print(`${destination} contains no backups.`);
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

withServer(list);

async function readList(
  dest: string | undefined,
  command: Command,
): Promise<{ destination: string; backups: ListedBackup[] }> {
  const server = getBackupServer(command, dest);
  if (server === undefined) {
    const destination = chosenDestination(dest, command.opts());
    return { destination: destination.name, backups: await listBackups(destination) };
  }
  const { destination, results } = await listBackupsOnServer(server);
  const backups = results.map(({ name: _name, restore_command: _command, ...backup }) => backup);
  return { destination, backups };
}

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

const prune = backupCommand(new Command("prune"), destinationSettings, PrunedBackups)
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
      const { removed, retained } = await (isOwn ? withBackupLock(dataDir, prune, wait) : prune());
      if (options.json) {
        printJson({ removed: removed.map(toJson), kept: retained.map(toJson), dry_run: dryRun });
        return;
      }
      for (const { file, bytes } of removed)
        print(`${dryRun ? "would delete" : "deleted"}  ${file}  ${formatBytes(bytes)}`);
      print(`Backups deleted: ${removed.length}${dryRun ? " (dry run)" : ""}, kept: ${retained.length}.`);
    }),
  );

function toJson({ file, created_at, bytes, verified }: ListedBackup): Static<typeof BriefBackup> {
  return { file, created_at, bytes, verified };
}

function count(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("Expected an integer.");
  return Number(text);
}

const VerifiedBackup = strictObject({
  file: Type.String(),
  ok: Type.Literal(true),
  bytes: NonNegativeInt,
  created_at: Type.String(),
  /** Flagkeep version that created the backup. */
  version: Type.String(),
  events: NonNegativeInt,
  projects: manifestMembers.projects,
  positions: manifestMembers.positions,
  parts: manifestMembers.parts,
});
type VerifiedBackup = Static<typeof VerifiedBackup>;

interface VerifyOptions {
  json?: true;
  progressLines?: true;
  workDir?: string;
}

const verify = backupCommand(new Command("verify"), sourceSettings, VerifiedBackup)
  .description("Verify a backup: extract it to a temporary folder and open its stores.")
  .argument("<backup>", "file or s3://bucket/key; with --url, its name at the server's destination", fileName)
  .option(
    "--work-dir <path>",
    "parent of the temporary folder; default: the data directory, else /tmp",
    fileName,
  )
  .addOption(progressLines)
  .addHelpText(
    "after",
    "\nCompares all checksums and counts. Exits with 1 and prints the corrupt part if the backup is corrupt.\n\n" +
      "Examples:\n  flagkeep backup verify backups/flagkeep-2026-11-21T03-00-00.000Z.tar.zst\n" +
      "  flagkeep backup verify s3://acme-backups/flagkeep/flagkeep-2026-11-21T03-00-00.000Z.tar.zst",
  )
  .action(
    run(async (backup: string, options: VerifyOptions, command: Command) => {
      const server = getBackupServer(command);
      const verified =
        server === undefined
          ? await verifyHere(backup, options)
          : await runBackupJob<VerifiedBackup>(
              server,
              `/backups/${encodeURIComponent(await nameOnServer(server, backup))}/verify`,
              options,
            );
      if (options.json) return printJson(verified);
      print(`${verified.file} is valid.`);
      print(`Created ${verified.created_at} by Flagkeep ${verified.version}.\n`);
      printProjects(verified.projects);
    }),
  );
withServer(verify);

async function verifyHere(backup: string, options: VerifyOptions): Promise<VerifiedBackup> {
  const config = configFromOptions(options as never);
  const source = await openSource(backup, getS3Settings(config));
  const keys = await getKeys(config);
  const manifest = await withProgress(options, (progress) =>
    withTemporaryFolder(config["data-dir"], options.workDir, (workFolder) =>
      verifyBackup(source, {
        workFolder,
        keys,
        onProgress: (done, total) => progress.show("Unpacking", done, total),
      }),
    ),
  );
  const { created_at, versions, projects, positions, parts } = manifest;
  return {
    file: source.name,
    ok: true,
    bytes: source.bytes,
    created_at,
    version: versions.flagkeep,
    events: totalEvents(manifest),
    positions,
    projects,
    parts,
  };
}

async function withTemporaryFolder<Result>(
  dataDir: string,
  workDir: string | undefined,
  work: (folder: string) => Promise<Result>,
): Promise<Result> {
  const { metadata, native } = paths(dataDir);
  const hasData = existsSync(metadata);
  if (hasData && workDir === undefined) {
    setNativeFolder(native);
    return await withWorkFolder(dataDir, work);
  }
  const folder = mkdtempSync(join(resolve(workDir ?? tmpdir()), "flagkeep-verify-"));
  try {
    setNativeFolder(hasData ? native : join(folder, "native"));
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const backup = new Command("backup")
  .description("Create, verify, restore, list and delete backups.")
  .addHelpText(
    "after",
    "\nA running server creates backups on the schedule of --backup-schedule.\n\n" +
      "Examples:\n  flagkeep backup create\n  flagkeep backup list\n  flagkeep backup drill",
  );
for (const command of [create, verify, drill, restore, list, prune]) backup.addCommand(command);
