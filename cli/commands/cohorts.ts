import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { readCohorts } from "../../src/cohorts/cohorts.ts";
import { Count, exactly, Instant, orNull } from "../../src/lib/schema.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenProjects, withMetadata } from "../stores.ts";

const CohortRecord = exactly({
  id: Type.Integer(),
  project_id: Type.Integer(),
  name: Type.String(),
  description: Type.String(),
  is_static: Type.Boolean(),
  /** Persons; null as long as it was not counted. */
  count: orNull(Count),
  last_calculation: orNull(Instant),
  created_at: Instant,
});

const list = withJson(
  withSettings(new Command("list"), ["data-dir"]),
  Type.Array(CohortRecord),
  "print the cohorts as JSON",
)
  .description("List cohorts.")
  .option("--project <id>", "only this project", positiveInteger)
  .addHelpText("after", "\nExample:\n  flagkeep cohorts list --project 1 --json")
  .action(
    run((options: { project?: number; json?: true }) =>
      withMetadata(options, (metadata) => {
        const found = chosenProjects(metadata, options.project)
          .flatMap(({ id }) => readCohorts(metadata.db, id))
          .map(
            (cohort): Static<typeof CohortRecord> => ({
              id: cohort.id,
              project_id: cohort.projectId,
              name: cohort.name,
              description: cohort.description,
              is_static: cohort.isStatic,
              count: cohort.personCount,
              last_calculation: cohort.lastCalculation?.toISOString() ?? null,
              created_at: cohort.createdAt.toISOString(),
            }),
          );
        if (options.json) return printJson(found);
        printTable(
          ["id", "project", "name", "kind", "persons"],
          found.map((cohort) => [
            String(cohort.id),
            String(cohort.project_id),
            cohort.name,
            cohort.is_static ? "static" : "by condition",
            cohort.count === null ? "-" : String(cohort.count),
          ]),
        );
      }),
    ),
  );

export const cohorts = new Command("cohorts")
  .description("List cohorts; create them with the API or `flagkeep flags import`.")
  .addHelpText("after", "\nExample:\n  flagkeep cohorts list --json")
  .addCommand(list);
