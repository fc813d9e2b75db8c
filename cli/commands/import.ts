import { readdirSync } from "node:fs";
import { basename, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { setNativeFolder } from "../../src/events/duckdb/native-folder.ts";
import { formatCounts, formatWarnings } from "../../src/import/counts.ts";
import { importFiles } from "../../src/import/files.ts";
import { type Imported, importAll, nothingImported } from "../../src/import/import-all.ts";
import { importClient } from "../../src/import/import-client.ts";
import type { ImportReport } from "../../src/import/import-status.ts";
import { type FieldRule, fieldRule } from "../../src/import/map/fields.ts";
import { type ImportFormat, importFormats } from "../../src/import/map/formats.ts";
import { getZone, type Zone, zoneForm } from "../../src/import/map/zone.ts";
import { isNullMarker, nullForm } from "../../src/import/read/csv.ts";
import { type Reject, rejectsMaxDefault } from "../../src/import/reject-file.ts";
import { ImportSummary } from "../../src/import/summary.ts";
import { AppError } from "../../src/lib/errors.ts";
import { paths } from "../../src/paths.ts";
import { type ServerConnection, ServerUnreachableError } from "../connection.ts";
import { engineSessionSettings, openEngineSession } from "../engine-session.ts";
import { confirmHelp } from "../operations/command.ts";
import { projectOption } from "../options.ts";
import {
  exitFailed,
  fileName,
  positiveInteger,
  print,
  printJson,
  run,
  wholeNumber,
  withJson,
} from "../output.ts";
import { Progress } from "../progress.ts";
import { getDataDir, withSettings } from "../settings.ts";
import { creatorHelp, getCreator, withProject } from "../stores.ts";
import { importFlags, isAddress, pull } from "./import-pull.ts";

/** The server was unavailable for too long. */
class ImportInterruptedError extends AppError {
  readonly code = "import_interrupted";
  override readonly hint = "Nothing is lost: run the same command with --resume.";
}

/** How long to wait for an unavailable server. */
const patience = 60_000;
/** Maximum rejected records that a dry run shows. */
const rejectsShown = 20;
/** Interval of progress reports to the server. */
const reportMs = 500;

interface ImportOptions {
  project?: number;
  dataDir?: string;
  format: ImportFormat;
  map?: GivenRule[];
  null?: string[];
  timezone?: GivenZone;
  linkIdentities: boolean;
  sourceProject?: number;
  keyFile?: string;
  user?: string;
  confirm?: true;
  maxRejects: number;
  dryRun?: true;
  resume?: true;
  reportAs: string;
  json?: true;
}

/** An option as written, and its meaning. */
interface GivenRule {
  text: string;
  rule: FieldRule;
}
interface GivenZone {
  text: string;
  zone: Zone;
}

const rule = (text: string, before: GivenRule[] = []): GivenRule[] => {
  const rule = fieldRule(text);
  if (rule === undefined)
    throw new InvalidArgumentError("Expected OLD=NEW or FIELD=SOURCES, for example event=name|'$pageview'.");
  return [...before, { text, rule }];
};

const nullMarker = (text: string, before: string[] = []): string[] => {
  if (!isNullMarker(text))
    throw new InvalidArgumentError(
      `Expected the content of an empty table cell, for example NULL: ${nullForm}.`,
    );
  return [...before, text];
};

const zone = (text: string): GivenZone => {
  const found = getZone(text);
  if (found === undefined) throw new InvalidArgumentError(`Expected ${zoneForm}.`);
  return { text, zone: found };
};

export const importEvents = withJson(
  withSettings(new Command("import"), engineSessionSettings),
  ImportSummary,
  'print {"read","accepted","duplicate","rejected",…}',
)
  .description("Import events, persons and groups from files or a PostHog server, in order.")
  .argument("<file>", "file, folder, - for standard input, or https:// URL of a PostHog server", fileName)
  .addOption(projectOption)
  .addOption(new Option("--format <format>", "file format").choices(importFormats).default("auto"))
  .option(
    "--map <field=source>",
    "source of an event field: names and 'constants' joined by |, the first present one is used; or old=new to rename; repeatable",
    rule,
  )
  .option(
    "--null <text>",
    "unquoted table cell to read as NULL, in addition to \\N and empty cells; repeatable",
    nullMarker,
  )
  .option("--timezone <zone>", `time zone of times without one: ${zoneForm} (default: UTC)`, zone)
  .option("--no-link-identities", "do not link devices to users")
  .option(
    "--max-rejects <n>",
    "maximum number of rejected records before the import stops",
    wholeNumber,
    rejectsMaxDefault,
  )
  .option("--source-project <id>", "id of the PostHog project to copy", positiveInteger)
  .option(
    "--key-file <path>",
    "file with the PostHog personal API key; default: POSTHOG_PERSONAL_API_KEY",
    fileName,
  )
  .option("--confirm", confirmHelp)
  .option("--user <email>", `for copied flags and cohorts: ${creatorHelp}`)
  .option("--dry-run", "read and check everything, import nothing")
  .option("--resume", "resume an interrupted import")
  .addOption(new Option("--report-as <id>").default(crypto.randomUUID()).hideHelp())
  .addHelpText(
    "after",
    "\nThe format is detected from the content and printed in the first line. Files may be compressed\n" +
      "with gzip or Zstandard, or be in a zip or tar archive. Folders are read recursively, part-2 before part-10.\n" +
      "No event is loaded twice: it keeps its uuid, else the uuid is derived from its source id ($insert_id, messageId, …), time,\n" +
      "name and person, or from its content. Times without a zone are UTC or in --timezone. Empty cells and unquoted \\N are NULL.\n" +
      "An event without a readable time is rejected. Numeric times must lie between 1990 and tomorrow.\n" +
      "A device is linked to its first user by one $identify; its other users stay separate persons. IDs such as\n" +
      "(null) or unknown are never linked. Lines and rows may be 64 MiB long.\n" +
      "Rejected records are written to FILE.rejected.ndjson with line, reason and record; the rest is loaded. If there are\n" +
      "too many, or none of the first 1,000 records of a file is an event, the import stops with an error.\n" +
      "After an interruption, run the same command with --resume; the summary counts all runs.\n" +
      "Symbolic links in folders are not followed.\n" +
      "The URL of a PostHog server copies a project with a personal API key: events, persons, groups, flags and cohorts,\n" +
      "experiments, holdouts, saved metrics, early access features and surveys. Each keeps what Flagkeep can compute.\n" +
      "\nExit status: 0 everything is loaded or in a reject file; 1 failed, stopped, nothing accepted, or a file is truncated;\n" +
      "2 invalid usage\n" +
      "\nExamples:\n  flagkeep import events.ndjson.gz --project 1\n" +
      "  flagkeep import users.csv --map distinct_id='user_id|anonymous_id' --map event=\"kind|'$pageview'\" --dry-run\n" +
      "  flagkeep import amplitude.zip --resume --json\n" +
      "  flagkeep import https://eu.posthog.com --source-project 2 --key-file key --resume",
  )
  .action(run(importFrom));

async function importFrom(file: string, options: ImportOptions): Promise<void> {
  const dataDir = getDataDir(options as never);
  const { projectId, by } = withProject(options, ({ metadata, project, by }) => {
    // Detect a wrong creator before anything is loaded.
    getCreator(metadata, project.organizationId, options.user);
    return { projectId: project.id, by };
  });
  const stateFolder = paths(resolve(dataDir)).importState;
  setNativeFolder(paths(dataDir).native);
  const pulled = isAddress(file) ? await pullFrom(file, options, projectId, stateFolder) : undefined;
  const source = pulled?.folder ?? (file === "-" ? file : resolve(file));
  // A copied project may have only flags.
  const hasRecords = pulled === undefined || readdirSync(pulled.folder).length > 0;
  const progress = new Progress(hasRecords ? importFiles(source).totalBytes : 0);
  let rejects = 0;
  let reportedAt = 0;
  /** Reports progress to the server; errors here are ignored. */
  const report = async (server: ServerConnection, state: ImportReport["state"]) => {
    if (server.isOwn) return;
    reportedAt = performance.now();
    const reported: ImportReport = {
      id: options.reportAs,
      projectId,
      name: file === "-" ? "standard input" : basename(file),
      state,
      isDryRun: options.dryRun === true,
      figures: { ...progress.figures, rejected: rejects },
    };
    await server.send("import_report", reported).catch(() => undefined);
  };
  const reportSometimes = (server: ServerConnection) => {
    if (performance.now() - reportedAt > reportMs) void report(server, "running");
  };
  const showReject = ({ line, reason }: Reject) => {
    rejects += 1;
    if (options.dryRun && rejects <= rejectsShown) progress.note(`line ${line}: ${reason}`);
  };
  const formats = new Set<string>();
  const showFormat = (format: string) => {
    if (formats.has(format)) return;
    formats.add(format);
    // With --json the summary contains it.
    if (options.json) return;
    progress.end();
    print(`Reading ${format}.`);
  };
  process.once("SIGINT", () => {
    progress.end();
    process.stderr.write("flagkeep: interrupted; run the same command with --resume to continue.\n");
    process.exit(130);
  });
  try {
    await openEngineSession(
      options,
      async (server) => {
        await report(server, "running");
        const order = {
          source,
          projectId,
          dataDir,
          stateFolder,
          format: options.format,
          fields: (options.map ?? []).map(({ rule }) => rule),
          nulls: options.null ?? [],
          zone: options.timezone?.zone,
          isLinking: options.linkIdentities,
          readingOptions: {
            "--map": (options.map ?? []).map(({ text }) => text),
            "--null": options.null ?? [],
            "--timezone": options.timezone === undefined ? [] : [options.timezone.text],
          },
          maxRejects: options.maxRejects,
          isDryRun: options.dryRun === true,
          isResumed: options.resume === true,
          target: importClient(server, projectId, by),
          onBytes: (bytes: number) => progress.addBytes(bytes),
          onRecords: (records: number, isEarlier: boolean) => {
            progress.addRecords(records, isEarlier);
            reportSometimes(server);
          },
          onReject: showReject,
          onFormat: showFormat,
        };
        const imported = hasRecords ? await importAll(order) : nothingImported();
        progress.end();
        const copied = pulled && importFlags(options, pulled, options.dryRun === true);
        const flags = copied === undefined ? {} : { flags: copied.flags };
        printSummary(
          { ...getSummary(imported, options, progress), formats: [...formats], ...flags },
          options,
        );
        imported.forget();
        if (copied?.failure !== undefined) imported.failures.push(copied.failure);
        else if (imported.isComplete && !options.dryRun) pulled?.forget();
        await report(server, imported.failures.length === 0 ? "done" : "failed");
        for (const { message, hint } of imported.failures) {
          process.stderr.write(`flagkeep: ${message} ${hint}\n`);
          process.exitCode = exitFailed;
        }
      },
      { patience, mayStartAgain: false, onWait: (entries) => progress.wait(entries) },
    );
  } catch (error) {
    throw error instanceof ServerUnreachableError ? new ImportInterruptedError(error.message) : error;
  } finally {
    progress.end();
  }
}

async function pullFrom(address: string, options: ImportOptions, projectId: number, stateFolder: string) {
  const progress = new Progress(undefined);
  try {
    const { sourceProject, keyFile, resume } = options;
    const order = { address, sourceProject, keyFile, projectId, stateFolder, isResumed: resume === true };
    return await pull(order, progress);
  } finally {
    progress.end();
  }
}

function getSummary(
  imported: Imported,
  options: ImportOptions,
  progress: Progress,
): Omit<ImportSummary, "formats"> {
  return {
    ...imported.counts,
    ...imported.receipt,
    shared_devices: imported.sharedDevices,
    warnings: formatWarnings(imported.counts),
    resumed: imported.resumed,
    dry_run: options.dryRun === true,
    complete: imported.isComplete,
    seconds: Math.round(progress.seconds * 1_000) / 1_000,
    events_per_second: progress.recordsPerSecond,
    reject_files: imported.rejectFiles,
    ...imported.dryRun,
  };
}

function printSummary(summary: ImportSummary, { json }: ImportOptions): void {
  if (json) {
    printJson(summary);
    return;
  }
  const { read, accepted, duplicate, rejected, resumed, made: generated } = summary;
  const isDryRun = summary.dry_run;
  const title = isDryRun ? "Nothing was loaded. Read" : "Read";
  const mode = isDryRun ? "would be " : "";
  print(`${title} ${read}, ${mode}accepted ${accepted}, duplicate ${duplicate}, rejected ${rejected}.`);
  if (generated > 0)
    print(
      `${isDryRun ? "Would create" : "Created"} ${generated} event${generated === 1 ? "" : "s"} that link devices and users, or describe groups.`,
    );
  const { first_time, last_time, people } = summary;
  if (first_time !== null)
    print(`Events from ${first_time} to ${last_time}, of ${people} ${people === 1 ? "person" : "people"}.`);
  const { shared_devices, placeholder_ids } = summary;
  if (shared_devices > 0)
    print(
      `Devices with more than one user: ${shared_devices}. Only the first user of each is linked with it.`,
    );
  if (placeholder_ids > 0)
    print(
      `Records with a placeholder ID, such as (null): ${placeholder_ids}. Placeholder IDs are never linked.`,
    );
  for (const [title, counts] of [
    ["Left out", summary.left_out],
    ["Not taken", summary.not_taken],
  ] as const) {
    const line = formatCounts(counts);
    if (line !== "") print(`${title}: ${line}.`);
  }
  for (const warning of summary.warnings) print(`Warning: ${warning}`);
  printDryRun(summary);
  if (summary.flags !== undefined) {
    const { created, updated, remarks } = summary.flags;
    print(`Flags and cohorts: ${created} created, ${updated} changed.`);
    for (const remark of remarks) print(remark);
  }
  if (resumed > 0) print(`Imported by earlier runs: ${resumed}.`);
  print(`${summary.seconds} s, ${summary.events_per_second} records a second.`);
  for (const path of summary.reject_files) print(`Rejected records are in ${path}.`);
}

function printDryRun({ rejections = {}, first_events = [], time_spans = {} }: ImportSummary): void {
  const rejected = formatCounts(rejections);
  if (rejected !== "") print(`Would be rejected: ${rejected}.`);
  for (const [format, { first, last }] of Object.entries(time_spans))
    print(`Times of ${format}: ${first} to ${last}.`);
  if (first_events.length > 0) print("The first records would become:");
  for (const event of first_events) print(JSON.stringify(event));
}
