import { Command } from "commander";
import { readCohorts } from "../../src/metadata/cohorts.ts";
import { positiveInteger, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenProjects, withMetadata } from "../stores.ts";

const list = withSettings(new Command("list"), ["data-dir"])
  .description("List the cohorts.")
  .option("--project <id>", "of this project only", positiveInteger)
  .option("--json", "print the cohorts as JSON")
  .addHelpText("after", "\nExample:\n  flagkeep cohorts list --project 1 --json")
  .action(
    run((options: { project?: number; json?: true }) =>
      withMetadata(options, (metadata) => {
        const found = chosenProjects(metadata, options.project)
          .flatMap(({ id }) => readCohorts(metadata.db, id))
          .map((cohort) => ({
            id: cohort.id,
            project_id: cohort.projectId,
            name: cohort.name,
            description: cohort.description,
            is_static: cohort.isStatic,
            count: cohort.personCount,
            last_calculation: cohort.lastCalculation?.toISOString() ?? null,
            created_at: cohort.createdAt.toISOString(),
          }));
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
  .description("Look at cohorts; `flagkeep flags import` and the API make them.")
  .addCommand(list);
