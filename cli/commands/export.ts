import { extname, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  csvCaution,
  type ExportFormat,
  type ExportSubject,
  exportColumns,
  exportFormats,
  exportSubjects,
} from "../../src/events/export/columns.ts";
import { ExportSummary, validateOutput, writeToFile, writeToStdout } from "../../src/events/export/output.ts";
import type { ExportPosition } from "../../src/events/export/page.ts";
import { type RowWriter, rowWriter } from "../../src/events/export/writer.ts";
import { flagColumns, flagRows } from "../../src/flags/import-export/project-content.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { isRepresentable, parseInstant } from "../../src/lib/timestamp.ts";
import type { ServerConnection } from "../connection.ts";
import { engineSessionSettings, openEngineSession, waitForIngestion } from "../engine-session.ts";
import { projectOption } from "../options.ts";
import { fileName, printJson, run, withJson } from "../output.ts";
import { TerminalBar } from "../progress.ts";
import { withSettings } from "../settings.ts";
import { withProject } from "../stores.ts";

interface ExportOptions {
  project?: number;
  dataDir?: string;
  format?: ExportFormat;
  from?: number;
  to?: number;
  json?: true;
}

const subjects = [...exportSubjects, "flags"] as const;
type Subject = (typeof subjects)[number];
const standardOutput = "-";

function command(subject: Subject): Command {
  const what = subject === "events" ? "events of" : "those created from";
  const exportCommand = withSettings(new Command(subject), engineSessionSettings)
    .description(`Export the ${subject} of a project to a file or standard output.`)
    .argument("[out]", "output file; - or none: standard output", fileName, standardOutput)
    .addOption(projectOption)
    .addOption(
      new Option("--format <format>", "output format; default: by the file extension, else ndjson").choices(
        exportFormats,
      ),
    )
    .option(
      "--from <time>",
      `only ${what} this time on, for example 2026-01-31 or 2026-01-31T12:00:00+01:00`,
      time,
    )
    .option("--to <time>", "only records before this time; times without a zone are UTC", time);
  return withJson(exportCommand, ExportSummary, 'print {"rows","file"} at the end; requires a file')
    .addHelpText(
      "after",
      (subject === "flags"
        ? "\nFor other programs: `flagkeep flags export` writes the format that `flagkeep flags import` reads.\n"
        : "") +
        `\n${csvCaution}\n` +
        `\nExamples:\n  flagkeep export ${subject} --project 1 ${subject}.parquet\n` +
        `  flagkeep export ${subject} --from 2026-01-01 --to 2026-02-01 | gzip > ${subject}.ndjson.gz`,
    )
    .action(run((out: string, options: ExportOptions) => exportTo(subject, out, options)));
}

export const exportData = new Command("export")
  .description(
    "Export events, persons, groups or flags. Includes every acknowledged event: realtime events first, then historical ones, each in order of arrival.",
  )
  .addHelpText(
    "after",
    `\n${csvCaution}\n` +
      "\nExamples:\n  flagkeep export events events.parquet\n  flagkeep export persons --from 2026-01-01 persons.csv",
  );
for (const subject of subjects) exportData.addCommand(command(subject));

async function exportTo(subject: Subject, out: string, options: ExportOptions): Promise<void> {
  const isFile = out !== standardOutput;
  if (options.json && !isFile) {
    const message = "--json requires a file: name it before the option.";
    throw new InvalidFieldError("out", "invalid_input", message);
  }
  // Without this check the file would be silently empty.
  if (options.from !== undefined && options.to !== undefined && options.from > options.to)
    throw new InvalidFieldError("from", "invalid_input", "--from is later than --to.");
  const file = resolve(out);
  const format = getFormat(isFile ? file : "", options.format);
  if (isFile) validateOutput(file);
  const write = async (sink: Parameters<typeof rowWriter>[2]) => {
    const columns = subject === "flags" ? flagColumns : exportColumns[subject];
    const writer = rowWriter(format, columns, sink);
    const rows =
      subject === "flags"
        ? await exportFlags(options, writer)
        : await exportPages(subject, options, writer, isFile);
    await writer.finish();
    return rows;
  };
  const rows = isFile ? await writeToFile(file, write) : await write(writeToStdout);
  if (!isFile) return;
  if (options.json) printJson({ rows, file } satisfies ExportSummary);
  else process.stderr.write(`${rows} ${subject} are in ${file}.\n`);
}

