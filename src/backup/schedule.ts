/**
 * Creates backups on a cron schedule. Each runs this executable in a separate process, so that it cannot disturb the
 * server.
 */

import type { Subprocess } from "bun";
import { Cron } from "croner";
import { backupDestination } from "../config/read.ts";
import type { Config, SettingName } from "../config/settings.ts";
import { AppError } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import { assertKeyFile } from "./keys.ts";
import { readLastBackup, recordFailure } from "./last-backup.ts";
import { getS3Settings, s3AccessFrom } from "./s3-access.ts";

/** A scheduled backup waits for a running verification instead of being skipped. */
const waitTimeout = "1h";

export interface ScheduleOptions {
  dataDir: string;
  /** For example `0 3 * * *`. */
  expression: string;
  /** How to start this executable, and the arguments of `backup create` and `backup prune`. */
  create: readonly string[];
  /** Absent: nothing is deleted. */
  prune?: readonly string[];
}

/**
 * Starts the backup schedule.
 *
 * @param executable how to start this executable.
 * @returns undefined without a schedule.
 */
export function startSchedule(
  config: Config,
  executable: readonly string[],
  log: Log,
): BackupSchedule | undefined {
  const expression = config["backup-schedule"];
  if (expression === "") return undefined;
  const hindrance = getObstacle(config);
  if (hindrance !== undefined) log.error({ error: hindrance }, "scheduled backups will fail");
  const common = [backupDestination(config), ...backupArguments(config), "--wait", waitTimeout];
  const rules = (["last", "daily", "weekly"] as const).map(
    (rule) => [`--keep-${rule}`, config[`backup-keep-${rule}`]] as const,
  );
  return new BackupSchedule(
    {
      dataDir: config["data-dir"],
      expression,
      create: [...executable, "backup", "create", ...common, ...creationArguments(config)],
      prune: rules.some(([, count]) => count > 0)
        ? [...executable, "backup", "prune", ...common, ...rules.flat().map(String)]
        : undefined,
    },
    log,
  );
}

/** Known problems, reported before the first backup is due, which may be at night. */
function getObstacle(config: Config): string | undefined {
  try {
    if (backupDestination(config).startsWith("s3://")) s3AccessFrom(getS3Settings(config), process.env);
    assertKeyFile(config["backup-key-file"]);
  } catch (error) {
    if (error instanceof AppError) return [error.message, error.hint].filter(Boolean).join(" ");
    throw error;
  }
}

/** Options of `backup create` alone. */
export function creationArguments(config: Config): string[] {
  const recipients = config["backup-recipients"];
  return [
    "--journal-reserve",
    String(config["journal-reserve"]),
    "--backup-mode",
    config["backup-mode"],
    ...(recipients === "" ? [] : ["--backup-recipients", recipients]),
  ];
}

/** Options of the backup commands for this server. */
export function backupArguments(config: Config): string[] {
  const option = (name: SettingName, value: string) => (value === "" ? [] : [`--${name}`, value]);
  return [
    "--json",
    ...option("data-dir", config["data-dir"]),
    ...option("backup-s3-endpoint", config["backup-s3-endpoint"]),
    ...option("backup-s3-region", config["backup-s3-region"]),
    ...option("backup-s3-credentials-file", config["backup-s3-credentials-file"]),
    ...option("backup-key-file", config["backup-key-file"]),
  ];
}

type Child = Subprocess<"ignore", "pipe", "pipe">;

class BackupSchedule {
  private readonly cron: Cron;
  private child: Child | undefined;
  private running: Promise<void> = Promise.resolve();
  private isStopped = false;

  constructor(
    private readonly options: ScheduleOptions,
    private readonly log: Log,
  ) {
    // Missed and overlapping runs are skipped.
    this.cron = new Cron(options.expression, { protect: true, unref: true }, () => {
      this.running = this.run();
      return this.running;
    });
  }

  /** Ends a running backup; the next one removes its leftovers. */
  async stop(): Promise<void> {
    this.isStopped = true;
    this.cron.stop();
    this.child?.kill("SIGTERM");
    await this.running;
  }

  private async run(): Promise<void> {
    const startedAt = new Date();
    const created = await this.start(this.options.create);
    if (this.isStopped) return;
    if (created.code !== 0) {
      this.log.error({ error: created.error }, "failed to create scheduled backup");
      await this.recordResult(startedAt, created.error);
      return;
    }
    const { file, bytes, events } = JSON.parse(created.output) as Record<string, unknown>;
    const ms = Math.round(Date.now() - startedAt.getTime());
    this.log.info({ file, bytes, events, ms }, "created scheduled backup");
    if (this.options.prune === undefined) return;
    const pruned = await this.start(this.options.prune);
    if (this.isStopped) return;
    if (pruned.code !== 0) {
      this.log.error({ error: pruned.error }, "failed to delete old backups");
      return;
    }
    const { removed } = JSON.parse(pruned.output) as { removed: { file: string }[] };
    if (removed.length > 0) {
      this.log.info({ files: removed.map((backup) => backup.file) }, "deleted old backups");
    }
  }

  /** Records the failure of a backup process that ended without recording it. */
  private async recordResult(startedAt: Date, error: string): Promise<void> {
    const { dataDir } = this.options;
    const known = readLastBackup(dataDir)?.failed_at ?? "";
    if (known < startedAt.toISOString())
      await recordFailure(dataDir, startedAt, error || "The process exited without output.");
  }

  private async start(command: readonly string[]) {
    const child = Bun.spawn([...command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: process.env,
    });
    this.child = child;
    const [output, error, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    this.child = undefined;
    return { output, error: error.trim().replace(/^flagkeep: /, ""), code };
  }
}
