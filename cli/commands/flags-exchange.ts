import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { differenceLines, type ItemDifference } from "../../src/flags/exchange/difference.ts";
import { writeDocument } from "../../src/flags/exchange/document.ts";
import { foreignProducts, readForeign } from "../../src/flags/exchange/foreign/read-foreign.ts";
import { importDocument } from "../../src/flags/exchange/import-document.ts";
import { wholeFlag } from "../../src/flags/exchange/partial-flag.ts";
import { assertPayloadsReadable, readContent } from "../../src/flags/exchange/project-content.ts";
import { documentOf as documentIn, documentText, parseFile } from "../../src/flags/exchange/read-document.ts";
import { FlagInput, flagFields } from "../../src/flags/fields.ts";
import { parseFields } from "../../src/http/fields.ts";
import { AppError } from "../../src/lib/errors.ts";
import { Count, exactly, orNull } from "../../src/lib/schema.ts";
import { describeJson, withJson } from "../json-shape.ts";
import { exitFailed, fileName, positiveInteger, print, printJson, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { creatingAuthor, creatorWords, type ProjectStores, withProject } from "../stores.ts";
import { confirmWords } from "./flags-common.ts";

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
  .description("Export a project's flags and cohorts to one YAML or JSON file.")
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .option("-o, --output <file>", "output file; default: standard output", fileName)
  .option("--force", "overwrite an existing file")
  .option("--json", "write JSON instead of YAML; implied by a .json file name")
  .option("--with-secrets", "include encrypted payloads in plaintext")
  .addHelpText(
    "after",
    "\nThe members of static cohorts are not exported.\n\n" +
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
  const content = readContent(metadata.db, { projectId: project.id, groupTypes, payloads });
  if (withSecrets) assertPayloadsReadable(content);
  return writeDocument(content);
}

interface ImportOptions {
  project?: number;
  json?: true;
  dryRun?: true;
  environment?: string;
  user?: string;
  confirm?: true;
}

const ImportedFlags = exactly({
  dry_run: Type.Boolean(),
  /** The product that wrote the file. */
  format: Type.String(),
  /** The environment that was taken from a file with several. */
  environment: orNull(Type.String()),
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
  /** Keys of protected flags that the import changes, directly or indirectly; left out where there are none. */
  needs_approval: Type.Optional(Type.Array(Type.String())),
  /** What of another product's flags has no place here. */
  not_mapped: Type.Array(exactly({ flag: Type.String(), part: Type.String(), reason: Type.String() })),
});

export const importFlags = withJson(
  withSettings(new Command("import"), ["data-dir"]),
  ImportedFlags,
  "print the difference as JSON",
)
  .description("Import flags and cohorts from a file, matched by flag key and cohort name.")
  .argument("<file>", "file from `flags export` or another product; - for standard input", fileName)
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .option("--environment <name>", "environment to import, if the file has several")
  .option("--dry-run", "print what would change, change nothing")
  .option("--confirm", confirmWords)
  .option("--user <email>", creatorWords)
  .addHelpText(
    "after",
    "\nThe file is imported in one change; other flags are kept; a second import changes nothing.\n\n" +
      `Files of ${foreignProducts.join(", ")} are recognised by what is in them.\n` +
      "What cannot be taken over is listed; a flag that would behave differently is imported switched off.\n\n" +
      "Examples:\n  flagkeep flags import flags.yaml --dry-run\n  flagkeep flags import flags.yaml --project 2\n" +
      "  flagkeep flags import launchdarkly.json --environment production --dry-run",
  )
  .action(
    run((file: string, options: ImportOptions) =>
      withProject(options, ({ metadata, writing, project, flagSets }) => {
        const isDryRun = options.dryRun === true;
        const root = parseFile(textOf(file));
        const foreign = readForeign(root, options.environment);
        const unreadable: string[] = [];
        const document = foreign?.document ?? documentIn(root, (message) => unreadable.push(message));
        const {
          differences,
          remarks: ofImport,
          needsApproval,
          notTaken,
        } = importDocument(writing, {
          by: creatingAuthor(metadata, project.organizationId, options.user),
          projectId: project.id,
          document,
          switchedOff: foreign?.switchedOff ?? new Set(),
          groupTypes: flagSets.of(project.id).groupTypes,
          toFields: (item) => flagFields(parseFields(FlagInput, item)),
          isDryRun,
          isConfirmed: options.confirm === true,
          now: new Date(),
        });
        const remarks = [
          ...(foreign?.remarks ?? []),
          ...unreadable.map((message) => `Not taken over: ${message}`),
          ...ofImport,
        ];
        const imported: Static<typeof ImportedFlags> = {
          dry_run: isDryRun,
          format: foreign?.product ?? "Flagkeep",
          environment: foreign?.environment ?? null,
          differences: differences.map(shown),
          remarks,
          ...(needsApproval.length === 0 ? {} : { needs_approval: needsApproval }),
          not_mapped: [...(foreign?.notMapped ?? []), ...notTaken],
        };
        const omitted = new Set(notTaken.filter(({ part }) => part === wholeFlag).map(({ flag }) => flag));
        const isNothingRead =
          document.flags.every(({ key }) => omitted.has(key)) && document.cohorts.length === 0;
        if (isNothingRead && omitted.size + unreadable.length > 0) process.exitCode = exitFailed;
        if (options.json) return printJson(imported);
        for (const line of differenceLines(differences)) print(line);
        for (const remark of remarks) process.stderr.write(`${remark}\n`);
        for (const { flag, part, reason } of imported.not_mapped) {
          process.stderr.write(`Not taken over: flag ${flag}, ${part}: ${reason.replace(/\.$/, "")}.\n`);
        }
        if (foreign !== undefined) {
          const from = foreign.environment === undefined ? "" : `, environment ${foreign.environment}`;
          const { length } = foreign.document.flags;
          const count = `${length} ${length === 1 ? "flag" : "flags"}`;
          const shares = foreign.keepsShares ? "" : " Users are re-bucketed.";
          print(`${foreign.product}${from}: ${count} read.${shares}`);
        }
        if (isDryRun && needsApproval.length > 0) {
          print(`Flags that need approval, so the import needs --confirm: ${needsApproval.join(", ")}.`);
        }
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