const endings: Readonly<Record<string, ExportFormat>> = {
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".csv": "csv",
  ".parquet": "parquet",
};
/** Extensions of formats that are never written, whatever the requested format. */
const foreignEndings = new Set([".gz", ".zst", ".zip", ".json", ".xlsx", ".tsv"]);

/** The requested format, or that of the file name. @throws {InvalidFieldError} they contradict each other */
function getFormat(file: string, wanted: ExportFormat | undefined): ExportFormat {
  const ending = extname(file).toLowerCase();
  const named = endings[ending];
  if (foreignEndings.has(ending)) {
    const instead = [".gz", ".zst"].includes(ending) ? "; write to standard output and compress that" : "";
    const message = `File extension ${ending} is not one of ${exportFormats.join(", ")}${instead}.`;
    throw new InvalidFieldError("out", "invalid_input", message);
  }
  if (file !== "" && ending !== "" && named === undefined && wanted === undefined) {
    const message = `Unknown file extension ${ending}: use --format ${exportFormats.join(", ")}, or the extension .${exportFormats.join(", .")}.`;
    throw new InvalidFieldError("out", "invalid_input", message);
  }
  if (named !== undefined && wanted !== undefined && named !== wanted) {
    const message = `File extension ${ending} contradicts --format ${wanted}.`;
    throw new InvalidFieldError("out", "invalid_input", message);
  }
  return wanted ?? named ?? "ndjson";
}

/** @returns the number of rows. */
async function exportFlags(options: ExportOptions, writer: RowWriter): Promise<number> {
  const rows = withProject(options, ({ metadata, project }) =>
    flagRows(metadata.db, { projectId: project.id, fromMicros: options.from, toMicros: options.to }),
  );
  await writer.write(rows);
  return rows.length;
}

/** @returns the number of rows. */
async function exportPages(
  subject: ExportSubject,
  options: ExportOptions,
  writer: RowWriter,
  isFile: boolean,
): Promise<number> {
  const projectId = withProject(options, ({ project }) => project.id);
  const order = { projectId, subject, fromMicros: options.from, toMicros: options.to };
  let count = 0;
  let after: ExportPosition | undefined;
  let hasStarted = false;
  const bar = new TerminalBar();
  let total = 0;
  try {
    return await openEngineSession(options, async (server) => {
      if (!hasStarted) {
        await waitForIngestion(server);
        // The count of a date range is not known beforehand.
        const isWhole = order.fromMicros === undefined && order.toMicros === undefined;
        if (isWhole && process.stderr.isTTY) total = await getCount(server, projectId, subject);
      }
      for (;;) {
        const { rows, next } = await server.ask("exportPage", { ...order, after });
        hasStarted = true;
        await writer.write(rows);
        count += rows.length;
        // Not if the rows are on the same terminal.
        if (isFile || !process.stdout.isTTY) bar.show(`Writing ${subject}`, count, total, "rows");
        if (next === undefined) return count;
        after = next;
      }
    });
  } finally {
    bar.end();
  }
}

async function getCount(
  server: ServerConnection,
  projectId: number,
  subject: ExportSubject,
): Promise<number> {
  const sql = `SELECT count(*)::DOUBLE AS n FROM ${subject}`;
  // The count is only for the time left: without it the export continues and shows a rate.
  const found = await server.ask("query", { projectId, sql, limit: 1 }).catch(() => undefined);
  return Number(found?.rows[0]?.n ?? 0);
}

function time(text: string): number {
  const micros = parseInstant(text);
  if (micros === undefined || !isRepresentable(micros))
    throw new InvalidArgumentError("Expected a date and time of the years 0 to 9999.");
  return micros;
}
