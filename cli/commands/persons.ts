import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { RecreatedPersons, recreatePersons } from "../../src/backup/recovery/recreate-persons.ts";
import { microsToApiTime } from "../../src/lib/api-time.ts";
import { AppError } from "../../src/lib/errors.ts";
import { canonicalUuid } from "../../src/lib/ids.ts";
import { DateTime, NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { Deletion } from "../../src/persons/deletion.ts";
import { displayName, type Person } from "../../src/persons/person.ts";
import type { DeletePerson } from "../../src/serve/person-deletion.ts";
import { engineSessionSettings, openEngineSession } from "../engine-session.ts";
import { withJson } from "../json-schema.ts";
import { positiveInteger, print, printJson, run } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized, type ProjectStores, withProject } from "../stores.ts";

class PersonNotFoundError extends AppError {
  readonly code = "no_such_person";
  override readonly hint = "Use a UUID or a distinct ID; `flagkeep query 'SELECT * FROM persons'` shows all.";
  constructor(name: string) {
    super(`Person ${name} does not exist.`);
  }
}

interface PersonOptions {
  project?: number;
  json?: true;
}

const PersonRecord = strictObject({
  uuid: Type.String(),
  name: Type.String(),
  /** Primary id first. */
  distinct_ids: Type.Array(Type.String()),
  properties: Type.Record(Type.String(), Type.Unknown()),
  is_identified: Type.Boolean(),
  created_at: DateTime,
  version: NonNegativeInt,
});

const get = withJson(withSettings(new Command("get"), ["data-dir"]), PersonRecord)
  .description("Show a person: distinct ids, properties, creation time.")
  .argument("<person>", "person uuid or distinct id")
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .addHelpText("after", "\nExample:\n  flagkeep persons get kim@example.com")
  .action(
    run((name: string, options: PersonOptions) =>
      withProject(options, async (stores) => {
        const record = await personRecord(stores, await personNamed(stores, name));
        if (options.json) return printJson(record);
        print(`Person    ${record.name}`);
        print(`uuid      ${record.uuid}`);
        print(`Since     ${record.created_at}${record.is_identified ? ", identified" : ""}`);
        for (const id of record.distinct_ids) print(`Id        ${id}`);
        print(JSON.stringify(record.properties, null, 2));
      }),
    ),
  );

const remove = withJson(withSettings(new Command("delete"), engineSessionSettings), Deletion)
  .description("Delete a person with properties, distinct ids and cohort memberships; events are kept.")
  .argument("<person>", "person uuid or distinct id")
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .addHelpText(
    "after",
    "\nDeletion is permanent and survives a rebuild. A later event creates a new person for\n" +
      "its distinct id; existing backups still contain the person.\n\n" +
      "Example:\n  flagkeep persons delete kim@example.com --project 1",
  )
  .action(
    run(async (name: string, options: PersonOptions) => {
      const requested = await withProject(options, async (stores) => ({
        project_id: stores.project.id,
        uuid: (await personNamed(stores, name)).uuid,
        by: stores.by,
      }));
      const deletion = await openEngineSession(options, (server) =>
        server.tell<Static<typeof Deletion>>("delete_person", requested satisfies DeletePerson),
      );
      if (options.json) return printJson(deletion);
      for (const line of [deletion.detail, deletion.events, deletion.backups.detail]) print(line);
    }),
  );

const recreate = withJson(
  withSettings(new Command("recreate"), ["data-dir", "duckdb-memory-limit", "duckdb-threads"]),
  RecreatedPersons,
)
  .description("Replace a lost or corrupt people.sqlite with an empty one; the server must be stopped.")
  .requiredOption("--accept-loss", "confirm that persons, groups and static cohort members are lost")
  .addHelpText(
    "after",
    "\nUse it only without a usable backup: `flagkeep backup restore` brings persons back. Events are kept and\n" +
      "persons are created again by later events; group types are numbered again from 0. A readable file is\n" +
      "never replaced; a corrupt one is moved to journal/quarantine.\n\n" +
      "Example:\n  flagkeep persons recreate --accept-loss --data-dir /var/lib/flagkeep",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configFromOptions(options as never);
      const recreated = await recreatePersons({
        dataDir: assertInitialized(config["data-dir"]),
        settings: { memoryLimitBytes: config["duckdb-memory-limit"], threads: config["duckdb-threads"] },
      });
      if (options.json) return printJson(recreated);
      print("Created an empty people.sqlite. Persons, groups and static cohort members are lost.");
      for (const path of recreated.quarantined) print(`Moved the corrupt file to ${path}.`);
    }),
  );

/** @throws {PersonNotFoundError} */
async function personNamed({ persons: reader, project }: ProjectStores, name: string): Promise<Person> {
  const found =
    (await reader.personByUuid(project.id, canonicalUuid(name) ?? name)) ??
    (await reader.personByDistinctId(project.id, name));
  if (found === undefined) throw new PersonNotFoundError(name);
  return found;
}

async function personRecord(
  { persons: reader }: ProjectStores,
  person: Person,
): Promise<Static<typeof PersonRecord>> {
  const ids = await reader.distinctIds([person]);
  return {
    uuid: person.uuid,
    name: displayName(person),
    distinct_ids: ids.get(person.id) ?? [person.mainDistinctId],
    properties: person.properties,
    is_identified: person.isIdentified,
    created_at: microsToApiTime(person.createdMicros),
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
  .addCommand(remove)
  .addCommand(recreate);
