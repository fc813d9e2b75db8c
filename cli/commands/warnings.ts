import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { Count, exactly, Instant } from "../../src/lib/schema.ts";
import { isoFromMicros } from "../../src/lib/time.ts";
import { listWarnings } from "../../src/people/warnings.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenProjects, withMetadata, withPeople } from "../stores.ts";

const WarningRecord = exactly({
  project_id: Type.Integer(),
  type: Type.String(),
  /** What it is about, usually a distinct id. */
  subject: Type.String(),
  count: Count,
  first_at: Instant,
  last_at: Instant,
  /** Differs by type. */
  details: Type.Record(Type.String(), Type.Unknown()),
});

export const warnings = withJson(
  withSettings(new Command("warnings"), ["data-dir"]),
  Type.Array(WarningRecord),
  "print the warnings as JSON",
)
  .description("Show what was odd about events that arrived in the last 30 days, last seen first.")
  .option("--project <id>", "of this project only", positiveInteger)
  .option("--limit <count>", "at most this many rows", positiveInteger, 100)
  .addHelpText("after", "\nExample:\n  flagkeep warnings --project 1 --json")
  .action(
    run((options: { project?: number; limit: number; json?: true }) => {
      const { limit } = options;
      const projects = withMetadata(options, (metadata) => chosenProjects(metadata, options.project));
      const found = withPeople(options, (people) =>
        projects.flatMap(({ id }) => listWarnings(people, id, { limit })),
      )
        .sort((a, b) => b.lastMicros - a.lastMicros)
        .slice(0, limit)
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
      if (options.json) return printJson(found);
      printTable(
        ["project", "type", "subject", "count", "last seen"],
        found.map((warning) => [
          String(warning.project_id),
          warning.type,
          warning.subject,
          String(warning.count),
          warning.last_at.slice(0, 19),
        ]),
      );
    }),
  );
