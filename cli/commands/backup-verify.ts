import { existsSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { manifestMembers, totalEvents } from "../../src/backup/manifest.ts";
import { getS3Settings } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { verifyBackup } from "../../src/backup/verify.ts";
import { withWorkFolder } from "../../src/backup/work-folder.ts";
import { setNativeFolder } from "../../src/events/duckdb/native-folder.ts";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { paths } from "../../src/paths.ts";
import { fileName, print, printJson, run } from "../output.ts";
import { configFromOptions } from "../settings.ts";
import {
  backupCommand,
  getKeys,
  printProjects,
  progressLines,
  sourceSettings,
  withProgress,
} from "./backup-common.ts";

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

export const verify = backupCommand(new Command("verify"), sourceSettings, VerifiedBackup)
  .description("Verify a backup: extract it to a temporary folder and open its stores.")
  .argument("<backup>", "file or s3://bucket/key", fileName)
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
    run(async (backup: string, options: { json?: true; progressLines?: true; workDir?: string }) => {
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
      const events = totalEvents(manifest);
      const file = source.name;
      if (options.json) {
        const verified: Static<typeof VerifiedBackup> = {
          file,
          ok: true,
          bytes: source.bytes,
          created_at,
          version: versions.flagkeep,
          events,
          positions,
          projects,
          parts,
        };
        printJson(verified);
        return;
      }
      print(`${file} is valid.`);
      print(`Created ${created_at} by Flagkeep ${versions.flagkeep}.\n`);
      printProjects(projects);
    }),
  );

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
