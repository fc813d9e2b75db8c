import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import type { ReachedAppliance } from "../../src/control/reach.ts";
import { setNativeFolder } from "../../src/events/native-folder.ts";
import {
  type ExportFormat,
  type ExportSubject,
  ExportSummary,
  exportFormats,
  exportSubjects,
} from "../../src/export/export-file.ts";
import { flagLines, writeFlags } from "../../src/export/flag-export.ts";
import { checkPlace, putInPlace, putOnOutput } from "../../src/export/place.ts";
import { parseInstant } from "../../src/ingestion/timestamp.ts";
import { InvalidField } from "../../src/metadata/errors.ts";
import { paths } from "../../src/paths.ts";
import { analysisOf, analysisSettings, waitUntilAllIsLoaded } from "../analysis.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, printJson, run } from "../output.ts";
import { dataDirOf, withSettings } from "../settings.ts";
import { withProject } from "../stores.ts";

interface ExportOptions {
  project?: number;
  dataDir?: string;
  format: ExportFormat;
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
    .description(`Export the ${subject} of a project into a file or to standard output.`)
    .argument("[out]", "the file; - or nothing: standard output", standardOutput)
    .option("--project <id>", "the project; may be left out when there is one", positiveInteger)
    .addOption(new Option("--format <format>", "how to write them").choices(exportFormats).default("ndjson"))
    .option(
      "--from <time>",
      `only ${what} this time on, such as 2026-01-31 or 2026-01-31T12:00:00+01:00`,
      time,
    )
    .option("--to <time>", "only those before this time; times without a zone are UTC", time);
  return withJson(made, ExportSummary, 'print {"rows","file"} when it is done; needs a file')
    .addHelpText(
      "after",
      `\nExamples:\n  flagkeep export ${subject} --project 1 --format parquet ${subject}.parquet\n` +
        `  flagkeep export ${subject} --from 2026-01-01 --to 2026-02-01 | gzip > ${subject}.ndjson.gz`,
    )
    .action(run((out: string, options: ExportOptions) => exportTo(subject, out, options)));
}

export const exportData = new Command("export").description(
  "Export events, persons, groups or flags; events come in the order of arrival, none that was acknowledged is missing.",
);
for (const subject of subjects) exportData.addCommand(command(subject));

async function exportTo(subject: Subject, out: string, options: ExportOptions): Promise<void> {
  const isFile = out !== standardOutput;
  if (options.json && !isFile) {
    const message = "--json tells what is in a file: name the file before it.";
    throw new InvalidField("out", "invalid_input", message);
  }
  const file = resolve(out);
  if (isFile) checkPlace(file);
  const put = (from: string) => (isFile ? putInPlace(from, file) : putOnOutput(from));
  const rows =
    subject === "flags" ? await exportFlags(options, put) : await exportRows(subject, options, put);
  if (!isFile) return;
  if (options.json) printJson({ rows, file } satisfies ExportSummary);
  else process.stderr.write(`${rows} ${subject} are in ${file}.\n`);
}

type Put = (from: string) => Promise<void>;

async function exportFlags(options: ExportOptions, put: Put): Promise<number> {
  const { format, from, to } = options;
  const lines = withProject(options, ({ metadata, project }) =>
    flagLines(metadata.db, { projectId: project.id, format, fromMicros: from, toMicros: to }),
  );
  setNativeFolder(paths(dataDirOf(options as never)).native);
  const folder = await mkdtemp(join(tmpdir(), "flagkeep-export-"));
  try {
    const path = join(folder, "flags");
    await writeFlags(lines, format, path);
    await put(path);
    return lines.length;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function exportRows(subject: ExportSubject, options: ExportOptions, put: Put): Promise<number> {
  const projectId = withProject(options, ({ project }) => project.id);
  const { format, from, to } = options;
  return await analysisOf(options, async (appliance: ReachedAppliance) => {
    await waitUntilAllIsLoaded(appliance);
    const { path, rows } = await appliance.ask("exportFile", {
      ...{ projectId, subject, format },
      ...{ fromMicros: from, toMicros: to },
    });
    await put(path).finally(() => rm(path, { force: true }));
    return rows;
  });
}

function time(text: string): number {
  const micros = parseInstant(text);
  if (micros === undefined) throw new InvalidArgumentError("It must be a date and time.");
  return micros;
}
