import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { CohortBody } from "../../src/cohorts/api/cohort-schemas.ts";
import { cohortCommands, listAllCohorts } from "../../src/operations/cohorts.ts";
import { listAllProjects } from "../../src/operations/projects.ts";
import { operationGroup, withCaller } from "../operations/command.ts";
import { CohortStores } from "../operations/flag-stores.ts";
import { projectIds } from "../operations/projects.ts";
import { type CallOptions, withServer } from "../operations/server.ts";
import { positiveInteger, printJson, printTable, run, withJson } from "../output.ts";
import { withSettings } from "../settings.ts";

type CohortOfProject = Static<typeof CohortBody> & { project_id: number };

const list = withJson(
  withSettings(new Command("list"), ["data-dir"]),
  Type.Array(Type.Object({ ...CohortBody.properties, project_id: Type.Integer() })),
  "print the cohorts as JSON",
)
  .description("List cohorts.")
  .option("--project <id>", "only this project", positiveInteger)
  .addHelpText("after", "\nExample:\n  flagkeep cohorts list --project 1 --json")
  .action(
    run((options: CallOptions) =>
      withCaller(listAllProjects, options, async (caller) => {
        const found: CohortOfProject[] = [];
        for (const id of await projectIds(caller, options)) {
          const cohorts = (await caller.in(id).list(listAllCohorts)) as Static<typeof CohortBody>[];
          found.push(...cohorts.map((cohort) => ({ ...cohort, project_id: id })));
        }
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
withServer(list);

export const cohorts = operationGroup(
  "cohorts",
  "List, create, update and delete cohorts.",
  ["cohorts list --json", "cohorts create Beta --is-static"],
  cohortCommands,
  (metadata, options) => new CohortStores(metadata, options),
).addCommand(list);
