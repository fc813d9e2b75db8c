import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { AppError } from "../../src/lib/errors.ts";
import { Count, exactly, Instant } from "../../src/lib/schema.ts";
import { canonicalUuid } from "../../src/lib/uuid.ts";
import { microsToWire } from "../../src/lib/wire-time.ts";
import { Deletion } from "../../src/people/deletion.ts";
import { displayName, type Person } from "../../src/people/person.ts";
import { distinctIdsOf, personByDistinctId, personByUuid } from "../../src/people/reader.ts";
import type { DeletePerson } from "../../src/serve/person-eraser.ts";
import { analysisOf, analysisSettings } from "../analysis.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, print, printJson, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { type ProjectStores, withProject } from "../stores.ts";

/** The project has no such person. */
class NoSuchPerson extends AppError {
  readonly code = "no_such_person";
  override readonly hint =
    "Give a uuid or a distinct id; `flagkeep query 'SELECT * FROM persons'` shows all.";
  constructor(name: string) {
    super(`There is no person ${name}.`);
  }
}

interface PersonOptions {
  project?: number;
  json?: true;
}

const PersonRecord = exactly({
  uuid: Type.String(),
  name: Type.String(),
  /** The main one first. */
  distinct_ids: Type.Array(Type.String()),
  properties: Type.Record(Type.String(), Type.Unknown()),
  is_identified: Type.Boolean(),
  created_at: Instant,
  version: Count,
});

const get = withJson(withSettings(new Command("get"), ["data-dir"]), PersonRecord)
  .description("Show a person: distinct ids, properties, creation time.")
  .argument("<person>", "person uuid or distinct id")
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .addHelpText("after", "\nExample:\n  flagkeep persons get kim@example.com")
  .action(
    run((name: string, options: PersonOptions) =>
      withProject(options, (stores) => {
        const record = personRecord(stores, personNamed(stores, name));
        if (options.json) return printJson(record);
        print(`Person    ${record.name}`);
        print(`uuid      ${record.uuid}`);
        print(`Since     ${record.created_at}${record.is_identified ? ", identified" : ""}`);
        for (const id of record.distinct_ids) print(`Id        ${id}`);
        print(JSON.stringify(record.properties, null, 2));
      }),
    ),
  );

const remove = withJson(withSettings(new Command("delete"), analysisSettings), Deletion)
  .description("Delete a person with properties, distinct ids and cohort memberships; events are kept.")
  .argument("<person>", "person uuid or distinct id")
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .addHelpText(
    "after",
    "\nDeletion is permanent and survives a rebuild. A later event creates a new person for\n" +
      "its distinct id; backups that are there already still hold the person.\n\n" +
      "Example:\n  flagkeep persons delete kim@example.com --project 1",
  )
  .action(
    run(async (name: string, options: PersonOptions) => {
      const asked = withProject(options, (stores) => ({
        project_id: stores.project.id,
        uuid: personNamed(stores, name).uuid,
        by: stores.by,
      }));
      const deletion = await analysisOf(options, (appliance) =>
        appliance.tell<Static<typeof Deletion>>("delete_person", asked satisfies DeletePerson),
      );
      if (options.json) return printJson(deletion);
      for (const line of [deletion.detail, deletion.events, deletion.backups.detail]) print(line);
    }),
  );

/** @throws {NoSuchPerson} */
function personNamed({ people, project }: ProjectStores, name: string): Person {
  const found =
    personByUuid(people, project.id, canonicalUuid(name) ?? name) ??
    personByDistinctId(people, project.id, name);
  if (found === undefined) throw new NoSuchPerson(name);
  return found;
}

function personRecord({ people }: ProjectStores, person: Person): Static<typeof PersonRecord> {
  return {
    uuid: person.uuid,
    name: displayName(person),
    distinct_ids: distinctIdsOf(people, [person]).get(person.id) ?? [person.mainDistinctId],
    properties: person.properties,
    is_identified: person.isIdentified,
    created_at: microsToWire(person.createdMicros),
    version: person.version,
  };
}

export const persons = new Command("persons")
  .description("Inspect and delete persons.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep persons get kim@example.com\n  flagkeep persons delete kim@example.com",
  )
  .addCommand(get)
  .addCommand(remove);
