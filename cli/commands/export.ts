import { extname, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  type ExportFormat,
  type ExportSubject,
  exportColumns,
  exportFormats,
  exportSubjects,
} from "../../src/events/export/columns.ts";
import type { ExportPosition } from "../../src/events/export/page.ts";
import { checkPlace, ExportSummary, intoFile, ontoOutput } from "../../src/events/export/place.ts";
import { type RowWriter, rowWriter } from "../../src/events/export/writer.ts";
import { flagColumns, flagRows } from "../../src/flags/exchange/export-rows.ts";
import { InvalidField } from "../../src/lib/errors.ts";
import { isRepresentable, parseInstant } from "../../src/lib/timestamp.ts";
import { analysisOf, analysisSettings, waitUntilAllIsLoaded } from "../analysis.ts";
import { withJson } from "../json-shape.ts";
import { fileName, positiveInteger, printJson, run } from "../output.ts";
import type { ReachedAppliance } from "../reach.ts";
import { withSettings } from "../settings.ts";
import { withProject } from "../stores.ts";
import { TerminalBar } from "../terminal-bar.ts";

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
  const made = withSettings(new Command(subject), analysisSettings)
    .description(`Export the ${subject} of a project to a file or standard output.`)
    .argument("[out]", "output file; - or none: standard output", fileName, standardOutput)
    .option("--project <id>", "project id; optional if there is one project", positiveInteger)
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
  return withJson(made, ExportSummary, 'print {"rows","file"} at the end; requires a file')
    .addHelpText(
      "after",
      (subject === "flags"
        ? "\nFor other programs: what `flagkeep flags import` reads, `flagkeep flags export` writes.\n"
        : "") +
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
    "\nExamples:\n  flagkeep export events events.parquet\n  flagkeep export persons --from 2026-01-01 persons.csv",
  );
for (const subject of subjects) exportData.addCommand(command(subject));

async function exportTo(subject: Subject, out: string, options: ExportOptions): Promise<void> {
  const isFile = out !== standardOutput;
  if (options.json && !isFile) {
    const message = "--json tells what is in a file: name the file before it.";
    throw new InvalidField("out", "invalid_input", message);
  }
  // Else the file would be empty, and nobody the wiser.
  if (options.from !== undefined && options.to !== undefined && options.from > options.to)
    throw new InvalidField("from", "invalid_input", "--from is later than --to.");
  const file = resolve(out);
  const format = formatOf(isFile ? file : "", options.format);
  if (isFile) checkPlace(file);
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
  const rows = isFile ? await intoFile(file, write) : await write(ontoOutput);
  if (!isFile) return;
  if (options.json) printJson({ rows, file } satisfies ExportSummary);
  else process.stderr.write(`${rows} ${subject} are in ${file}.\n`);
}

const endings: Readonly<Record<string, ExportFormat>> = {
  ...{ ".ndjson": "ndjson", ".jsonl": "ndjson", ".csv": "csv", ".parquet": "parquet" },
};
/** Endings of files that are not what is written here, whatever is asked for. */
const foreignEndings = new Set([".gz", ".zst", ".zip", ".json", ".xlsx", ".tsv"]);

/** The wanted format, or that of the file's name. @throws {InvalidField} they contradict each other */
function formatOf(file: string, wanted: ExportFormat | undefined): ExportFormat {
  const ending = extname(file).toLowerCase();
  const named = endings[ending];
  if (foreignEndings.has(ending)) {
    const instead = [".gz", ".zst"].includes(ending) ? "; write to standard output and pack that" : "";
    const message = `A file that ends in ${ending} is none of ${exportFormats.join(", ")}${instead}.`;
    throw new InvalidField("out", "invalid_input", message);
  }
  if (file !== "" && ending !== "" && named === undefined && wanted === undefined) {
    const message = `No format is known by the ending ${ending}: say --format ${exportFormats.join(", ")}, or end the name in .${exportFormats.join(", .")}.`;
    throw new InvalidField("out", "invalid_input", message);
  }
  if (named !== undefined && wanted !== undefined && named !== wanted) {
    const message = `The file's name ends in ${ending}, but --format says ${wanted}.`;
    throw new InvalidField("out", "invalid_input", message);
  }
  return wanted ?? named ?? "ndjson";
}

/** @returns how many. */
async function exportFlags(options: ExportOptions, writer: RowWriter): Promise<number> {
  const rows = withProject(options, ({ metadata, project }) =>
    flagRows(metadata.db, { projectId: project.id, fromMicros: options.from, toMicros: options.to }),
  );
  await writer.write(rows);
  return rows.length;
}

/** @returns how many. */
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
  let hasBegun = false;
  const bar = new TerminalBar();
  let total = 0;
  try {
    return await analysisOf(options, async (appliance) => {
      if (!hasBegun) {
        await waitUntilAllIsLoaded(appliance);
        // Of a part of them it is not known beforehand how many they are.
        const isWhole = order.fromMicros === undefined && order.toMicros === undefined;
        if (isWhole && process.stderr.isTTY) total = await countOf(appliance, projectId, subject);
      }
      for (;;) {
        const { rows, next } = await appliance.ask("exportPage", { ...order, after });
        hasBegun = true;
        await writer.write(rows);
        count += rows.length;
        // Not in between of what is shown on the same terminal.
        if (isFile || !process.stdout.isTTY) bar.show(`Writing ${subject}`, count, total, "rows");
        if (next === undefined) return count;
        after = next;
      }
    });
  } finally {
    bar.end();
  }
}

async function countOf(
  appliance: ReachedAppliance,
  projectId: number,
  subject: ExportSubject,
): Promise<number> {
  const sql = `SELECT count(*)::DOUBLE AS n FROM ${subject}`;
  // Without it there is a rate and no time left; the export is not to fail for that.
  const found = await appliance.ask("query", { projectId, sql, limit: 1 }).catch(() => undefined);
  return Number(found?.rows[0]?.n ?? 0);
}

function time(text: string): number {
  const micros = parseInstant(text);
  if (micros === undefined || !isRepresentable(micros))
    throw new InvalidArgumentError("It must be a date and time of the years 0 to 9999.");
  return micros;
}
