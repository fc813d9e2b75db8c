/** Settings, destinations and progress that the backup commands share. */

import type { TSchema } from "@sinclair/typebox";
import { type Command, Option } from "commander";
import { type Destination, getDestination } from "../../src/backup/destination.ts";
import { BackupKeys } from "../../src/backup/keys.ts";
import type { Manifest } from "../../src/backup/manifest.ts";
import { getS3Settings } from "../../src/backup/s3-access.ts";
import { backupDestination } from "../../src/config/read.ts";
import type { Config, SettingName } from "../../src/config/settings.ts";
import { formatBytes, parseDuration, printTable, withJson } from "../output.ts";
import { TerminalBar } from "../progress.ts";
import { configFromOptions, withSettings } from "../settings.ts";

const s3Settings = [
  "backup-s3-endpoint",
  "backup-s3-region",
  "backup-s3-credentials-file",
  "backup-key-file",
] as const satisfies SettingName[];

/** For commands that read one backup. */
export const sourceSettings: SettingName[] = ["data-dir", ...s3Settings];
/** For commands that work on a destination. */
export const destinationSettings: SettingName[] = ["data-dir", "backup-destination", ...s3Settings];

/** @param shape schema of the `--json` output. */
export function backupCommand(command: Command, names: readonly SettingName[], shape: TSchema): Command {
  return withJson(withSettings(command, names), shape);
}

/** For the console, which runs the command as a subprocess and reads its progress. */
export const progressLines = new Option("--progress-lines").hideHelp();

/** How long to wait for another command that works on the backups of the same directory. */
export const waitOption = new Option(
  "--wait <time>",
  "time to wait for another backup operation, for example 30m",
)
  .argParser((text: string) => parseDuration(text) * 1_000)
  .default(0, "0");

/** Encryption keys of backups. @throws {InvalidBackupKeyError} */
export async function getKeys(config: Config): Promise<BackupKeys> {
  const settings = { recipients: config["backup-recipients"], keyFile: config["backup-key-file"] };
  return await BackupKeys.from(settings, process.env);
}

/** The given destination, or the configured one. */
export function chosenDestination(named: string | undefined, options: object): Destination {
  const config = configFromOptions(options as Record<string, unknown>);
  return getDestination(named ?? backupDestination(config), getS3Settings(config));
}

/** Interval of progress lines without a terminal. */
const lineIntervalMs = 10_000;

type ProgressKind = "shown" | "quiet" | "lines";

/** Progress on standard error: a bar on a terminal, plain lines elsewhere. */
class StepProgress {
  private step = "";
  private shownAt = 0;
  private readonly bar = new TerminalBar();

  /**
   * @param kind a program reads the result, so progress is shown only on a terminal; or a program reads each step as
   *   JSON.
   */
  constructor(private readonly kind: ProgressKind) {}

  show(step: string, done: number, total: number): void {
    if (this.kind === "lines") {
      this.line(step, done, total);
      return;
    }
    if (process.stderr.isTTY === true) {
      this.bar.show(step, done, total > 1 ? total : 0, "bytes");
      return;
    }
    if (this.kind === "quiet") return;
    const now = performance.now();
    if (step === this.step && now - this.shownAt < lineIntervalMs) return;
    const isNew = step !== this.step;
    this.step = step;
    this.shownAt = now;
    const text = total > 1 && !isNew ? `${step} (${formatBytes(done)} of ${formatBytes(total)})` : step;
    process.stderr.write(`${text}\n`);
  }

  private line(step: string, done: number, total: number): void {
    const now = performance.now();
    if (step === this.step && now - this.shownAt < 200) return;
    this.step = step;
    this.shownAt = now;
    process.stderr.write(`${JSON.stringify({ step, done, total })}\n`);
  }

  /** Clears the progress line. */
  end(): void {
    this.bar.end();
  }
}

/** Runs the work and clears its progress in any case. */
export async function withProgress<Result>(
  options: { json?: true; progressLines?: true },
  work: (progress: StepProgress) => Promise<Result>,
): Promise<Result> {
  const progress = new StepProgress(options.progressLines ? "lines" : options.json ? "quiet" : "shown");
  try {
    return await work(progress);
  } finally {
    progress.end();
  }
}

/** Contents of a backup by project, as a table. */
export function printProjects(projects: Manifest["projects"]): void {
  printTable(
    ["project", "name", "events", "persons", "groups", "flags"],
    projects.map((project) => [
      String(project.project_id),
      project.name,
      ...[project.events, project.persons, project.groups, project.flags].map(String),
    ]),
  );
}
