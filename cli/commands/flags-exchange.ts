import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { flagFields } from "../../src/flags/api/flag-input.ts";
import { FlagInput } from "../../src/flags/api/flag-shapes.ts";
import { differenceLines, type ItemDifference } from "../../src/flags/exchange/difference.ts";
import { writeDocument } from "../../src/flags/exchange/document.ts";
import { importDocument } from "../../src/flags/exchange/import-document.ts";
import { readContent } from "../../src/flags/exchange/project-content.ts";
import { documentText, readDocument } from "../../src/flags/exchange/read-document.ts";
import { parseFields } from "../../src/http/fields.ts";
import { AppError } from "../../src/lib/errors.ts";
import { Count, exactly } from "../../src/lib/schema.ts";
import { describeJson, withJson } from "../json-shape.ts";
import { positiveInteger, print, printJson, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { type ProjectStores, withProject } from "../stores.ts";

/** A file is there already, or is not there at all. */
class WrongFile extends AppError {
  readonly code = "wrong_file";
}

interface ExportOptions {
  project?: number;
  json?: true;
  output?: string;
  withSecrets?: true;
  force?: true;
}

const AnyObject = Type.Record(Type.String(), Type.Unknown());
/** The document itself; what is in a flag or cohort is named as in the API. */
const ExportedFlags = exactly({
  flagkeep_flags: Count,
  group_types: Type.Record(Type.String(), Type.String()),
  cohorts: Type.Array(AnyObject),
  flags: Type.Array(AnyObject),
});

export const exportFlags = withSettings(new Command("export"), ["data-dir"])
  .description(
    "Write a project's flags and cohorts down as one readable file, to keep or to import elsewhere.",
  )
  .option("--project <id>", "the project; may be left out when there is one", positiveInteger)
  .option("-o, --output <file>", "where to; standard output when left out")
  .option("--force", "replace the file when it is there")
  .option("--json", "JSON instead of YAML; also when the file's name ends in .json")
  .option("--with-secrets", "with secret payloads in clear")
  .addHelpText(
    "after",
    "\nMembers of static cohorts are persons and are not in the file.\n\n" +
      "Examples:\n  flagkeep flags export > flags.yaml\n  flagkeep flags export --project 2 -o flags.json",
  )
  .action(
    run((options: ExportOptions) =>
      withProject(options, (stores) => {
        const { output } = options;
        const isJson = options.json || output?.endsWith(".json");
        const text = documentText(documentOf(stores, options.withSecrets), isJson ? "json" : "yaml");
        if (output === undefined) return void process.stdout.write(text);
        if (existsSync(output) && !options.force) {
          throw new WrongFile(`${output} is there already; --force replaces it.`);
        }
        writeFileSync(output, text);
      }),
    ),
  );

describeJson(exportFlags, ExportedFlags);

function documentOf({ metadata, project, flagSets, writing }: ProjectStores, withSecrets = false) {
  const { groupTypes } = flagSets.of(project.id);
  const payloads = withSecrets ? writing.payloads : undefined;
  return writeDocument(readContent(metadata.db, { projectId: project.id, groupTypes, payloads }));
}

interface ImportOptions {
  project?: number;
  json?: true;
  dryRun?: true;
}

const ImportedFlags = exactly({
  dry_run: Type.Boolean(),
  differences: Type.Array(
    exactly({
      kind: Type.Union([Type.Literal("flag"), Type.Literal("cohort")]),
      name: Type.String(),
      change: Type.Union([Type.Literal("created"), Type.Literal("updated")]),
      members: Type.Array(
        exactly({
          path: Type.String(),
          /** Left out where there was nothing before. */
          before: Type.Optional(Type.Unknown()),
          /** Left out where nothing is left. */
          after: Type.Optional(Type.Unknown()),
        }),
      ),
    }),
  ),
  remarks: Type.Array(Type.String()),
});

export const importFlags = withJson(
  withSettings(new Command("import"), ["data-dir"]),
  ImportedFlags,
  "print the difference as JSON",
)
  .description("Bring a project's flags and cohorts to what a file says: flags by key, cohorts by name.")
  .argument("<file>", "a file that `flags export` wrote, or one like it; - for standard input")
  .option("--project <id>", "the project; may be left out when there is one", positiveInteger)
  .option("--dry-run", "print what would change, and change nothing")
  .addHelpText(
    "after",
    "\nAll of the file or nothing is imported; what it does not name stays; a second import changes nothing.\n\n" +
      "Examples:\n  flagkeep flags import flags.yaml --dry-run\n  flagkeep flags import flags.yaml --project 2",
  )
  .action(
    run((file: string, options: ImportOptions) =>
      withProject(options, ({ writing, project, author, flagSets }) => {
        const isDryRun = options.dryRun === true;
        const { differences, remarks } = importDocument(writing, {
          ...author,
          projectId: project.id,
          document: readDocument(textOf(file)),
          groupTypes: flagSets.of(project.id).groupTypes,
          toFields: (item) => flagFields(parseFields(FlagInput, item)),
          isDryRun,
          now: new Date(),
        });
        const imported: Static<typeof ImportedFlags> = {
          dry_run: isDryRun,
          differences: differences.map(shown),
          remarks: [...remarks],
        };
        if (options.json) return printJson(imported);
        for (const line of differenceLines(differences)) print(line);
        for (const remark of remarks) process.stderr.write(`${remark}\n`);
        print(summary(differences, isDryRun));
      }),
    ),
  );

/** JSON has no undefined: what is absent is left out. */
function shown({ members, ...item }: ItemDifference) {
  return { ...item, members: members.map(({ path, before, after }) => ({ path, before, after })) };
}

function summary(differences: readonly ItemDifference[], isDryRun: boolean): string {
  if (differences.length === 0) return "Nothing differs.";
  const count = (change: string) => differences.filter((item) => item.change === change).length;
  const would = isDryRun ? "would be " : "";
  return `${count("created")} ${would}created, ${count("updated")} ${would}changed.`;
}

function textOf(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new WrongFile(`${file} cannot be read (${(error as Error).message}).`);
  }
}
