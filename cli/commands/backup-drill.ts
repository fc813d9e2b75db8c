import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { listBackups } from "../../src/backup/list.ts";
import { manifestMembers } from "../../src/backup/manifest.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { getS3Settings } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { AppError } from "../../src/lib/errors.ts";
import { NonNegativeInt, nullable, strictObject } from "../../src/lib/schema.ts";
import { hasExternalStore } from "../../src/operate/doctor/clickhouse.ts";
import { withServer } from "../connection.ts";
import { fileName, print, printJson, run } from "../output.ts";
import { configFromOptions } from "../settings.ts";
import { engineCommand } from "../subprocess.ts";
import {
  backupCommand,
  chosenDestination,
  destinationSettings,
  getKeys,
  printProjects,
  withProgress,
} from "./backup-common.ts";

class NoBackupError extends AppError {
  readonly code = "no_backup";
  override readonly hint = "Create one with `flagkeep backup create`.";
}

/** The restored data differs from the expected data. */
class DrillFailedError extends AppError {
  readonly code = "drill_failed";
  override readonly hint = "Do not rely on this backup: create another one now and check the disk.";
}

const Drill = strictObject({
  file: Type.String(),
  ok: Type.Literal(true),
  created_at: Type.String(),
  /** Time to unpack, check and open. */
  restore_seconds: Type.Number({ minimum: 0 }),
  /** Time to start and load the journal; null: not started, because the events are in ClickHouse. */
  start_seconds: nullable(Type.Number({ minimum: 0 })),
  /** After the start, including events from the journal; null if not started. */
  events: nullable(NonNegativeInt),
  projects: manifestMembers.projects,
});

const patienceMs = 60_000;

export const drill = backupCommand(new Command("drill"), destinationSettings, Drill)
  .description(
    "Run a restore drill: restore the newest backup to a temporary folder, start it and compare counts.",
  )
  .argument("[backup]", "file or s3://bucket/key; default: the newest backup of the destination", fileName)
  .option("--work-dir <path>", "parent of the temporary folder; default: /tmp", fileName)
  .addHelpText(
    "after",
    "\nA running server is not affected, and the folder is deleted. Prints how long a real restore would take.\n\n" +
      "Examples:\n  flagkeep backup drill\n  flagkeep backup drill s3://acme/flagkeep/flagkeep-2026-11-21T03-00-00.000Z.tar.zst",
  )
  .action(
    run(async (backup: string | undefined, options: { json?: true; workDir?: string }) => {
      const config = configFromOptions(options as never);
      const source = await openSource(backup ?? (await newest(options)), getS3Settings(config));
      const keys = await getKeys(config);
      const folder = mkdtempSync(join(resolve(options.workDir ?? tmpdir()), "flagkeep-drill-"));
      const home = process.cwd();
      try {
        const started = performance.now();
        const { manifest, dataDir } = await withProgress(options, (progress) =>
          restoreBackup(source, join(folder, "data"), {
            keys,
            onProgress: (done, total) => progress.show("Unpacking", done, total),
          }),
        );
        const restored = performance.now();
        const seqs = Object.fromEntries(manifest.positions.map(({ lane, last_seq }) => [lane, last_seq]));
        // Events in ClickHouse are not part of the backup, so they are not counted.
        const counts = hasExternalStore(dataDir)
          ? undefined
          : await withServer(
              {
                config: {
                  ...config,
                  "data-dir": dataDir,
                  // Retention is off: the result is compared with the backup, so nothing may be deleted.
                  "events-retention": { days: null, byProject: new Map() },
                },
                engineCommand: engineCommand(),
                patienceMs,
                mayStartAgain: false,
              },
              async (server) => {
                await server.waitUntilLoaded(seqs);
                const found = new Map<number, number>();
                for (const { project_id } of manifest.projects) {
                  const sql = "SELECT count(*)::DOUBLE AS n FROM events";
                  const { rows } = await server.ask("query", { projectId: project_id, sql, limit: 1 });
                  found.set(project_id, Number(rows[0]!.n));
                }
                return found;
              },
            );
        const projects = manifest.projects.map((project) => {
          if (counts === undefined) return project;
          const events = counts.get(project.project_id) ?? 0;
          // The restored journal may contain more events than the event store had.
          if (events >= project.events) return { ...project, events };
          const lost = `project ${project.project_id} has ${events} events instead of ${project.events}`;
          throw new DrillFailedError(`After the restore ${lost}.`);
        });
        const done: Static<typeof Drill> = {
          file: source.name,
          ok: true,
          created_at: manifest.created_at,
          projects,
          restore_seconds: secondsBetween(started, restored),
          start_seconds: counts === undefined ? null : secondsBetween(restored, performance.now()),
          events: counts === undefined ? null : projects.reduce((sum, { events }) => sum + events, 0),
        };
        if (options.json) return printJson(done);
        print(
          done.start_seconds === null
            ? `${done.file} can be restored in ${done.restore_seconds} s; it was not started, because its events are in ClickHouse.`
            : `${done.file} can be restored: in ${done.restore_seconds} s, and ${done.start_seconds} s to start.`,
        );
        print(`Created ${done.created_at}.\n`);
        printProjects(projects);
      } finally {
        process.chdir(existsSync(home) ? home : "/");
        rmSync(folder, { recursive: true, force: true });
      }
    }),
  );

async function newest(options: object): Promise<string> {
  const destination = chosenDestination(undefined, options);
  const [first] = (await listBackups(destination)).filter(({ verified }) => verified);
  if (first === undefined) throw new NoBackupError("The destination contains no valid backup.");
  return first.file;
}

const secondsBetween = (from: number, to: number): number => Math.round((to - from) / 10) / 100;
