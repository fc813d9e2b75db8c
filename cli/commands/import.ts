import { readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { askControl } from "../../src/control/client.ts";
import { AppError } from "../../src/errors.ts";
import { setNativeFolder } from "../../src/events/native-folder.ts";
import { type ImportSummary, importFile } from "../../src/import/import-file.ts";
import { Position } from "../../src/import/position.ts";
import { FileUnreadable } from "../../src/import/read-records.ts";
import { type ImportFormat, importFormats } from "../../src/import/records.ts";
import { paths } from "../../src/paths.ts";
import type { Status } from "../../src/state/status.ts";
import { analysisOf, analysisSettings } from "../analysis.ts";
import { positiveInteger, print, printJson, run } from "../output.ts";
import { withProject } from "../project.ts";
import { dataDirOf, withSettings } from "../settings.ts";

/** Events are loaded by the running appliance. */
class NotRunning extends AppError {
  readonly code = "not_running";
  override readonly hint = "Start it with `flagkeep serve` and the same --data-dir, then import.";
}

interface ImportOptions {
  project?: number;
  dataDir?: string;
  format: ImportFormat;
  map?: [string, string][];
  dryRun?: true;
  resume?: true;
  json?: true;
}

const pair = (text: string, before: [string, string][] = []): [string, string][] => {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError("It must be old=new.");
  return [...before, [text.slice(0, at), text.slice(at + 1)]];
};

export const importEvents = withSettings(new Command("import"), analysisSettings)
  .description("Load events of the past into a project of the running appliance, in order.")
  .argument("<file>", "a file (also .gz), a folder whose files are taken by name, or - for standard input")
  .option("--project <id>", "the project; may be left out when there is one", positiveInteger)
  .addOption(new Option("--format <format>", "what the file is").choices(importFormats).default("ndjson"))
  .option("--map <old=new>", "rename a field, to properties.x as well; repeat for more", pair)
  .option("--dry-run", "read and check everything, load nothing")
  .option("--resume", "go on behind what an interrupted import has loaded")
  .option("--json", 'print {"read","accepted","duplicate","rejected",…}')
  .addHelpText(
    "after",
    "\nNothing is loaded twice: an event keeps its uuid, or gets one made of its source id or its place.\n" +
      "Rejected records are written to FILE.rejected.ndjson with their lines and reasons.\n" +
      "\nExamples:\n  flagkeep import events.ndjson.gz --project 1\n" +
      "  flagkeep import users.csv --format csv --map user=distinct_id --map name=event --dry-run\n" +
      "  flagkeep import amplitude/ --format amplitude --resume --json",
  )
  .action(run(importAll));

async function importAll(file: string, options: ImportOptions): Promise<void> {
  const dataDir = dataDirOf(options as never);
  const project = withProject(options, ({ project: { id, apiToken } }) => ({ id, apiToken }));
  const files = filesOf(file);
  setNativeFolder(paths(dataDir).native);
  const url = (await askControl<Status>(dataDir, "status"))?.url ?? undefined;
  if (url === undefined) throw new NotRunning(`No appliance runs on ${dataDir}.`);
  const total: ImportSummary = { read: 0, accepted: 0, duplicate: 0, rejected: 0, skipped: 0 };
  const rejects: string[] = [];
  await analysisOf(options, async (ask) => {
    for (const path of files) {
      const rejectPath = path === "-" ? join(dataDir, "stdin.rejected.ndjson") : `${path}.rejected.ndjson`;
      const summary = await importFile({
        ...{ path, format: options.format, names: new Map(options.map), url, apiKey: project.apiToken },
        ...{ isDryRun: options.dryRun === true, isResumed: options.resume === true, rejectPath },
        position: new Position(dataDir, path, project.id),
        countKnown: (uuids) => ask("countKnown", { projectId: project.id, uuids }),
        onProgress: progress,
      });
      for (const name of Object.keys(total) as (keyof ImportSummary)[]) total[name] += summary[name];
      if (summary.rejected > 0 && !options.dryRun) rejects.push(rejectPath);
    }
  });
  if (process.stderr.isTTY) process.stderr.write("\n");
  if (options.json) return printJson({ ...total, file_rejects: rejects });
  print(
    `Read ${total.read}, accepted ${total.accepted}, duplicate ${total.duplicate}, rejected ${total.rejected}.`,
  );
  for (const path of rejects) print(`Rejected records are in ${path}.`);
}

function filesOf(file: string): string[] {
  if (file === "-") return ["-"];
  const path = resolve(file);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new FileUnreadable(`${path} does not exist.`);
  if (!found.isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".rejected.ndjson"))
    .map((entry) => join(path, entry.name))
    .sort();
}

const startedAt = performance.now();

function progress({ read }: ImportSummary): void {
  if (!process.stderr.isTTY) return;
  const perSecond = Math.round((read * 1_000) / (performance.now() - startedAt));
  process.stderr.write(`\r${read} records, ${perSecond} a second `);
}
