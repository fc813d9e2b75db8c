import { createReadStream } from "node:fs";
import { copyFile, rename, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  type ExportFormat,
  type ExportSubject,
  exportFormats,
  exportSubjects,
} from "../../src/export/export-file.ts";
import { flagLines } from "../../src/export/flag-lines.ts";
import { parseInstant } from "../../src/ingestion/timestamp.ts";
import { InvalidField } from "../../src/metadata/errors.ts";
import { Count, exactly } from "../../src/shapes.ts";
import { analysisOf, analysisSettings } from "../analysis.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, printJson, run } from "../output.ts";
import { withSettings } from "../settings.ts";
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
const toStdout = "-";

const Exported = exactly({
  rows: Count,
  /** Its whole path. */
  file: Type.String(),
});

const command = (subject: (typeof subjects)[number]): Command => {
  const made = withJson(
    withSettings(new Command(subject), analysisSettings),
    Exported,
    'print {"rows","file"} when it is done; needs a file',
  )
    .description(`Export the ${subject} of a project into a file or to standard output.`)
    .argument("[out]", "the file; - or nothing: standard output", toStdout)
    .option("--project <id>", "the project; may be left out when there is one", positiveInteger)
    .addOption(
      new Option("--format <format>", "how to write them")
        .choices(subject === "flags" ? ["ndjson"] : exportFormats)
        .default("ndjson"),
    );
  if (subject === "events") {
    made
      .option(
        "--from <time>",
        "only events from this time on, such as 2026-01-31 or 2026-01-31T12:00:00Z",
        time,
      )
      .option("--to <time>", "only events before this time", time);
  }
  return made
    .addHelpText(
      "after",
      `\nExample:\n  flagkeep export ${subject} --project 1 --format ndjson ${subject}.ndjson`,
    )
    .action(run((out: string, options: ExportOptions) => exportTo(subject, resolvedOut(out), options)));
};

export const exportData = new Command("export").description(
  "Export events, persons, groups or flags; events come in the order of arrival.",
);
for (const subject of subjects) exportData.addCommand(command(subject));

function resolvedOut(out: string): string {
  return out === toStdout ? out : resolve(out);
}

async function exportTo(
  subject: ExportSubject | "flags",
  out: string,
  options: ExportOptions,
): Promise<void> {
  if (options.json && out === toStdout) {
    throw new InvalidField(
      "out",
      "invalid_input",
      "--json tells what is in a file: name the file before it.",
    );
  }
  const rows =
    subject === "flags" ? await exportFlags(out, options) : await exportRows(subject, out, options);
  if (out === toStdout) return;
  const exported: Static<typeof Exported> = { rows, file: out };
  if (options.json) printJson(exported);
  else process.stderr.write(`${rows} ${subject} are in ${out}.\n`);
}

async function exportFlags(out: string, options: ExportOptions): Promise<number> {
  const lines = withProject(options, ({ metadata, project }) => flagLines(metadata.db, project.id));
  const text = lines.map((line) => `${line}\n`).join("");
  if (out === toStdout) process.stdout.write(text);
  else await writeFile(out, text, { mode: 0o600 });
  return lines.length;
}

async function exportRows(subject: ExportSubject, out: string, options: ExportOptions): Promise<number> {
  const projectId = withProject(options, ({ project }) => project.id);
  const { format, from, to } = options;
  return await analysisOf(options, async (appliance) => {
    const { path, rows } = await appliance.ask("exportFile", {
      ...{ projectId, subject, format },
      ...{ fromMicros: from, toMicros: to },
    });
    try {
      if (out === toStdout) await printFile(path);
      else await moveFile(path, out);
    } finally {
      await rm(path, { force: true });
    }
    return rows;
  });
}

/** Whole or not at all, also when the data directory is on another disk. */
async function moveFile(from: string, to: string): Promise<void> {
  const beside = `${to}.part`;
  try {
    await copyFile(from, beside);
    await rename(beside, to);
  } finally {
    await rm(beside, { force: true });
  }
}

async function printFile(path: string): Promise<void> {
  for await (const chunk of createReadStream(path)) {
    if (!process.stdout.write(chunk)) {
      await new Promise<void>((done) => process.stdout.once("drain", done));
    }
  }
}

function time(text: string): number {
  const micros = parseInstant(text);
  if (micros === undefined) throw new InvalidArgumentError("It must be a date and time.");
  return micros;
}
