import type { Static } from "@sinclair/typebox";
import { Command } from "commander";
import { RecreatedPersons, recreatePersons } from "../../src/backup/recovery/recreate-persons.ts";
import { AppError } from "../../src/lib/errors.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { deleteOnePerson, listAllPersons } from "../../src/operations/persons.ts";
import { PersonBody } from "../../src/persons/api/person-schemas.ts";
import { Deletion } from "../../src/persons/deletion.ts";
import type { DeletePerson } from "../../src/serve/person-deletion.ts";
import { engineSessionSettings, openEngineSession } from "../engine-session.ts";
import { operationCommand, withCaller } from "../operations/command.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { projectOption } from "../options.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized, withProject } from "../stores.ts";

class PersonNotFoundError extends AppError {
  readonly code = "no_such_person";
  override readonly hint = "Use a UUID or a distinct ID; `flagkeep query 'SELECT * FROM persons'` shows all.";
  constructor(name: string) {
    super(`Person ${name} does not exist.`);
  }
}

type PersonRecord = Static<typeof PersonBody>;

const get = withJson(withSettings(new Command("get"), ["data-dir"]), PersonBody)
  .description("Show a person: distinct ids, properties, creation time.")
  .argument("<person>", "person uuid or distinct id")
  .addOption(projectOption)
  .addHelpText("after", "\nExample:\n  flagkeep persons get kim@example.com")
  .action(
    run((name: string, options: CallOptions) =>
      withCaller(listAllPersons, options, async (caller) => {
        const person = await personNamed(caller, name);
        if (options.json) return printJson(person);
        print(`Person    ${person.name}`);
        print(`uuid      ${person.uuid}`);
        print(`Since     ${person.created_at}${person.is_identified ? ", identified" : ""}`);
        for (const id of person.distinct_ids) print(`Id        ${id}`);
        print(JSON.stringify(person.properties, null, 2));
      }),
    ),
  );

const remove = withJson(withSettings(new Command("delete"), engineSessionSettings), Deletion)
  .description("Delete a person with properties, distinct ids and cohort memberships; events are kept.")
  .argument("<person>", "person uuid or distinct id")
  .addOption(projectOption)
  .addHelpText(
    "after",
    "\nDeletion is permanent and survives a rebuild. A later event creates a new person for\n" +
      "its distinct id; existing backups still contain the person.\n\n" +
      "Example:\n  flagkeep persons delete kim@example.com --project 1",
  )
  .action(
    run(async (name: string, options: CallOptions) => {
      let deletion: Deletion;
      await withCaller(listAllPersons, options, async (caller) => {
        const { uuid } = await personNamed(caller, name);
        deletion = await (getServer(options) === undefined
          ? deleteLocally(uuid, options)
          : (caller.call(deleteOnePerson, { uuid }) as Promise<Deletion>));
      });
      if (options.json) return printJson(deletion!);
      for (const line of [deletion!.detail, deletion!.events, deletion!.backups.detail]) print(line);
    }),
  );

/** Deletes through the journal, which a running server or this process has open. */
async function deleteLocally(uuid: string, options: CallOptions): Promise<Deletion> {
  const requested = withProject(options, ({ project, by }) => ({ project_id: project.id, uuid, by }));
  return await openEngineSession(options, (server) =>
    server.send<Deletion>("delete_person", requested satisfies DeletePerson),
  );
}

for (const command of [get, remove]) withServer(command);

const recreate = withJson(
  withSettings(new Command("recreate"), ["data-dir", "duckdb-memory-limit", "duckdb-threads"]),
  RecreatedPersons,
)
  .description("Replace a lost or corrupt people.sqlite with an empty one; the server must be stopped.")
  .requiredOption("--accept-loss", "confirm that persons, groups and static cohort members are lost")
  .addHelpText(
    "after",
    "\nUse it only without a usable backup: `flagkeep backup restore` restores persons. Events are kept and\n" +
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
async function personNamed(caller: Caller, name: string): Promise<PersonRecord> {
  // An empty filter would match everyone.
  for (const filter of name === "" ? [] : [{ uuid: name }, { distinct_id: name }]) {
    const { results } = (await caller.call(listAllPersons, filter)) as { results: PersonRecord[] };
    if (results.length > 0) return results[0]!;
  }
  throw new PersonNotFoundError(name);
}

export const persons = new Command("persons")
  .description("Inspect and delete persons.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep persons get kim@example.com\n  flagkeep persons delete kim@example.com",
  )
  .addCommand(operationCommand(listAllPersons))
  .addCommand(get)
  .addCommand(remove)
  .addCommand(recreate);
