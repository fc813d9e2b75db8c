import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { CohortBody } from "../../src/cohorts/api/cohort-schemas.ts";
import { cohortCommands, listAllCohorts } from "../../src/operations/cohorts.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { listAllProjects } from "../../src/operations/projects.ts";
import { withJson } from "../json-schema.ts";
import { operationGroup, withCaller } from "../operations/command.ts";
import { CohortStores } from "../operations/flag-stores.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { positiveInteger, printJson, printTable, run } from "../output.ts";
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

/** The given project, or all; on a server, the unarchived ones. */
async function projectIds(caller: Caller, options: CallOptions): Promise<number[]> {
  if (options.project !== undefined) return [options.project];
  const listed = [false, true].map((archived) => caller.list(listAllProjects, { archived }));
  const [open, archived] = (await Promise.all(listed)) as { id: number }[][];
  return [...open!, ...(getServer(options) === undefined ? archived! : [])].map(({ id }) => id);
}

export const cohorts = operationGroup(
  "cohorts",
  "List, create, update and delete cohorts.",
  ["cohorts list --json", "cohorts create Beta --is-static"],
  cohortCommands,
  (metadata, options) => new CohortStores(metadata, options),
).addCommand(list);
