import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { DateTime, NonNegativeInt, nullable, strictObject } from "../../src/lib/schema.ts";
import { isoFromMicros } from "../../src/lib/time.ts";
import type { UnknownKey } from "../../src/operate/unknown-keys.ts";
import { listWarnings } from "../../src/persons/warnings.ts";
import { callControl } from "../../src/rpc/control.ts";
import { positiveInteger, printJson, printTable, run, withJson } from "../output.ts";
import { getDataDir, withSettings } from "../settings.ts";
import { resolveProjects, withMetadata, withPeople } from "../stores.ts";

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

export const warnings = withJson(
  withSettings(new Command("warnings"), ["data-dir"]),
  Type.Array(WarningRecord),
  "print the warnings as JSON",
)
  .description("Show ingestion warnings of the last 30 days and unknown API keys.")
  .option("--project <id>", "only this project", positiveInteger)
  .option("--limit <count>", "maximum number of rows", positiveInteger, 100)
  .addHelpText("after", "\nExample:\n  flagkeep warnings --project 1 --json")
  .action(
    run(async (options: { project?: number; limit: number; json?: true }) => {
      const { limit } = options;
      const projects = withMetadata(options, (metadata) => resolveProjects(metadata, options.project));
      const unknown = options.project === undefined ? await unknownKeys(getDataDir(options as never)) : [];
      const stored = withPeople(options, (people) =>
        projects.flatMap(({ id }) => listWarnings(people, id, { limit })),
      )
        .sort((a, b) => b.lastMicros - a.lastMicros)
        .map(
          (warning): Static<typeof WarningRecord> => ({
            project_id: warning.projectId,
            type: warning.type,
            subject: warning.subject,
            count: warning.count,
            first_at: isoFromMicros(warning.firstMicros),
            last_at: isoFromMicros(warning.lastMicros),
            details: warning.details,
          }),
        );
      const found = [...unknown, ...stored].slice(0, limit);
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
  );

/** Warnings for apps that use an unknown or replaced key. */
async function unknownKeys(dataDir: string): Promise<Static<typeof WarningRecord>[]> {
  const found = (await callControl<UnknownKey[]>(dataDir, "unknown_keys")) ?? [];
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
