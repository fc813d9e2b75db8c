/** What the commands about backups share: settings, destinations, progress. */

import type { TSchema } from "@sinclair/typebox";
import { type Command, Option } from "commander";
import { type Destination, destinationOf } from "../../src/backup/destination.ts";
import { BackupKeys } from "../../src/backup/keys.ts";
import type { Manifest } from "../../src/backup/manifest.ts";
import { s3SettingsOf } from "../../src/backup/s3-access.ts";
import { backupDestination } from "../../src/config/read.ts";
import type { Config, SettingName } from "../../src/config/settings.ts";
import { withJson } from "../json-shape.ts";
import { bytesText, printTable, secondsOf } from "../output.ts";
import { configOf, withSettings } from "../settings.ts";
import { TerminalBar } from "../terminal-bar.ts";

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

/** @param shape what the command prints with `--json`. */
export function backupCommand(command: Command, names: readonly SettingName[], shape: TSchema): Command {
  return withJson(withSettings(command, names), shape);
}

/** For the console, which starts the command itself and reads how far it is. */
export const progressLines = new Option("--progress-lines").hideHelp();

/** How long another command that works on the same directory's backups is waited for. */
export const waitOption = new Option(
  "--wait <time>",
  "time to wait for another backup operation, for example 30m",
)
  .argParser((text: string) => secondsOf(text) * 1_000)
  .default(0, "0");

/** What backups are encrypted for and read with. @throws {BackupKeyUnusable} */
export async function keysOf(config: Config): Promise<BackupKeys> {
  const settings = { recipients: config["backup-recipients"], keyFile: config["backup-key-file"] };
  return await BackupKeys.from(settings, process.env);
}

/** The named destination, or the one of the settings. */
export function chosenDestination(named: string | undefined, options: object): Destination {
  const config = configOf(options as Record<string, unknown>);
  return destinationOf(named ?? backupDestination(config), s3SettingsOf(config));
}

/** Lines that are not rewritten come this far apart. */
const linesApartMs = 10_000;

type ProgressKind = "shown" | "quiet" | "lines";

/** Says on standard error how far a command is: a bar on a terminal, plain lines elsewhere. */
class StepProgress {
  private step = "";
  private shownAt = 0;
  private readonly bar = new TerminalBar();

  /** @param kind a program reads the result, so that only a terminal is told; or a program reads each step as JSON. */
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
    if (step === this.step && now - this.shownAt < linesApartMs) return;
    const isNew = step !== this.step;
    this.step = step;
    this.shownAt = now;
    const text = total > 1 && !isNew ? `${step} (${bytesText(done)} of ${bytesText(total)})` : step;
    process.stderr.write(`${text}\n`);
  }

  private line(step: string, done: number, total: number): void {
    const now = performance.now();
    if (step === this.step && now - this.shownAt < 200) return;
    this.step = step;
    this.shownAt = now;
    process.stderr.write(`${JSON.stringify({ step, done, total })}\n`);
  }

  /** Takes the changing line away. */
  end(): void {
    this.bar.end();
  }
}

/** Runs the work, and takes its progress away however it ends. */
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

/** What a backup holds, project by project, as a table. */
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
