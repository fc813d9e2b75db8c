/** What commands about one project work with: its stores, opened beside a running appliance, and who acts. */

import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { AppError } from "../src/errors.ts";
import { payloadCipher, readPayloadKey } from "../src/management/payload-cipher.ts";
import { groupTypesFrom } from "../src/management/stored-evaluation.ts";
import { FlagSets } from "../src/metadata/flag-sets.ts";
import type { Author, FlagWriting } from "../src/metadata/flag-writes.ts";
import { isInitialised } from "../src/metadata/initialise.ts";
import { type Metadata, openMetadata } from "../src/metadata/metadata.ts";
import type { Project } from "../src/metadata/project-directory.ts";
import { paths } from "../src/paths.ts";
import { openPeople, type PeopleDb } from "../src/people/open.ts";
import { dataDirOf } from "./settings.ts";

/** There is nothing to work on yet. */
class NotInitialised extends AppError {
  readonly code = "not_initialised";
  override readonly hint = "Run `flagkeep init` or `flagkeep serve` first.";
}

/** The project that was named does not exist, or none was named where there are several. */
class WhichProject extends AppError {
  readonly code = "which_project";
  override readonly hint = "Name one with --project ID.";
}

export interface ProjectStores {
  metadata: Metadata;
  project: Project;
  /** For writing flags as the API does. */
  writing: FlagWriting;
  /** The user of the operating system, for the activity log. */
  author: Author;
  /** Persons and groups, for reading. */
  people: PeopleDb;
  flagSets: FlagSets;
}

/**
 * Opens the stores of a data directory for one of its projects, and closes them after the work.
 *
 * The directory may be in use: a running appliance notices changes by itself.
 *
 * @param options.project an id; may be absent when there is one project.
 * @throws {NotInitialised} @throws {WhichProject}
 */
export function withProject<Result>(
  options: { project?: number; dataDir?: string },
  work: (stores: ProjectStores) => Result,
): Result {
  const folder = dataDirOf(options as Record<string, unknown>);
  const place = paths(folder);
  if (!existsSync(place.metadata)) throw new NotInitialised(`${folder} is not a data directory of Flagkeep.`);
  const metadata = openMetadata(place.metadata);
  let people: PeopleDb | undefined;
  try {
    if (!isInitialised(metadata.db)) throw new NotInitialised(`${folder} holds no organisation yet.`);
    const project = chosenProject(metadata, options.project);
    // Made at the first start; a command may come before it.
    if (!existsSync(place.people)) openPeople(place.people).$client.close();
    people = openPeople(place.people, { readonly: true });
    return work({
      metadata,
      project,
      writing: { metadata, payloads: payloadCipher(readPayloadKey(place.payloadKey)) },
      author: { by: null, trigger: { job_type: "command_line", job_id: userName(), payload: {} } },
      people,
      flagSets: new FlagSets(metadata, groupTypesFrom(people)),
    });
  } finally {
    people?.$client.close();
    metadata.close();
  }
}

function chosenProject(metadata: Metadata, id: number | undefined): Project {
  const projects = metadata.projects.list();
  if (id !== undefined) {
    const named = projects.find((project) => project.id === id);
    if (named === undefined) throw new WhichProject(`There is no project ${id}.`);
    return named;
  }
  if (projects.length === 1) return projects[0]!;
  const names = projects.map((project) => `${project.id} (${project.name})`).join(", ");
  throw new WhichProject(
    projects.length === 0 ? "There is no project." : `There are several projects: ${names}.`,
  );
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
