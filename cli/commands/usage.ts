import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { countUsage, type UsageBody } from "../../src/operations/ingestion.ts";
import { listAllProjects } from "../../src/operations/projects.ts";
import { withCaller } from "../operations/command.ts";
import { projectIds } from "../operations/projects.ts";
import { type CallOptions, withServer } from "../operations/server.ts";
import { positiveInteger, printJson, printTable, run, withJson } from "../output.ts";
import { withSettings } from "../settings.ts";

interface Options extends CallOptions {
  from?: string;
  to?: string;
}

const kinds = ["identified", "anonymous", "historical", "billable", "duplicates", "dropped"] as const;
type Counts = Static<typeof Counts>;
const Counts = strictObject({
  identified: NonNegativeInt,
  anonymous: NonNegativeInt,
  historical: NonNegativeInt,
  /** Identified and anonymous events. */
  billable: NonNegativeInt,
  duplicates: NonNegativeInt,
  dropped: NonNegativeInt,
});
const Usage = strictObject({
  results: Type.Array(
    strictObject({
      project_id: Type.Integer(),
      /** In UTC. */
      date: Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\d$" }),
      ...Counts.properties,
    }),
  ),
  totals: Counts,
});

export const usage = withJson(
  withSettings(new Command("usage"), ["data-dir"]),
  Usage,
  "print the counts as JSON",
)
  .description("Show accepted events per project and UTC day; historical events are never billable.")
  .option("--project <id>", "only this project", positiveInteger)
  .option("--from <date>", "first day, for example 2026-11-01", day)
  .option("--to <date>", "last day", day)
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep usage\n  flagkeep usage --project 1 --from 2026-11-01 --to 2026-11-30 --json",
  )
  .action(
    run((options: Options) => {
      const { from, to } = options;
      if (from !== undefined && to !== undefined && from > to) {
        throw new InvalidFieldError("from", "invalid_input", "--from is a later day than --to.");
      }
      return withCaller(listAllProjects, options, async (caller) => {
        const days = {
          ...(from === undefined ? {} : { date_from: from }),
          ...(to === undefined ? {} : { date_to: to }),
        };
        const counted: { id: number; usage: Static<typeof UsageBody> }[] = [];
        for (const id of await projectIds(caller, options))
          counted.push({
            id,
            usage: (await caller.in(id).call(countUsage, days)) as Static<typeof UsageBody>,
          });
        const results = counted.flatMap(({ id, usage }) =>
          usage.results.map((ofDay) => ({ project_id: id, ...ofDay })),
        );
        const totals = Object.fromEntries(
          kinds.map((kind) => [kind, counted.reduce((sum, { usage }) => sum + usage.totals[kind], 0)]),
        ) as unknown as Counts;
        const counts: Static<typeof Usage> = { results, totals };
        if (options.json) return printJson(counts);
        const cells = (counts: Counts) => kinds.map((kind) => String(counts[kind]));
        printTable(
          ["project", "date", ...kinds],
          [
            ...results.map((ofDay) => [String(ofDay.project_id), ofDay.date, ...cells(ofDay)]),
            ["all", "", ...cells(totals)],
          ],
        );
      });
    }),
  );
withServer(usage);

function day(text: string): string {
  const date = new Date(`${text}T00:00:00Z`);
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== text) {
    throw new InvalidArgumentError("Expected a day, for example 2026-11-01.");
  }
  return text;
}
