import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { DateTime, NonNegativeInt, nullable, strictObject } from "../../src/lib/schema.ts";
import type { UnknownKey } from "../../src/operate/unknown-keys.ts";
import { listAllWarnings, type WarningPage } from "../../src/operations/ingestion.ts";
import { listAllProjects } from "../../src/operations/projects.ts";
import { callControl } from "../../src/rpc/control.ts";
import { withCaller } from "../operations/command.ts";
import { projectIds } from "../operations/projects.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { positiveInteger, printJson, printTable, run, withJson } from "../output.ts";
import { getDataDir, withSettings } from "../settings.ts";

const WarningRecord = strictObject({
  /** Null for `unknown_project_key`: its project is unknown. */
  project_id: nullable(Type.Integer()),
  type: Type.String(),
  /** Subject of the warning, usually a distinct id. */
  subject: Type.String(),
  count: NonNegativeInt,
  first_at: DateTime,
  last_at: DateTime,
  /** Depends on the type. */
  details: Type.Record(Type.String(), Type.Unknown()),
});

interface Options extends CallOptions {
  limit: number;
}

export const warnings = withJson(
  withSettings(new Command("warnings"), ["data-dir"]),
  Type.Array(WarningRecord),
  "print the warnings as JSON",
)
  .description("Show ingestion warnings of the last 30 days and unknown API keys.")
  .option("--project <id>", "only this project", positiveInteger)
  .option("--limit <count>", "maximum number of rows", positiveInteger, 100)
  .addHelpText(
    "after",
    "\nUnknown API keys are shown in the data directory of a running server, not with --url.\n" +
      "\nExamples:\n  flagkeep warnings --project 1 --json\n  flagkeep warnings --url https://flags.example.com",
  )
  .action(
    run((options: Options) =>
      withCaller(listAllProjects, options, async (caller) => {
        const stored: Static<typeof WarningRecord>[] = [];
        for (const id of await projectIds(caller, options)) {
          const { results } = (await caller.in(id).call(listAllWarnings, {})) as Static<typeof WarningPage>;
          stored.push(
            ...results.flatMap(({ warnings: ofType }) => ofType.map((warning) => toRecord(id, warning))),
          );
        }
        stored.sort((a, b) => (a.last_at < b.last_at ? 1 : -1));
        const found = [...(await unknownKeys(options)), ...stored].slice(0, options.limit);
        if (options.json) return printJson(found);
        printTable(
          ["project", "type", "subject", "count", "last seen"],
          found.map((warning) => [
            warning.project_id === null ? "-" : String(warning.project_id),
            warning.type,
            warning.subject,
            String(warning.count),
            warning.last_at.slice(0, 19),
          ]),
        );
      }),
    ),
  );
withServer(warnings);

type ListedWarning = Static<typeof WarningPage>["results"][number]["warnings"][number];

function toRecord(projectId: number, { timestamp, ...warning }: ListedWarning): Static<typeof WarningRecord> {
  const { type, subject, count, first_at, details } = warning;
  return { project_id: projectId, type, subject, count, first_at, last_at: timestamp, details };
}

/** Warnings for apps that use an unknown or replaced key. */
async function unknownKeys(options: Options): Promise<Static<typeof WarningRecord>[]> {
  if (options.project !== undefined || getServer(options) !== undefined) return [];
  const found = (await callControl<UnknownKey[]>(getDataDir(options as never), "unknown_keys")) ?? [];
  return found.map(({ mask, count, first_at, last_at }) => ({
    project_id: null,
    type: "unknown_project_key",
    subject: mask,
    count,
    first_at,
    last_at,
    details: {},
  }));
}
