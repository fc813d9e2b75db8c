import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { listBackups } from "../../src/backup/list.ts";
import { manifestMembers } from "../../src/backup/manifest.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { s3SettingsOf } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { AppError } from "../../src/lib/errors.ts";
import { Count, exactly, orNull } from "../../src/lib/schema.ts";
import { isKeptOutside } from "../../src/operate/doctor/clickhouse.ts";
import { fileName, print, printJson, run } from "../output.ts";
import { withAppliance } from "../reach.ts";
import { engineCommand } from "../roles.ts";
import { configOf } from "../settings.ts";
import {
  backupCommand,
  chosenDestination,
  destinationSettings,
  keysOf,
  printProjects,
  withProgress,
} from "./backup-common.ts";

/** There is nothing to practise with. */
class NoBackup extends AppError {
  readonly code = "no_backup";
  override readonly hint = "Make one with `flagkeep backup create`.";
}

/** What came back is not what was there. */
class DrillFailed extends AppError {
  readonly code = "drill_failed";
  override readonly hint = "Do not rely on this backup: make another one now, and look at the disk.";
}

const Drill = exactly({
  file: Type.String(),
  ok: Type.Literal(true),
  created_at: Type.String(),
  /** To unpack, check and open it. */
  restore_seconds: Type.Number({ minimum: 0 }),
  /** To start on it and load what was in its journal; null: it was not started, because its events are in ClickHouse. */
  start_seconds: orNull(Type.Number({ minimum: 0 })),
  /** As they are after the start, events of the journal included; null where it was not started. */
  events: orNull(Count),
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
      const config = configOf(options as never);
      const source = await openSource(backup ?? (await newest(options)), s3SettingsOf(config));
      const keys = await keysOf(config);
      const folder = mkdtempSync(join(resolve(options.workDir ?? tmpdir()), "flagkeep-drill-"));
      const home = process.cwd();
      try {
        const began = performance.now();
        const { manifest, dataDir } = await withProgress(options, (progress) =>
          restoreBackup(source, join(folder, "data"), {
            keys,
            onProgress: (done, total) => progress.show("Unpacking", done, total),
          }),
        );
        const restored = performance.now();
        const seqs = Object.fromEntries(manifest.positions.map(({ lane, last_seq }) => [lane, last_seq]));
        // Events that are in ClickHouse are not in the backup, and those are not asked.
        const counts = isKeptOutside(dataDir)
          ? undefined
          : await withAppliance(
              {
                config: {
                  ...config,
                  "data-dir": dataDir,
                  // It is compared with what was there, so nothing may go.
                  "events-retention": { days: null, byProject: new Map() },
                },
                ...{ engineCommand: engineCommand(), patienceMs, mayStartAgain: false },
              },
              async (appliance) => {
                await appliance.waitUntilLoaded(seqs);
                const found = new Map<number, number>();
                for (const { project_id } of manifest.projects) {
                  const sql = "SELECT count(*)::DOUBLE AS n FROM events";
                  const { rows } = await appliance.ask("query", { projectId: project_id, sql, limit: 1 });
                  found.set(project_id, Number(rows[0]!.n));
                }
                return found;
              },
            );
        const projects = manifest.projects.map((project) => {
          if (counts === undefined) return project;
          const events = counts.get(project.project_id) ?? 0;
          // The journal behind the event store may have more.
          if (events >= project.events) return { ...project, events };
          const lost = `project ${project.project_id} has ${events} events instead of ${project.events}`;
          throw new DrillFailed(`After the restore ${lost}.`);
        });
        const done: Static<typeof Drill> = {
          ...{ file: source.name, ok: true, created_at: manifest.created_at, projects },
          restore_seconds: secondsBetween(began, restored),
          start_seconds: counts === undefined ? null : secondsBetween(restored, performance.now()),
          events: counts === undefined ? null : projects.reduce((sum, { events }) => sum + events, 0),
        };
        if (options.json) return printJson(done);
        print(
          done.start_seconds === null
            ? `${done.file} can be restored in ${done.restore_seconds} s; it was not started, because its events are in ClickHouse.`
            : `${done.file} can be restored: in ${done.restore_seconds} s, and ${done.start_seconds} s to start.`,
        );
        print(`Taken ${done.created_at}.\n`);
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
  if (first === undefined) throw new NoBackup("There is no sound backup.");
  return first.file;
}

const secondsBetween = (from: number, to: number): number => Math.round((to - from) / 10) / 100;
