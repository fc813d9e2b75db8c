import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { importProject, type ProjectImport } from "../../src/flag-objects/import-project.ts";
import { toObjects } from "../../src/flag-objects/read-objects.ts";
import { FlagInput, flagFields } from "../../src/flags/fields.ts";
import { differenceLines } from "../../src/flags/import-export/difference.ts";
import { parseFile, serializeDocument, toDocument } from "../../src/flags/import-export/read-document.ts";
import { readVendorFile, vendorProducts } from "../../src/flags/import-export/vendors/read-vendor-file.ts";
import { parseFields } from "../../src/http/fields.ts";
import { AppError } from "../../src/lib/errors.ts";
import { nullable, strictObject } from "../../src/lib/schema.ts";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import { objectKinds } from "../../src/operations/flag-document.ts";
import { exportDocument, exportFlagDocument, FlagDocumentBody } from "../../src/operations/flag-export.ts";
import { countCohortMembers } from "../../src/persons/cohort-members.ts";
import { changeTime } from "../cluster-stores.ts";
import { confirmHelp } from "../operations/command.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { projectOption } from "../options.ts";
import { describeJson, exitFailed, fileName, print, printJson, run, withJson } from "../output.ts";
import { withSettings } from "../settings.ts";
import { creatingAuthor, creatorHelp, withProject } from "../stores.ts";
import { omittedLine, turnedOffLine, withFlags } from "./flags-common.ts";

/** The file already exists, or does not exist. */
class InvalidFileError extends AppError {
  readonly code = "wrong_file";
}

interface ExportOptions extends CallOptions {
  output?: string;
  withSecrets?: true;
  force?: true;
}

export const exportFlags = withSettings(new Command("export"), ["data-dir"])
  .description(
    "Export a project's flags and cohorts, experiments, early access features and surveys to one YAML or JSON file.",
  )
  .addOption(projectOption)
  .option("-o, --output <file>", "output file; default: standard output", fileName)
  .option("--force", "overwrite an existing file")
  .option("--json", "write JSON instead of YAML; implied by a .json file name")
  .option("--with-secrets", "include encrypted payloads in plaintext")
  .addHelpText(
    "after",
    "\nThe members of static cohorts are not exported. Holdouts and saved metrics belong to the experiments.\n" +
      "On a server, the key must be allowed to read all of these.\n\n" +
      "Examples:\n  flagkeep flags export > flags.yaml\n  flagkeep flags export --project 2 -o flags.json",
  )
  .action(
    run(async (options: ExportOptions) => {
      const { output } = options;
      const isJson = options.json || output?.endsWith(".json");
      const text = serializeDocument(await readDocument(options), isJson ? "json" : "yaml");
      if (output === undefined) return void process.stdout.write(text);
      if (existsSync(output) && !options.force) {
        throw new InvalidFileError(`${output} already exists; --force replaces it.`);
      }
      writeFileSync(output, text);
    }),
  );
withServer(exportFlags);
describeJson(exportFlags, FlagDocumentBody);

type ExportedDocument = ReturnType<typeof exportDocument>;

/** @throws {InvalidSettingError} secrets of a server. */
async function readDocument(options: ExportOptions): Promise<ExportedDocument> {
  if (!options.withSecrets) {
    let document: unknown;
    await withFlags(options, async (caller) => {
      document = await caller.call(exportFlagDocument, {});
    });
    return document as ExportedDocument;
  }
  if (getServer(options) !== undefined)
    throw new InvalidSettingError("--with-secrets needs the data directory: a server exports no secrets.");
  return withProject(options, (stores) =>
    exportDocument({ stores, project: stores.project }, stores.writing.payloads),
  );
}

interface ImportOptions {
  project?: number;
  json?: true;
  dryRun?: true;
  environment?: string;
  user?: string;
  confirm?: true;
}

const ImportedFlags = strictObject({
  dry_run: Type.Boolean(),
  /** The product that wrote the file. */
  format: Type.String(),
  /** The selected environment of a file with several. */
  environment: nullable(Type.String()),
  differences: Type.Array(
    strictObject({
      kind: Type.Union(
        ["flag", "cohort", ...objectKinds.map(({ kind }) => kind)].map((kind) => Type.Literal(kind)),
      ),
      name: Type.String(),
      change: Type.Union([Type.Literal("created"), Type.Literal("updated")]),
      members: Type.Array(
        strictObject({
          path: Type.String(),
          /** Absent for new items. */
          before: Type.Optional(Type.Unknown()),
          /** Absent for removed items. */
          after: Type.Optional(Type.Unknown()),
        }),
      ),
    }),
  ),
  remarks: Type.Array(Type.String()),
  /** Keys of protected flags that the import changes, directly or indirectly; absent if none. */
  needs_approval: Type.Optional(Type.Array(Type.String())),
  /** Keys of the flags that are on in the file, and off here because of parts in `not_mapped`; absent if none. */
  turned_off: Type.Optional(Type.Array(Type.String())),
  /** Parts of another product's flags that cannot be mapped. */
  not_mapped: Type.Array(strictObject({ flag: Type.String(), part: Type.String(), reason: Type.String() })),
});

export const importFlags = withJson(
  withSettings(new Command("import"), ["data-dir"]),
  ImportedFlags,
  "print the difference as JSON",
)
  .description(
    "Import flags, cohorts, experiments, early access features and surveys from a file, matched by key or name.",
  )
  .argument("<file>", "file from `flags export` or another product; - for standard input", fileName)
  .addOption(projectOption)
  .option("--environment <name>", "environment to import, if the file has several")
  .option("--dry-run", "print what would change, change nothing")
  .option("--confirm", confirmHelp)
  .option("--user <email>", creatorHelp)
  .addHelpText(
    "after",
    "\nThe file is imported in one change; other flags are kept; a second import changes nothing.\n\n" +
      `Files of ${vendorProducts.join(", ")} are detected by their content.\n` +
      "Unsupported parts are listed; a flag that would behave differently is imported turned off.\n\n" +
      "Examples:\n  flagkeep flags import flags.yaml --dry-run\n  flagkeep flags import flags.yaml --project 2\n" +
      "  flagkeep flags import launchdarkly.json --environment production --dry-run",
  )
  .action(
    run((file: string, options: ImportOptions) =>
      withProject(options, ({ metadata, writing, project, people, flagSets }) => {
        const isDryRun = options.dryRun === true;
        const root = parseFile(toDisplayString(file));
        const foreign = readVendorFile(root, options.environment);
        const unreadable: string[] = [];
        const document = foreign?.document ?? toDocument(root, (message) => unreadable.push(message));
        const objects = toObjects(foreign === undefined ? root : {}, (message) => unreadable.push(message));
        const {
          differences,
          remarks: ofImport,
          needsApproval,
          omitted,
          turnedOff,
          isNothingImported,
        } = importProject(
          writing,
          {
            by: creatingAuthor(metadata, project.organizationId, options.user),
            projectId: project.id,
            document,
            switchedOff: foreign?.switchedOff ?? new Set(),
            hasMembers: (cohortId) => countCohortMembers(people, cohortId) > 0,
            groupTypes: flagSets.get(project.id).groupTypes,
            toFields: (item) => flagFields(parseFields(FlagInput, item)),
            isDryRun,
            isConfirmed: options.confirm === true,
            now: changeTime(),
          },
          objects,
        );
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
          ...(turnedOff.length === 0 ? {} : { turned_off: turnedOff }),
          not_mapped: [...(foreign?.notMapped ?? []), ...omitted],
        };
        const unread = (foreign?.unread ?? 0) + unreadable.length;
        const items = document.flags.length + document.cohorts.length + Object.values(objects).flat().length;
        if (isNothingImported && items + unread > 0) process.exitCode = exitFailed;
        if (options.json) return printJson(imported);
        for (const line of differenceLines(differences)) print(line);
        for (const remark of remarks) process.stderr.write(`${remark}\n`);
        for (const obstacle of imported.not_mapped) process.stderr.write(`${omittedLine(obstacle)}\n`);
        if (foreign !== undefined) {
          const from = foreign.environment === undefined ? "" : `, environment ${foreign.environment}`;
          const { length } = foreign.document.flags;
          const count = `${length} ${length === 1 ? "flag" : "flags"}`;
          const shares = foreign.preservesPercentages ? "" : " Users are re-bucketed. Equality ignores case.";
          print(`${foreign.product}${from}: ${count} read.${shares}`);
        }
        if (turnedOff.length > 0) print(turnedOffLine(turnedOff, isDryRun));
        if (isDryRun && needsApproval.length > 0) {
          print(`Flags that need approval, so the import needs --confirm: ${needsApproval.join(", ")}.`);
        }
        print(summary(differences, isDryRun));
      }),
    ),
  );

/** JSON has no undefined: absent members are omitted. */
function shown({ members, ...item }: ProjectImport["differences"][number]) {
  return { ...item, members: members.map(({ path, before, after }) => ({ path, before, after })) };
}

function summary(differences: ProjectImport["differences"], isDryRun: boolean): string {
  if (differences.length === 0) return "No differences.";
  const count = (change: string) => differences.filter((item) => item.change === change).length;
  const would = isDryRun ? "would be " : "";
  return `${count("created")} ${would}created, ${count("updated")} ${would}changed.`;
}

function toDisplayString(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new InvalidFileError(`${file} cannot be read (${(error as Error).message}).`);
  }
}
