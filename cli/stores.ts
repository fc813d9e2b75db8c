/** The stores for commands, opened beside a running appliance or without one, and who acts. */

import { existsSync } from "node:fs";
import type { Author } from "../src/accounts/activity.ts";
import { metadataSchemaVersion } from "../src/accounts/db.ts";
import { isInitialised } from "../src/accounts/initialise.ts";
import { type Metadata, openMetadata } from "../src/accounts/metadata.ts";
import { listOrganizations, type Organization } from "../src/accounts/organizations.ts";
import type { Project } from "../src/accounts/project-directory.ts";
import { findUserByEmail, listMembers, membershipLevels, type User } from "../src/accounts/users.ts";
import { FlagSets, groupTypesFrom } from "../src/flags/store/flag-sets.ts";
import type { FlagWriting } from "../src/flags/store/flag-writes.ts";
import { payloadCipher } from "../src/flags/store/payload-cipher.ts";
import { assertPayloadKey, openPayloadKey } from "../src/flags/store/payload-key.ts";
import { AppError, NotFound } from "../src/lib/errors.ts";
import { sqliteVersion } from "../src/lib/sqlite/migrate.ts";
import { lockToLook } from "../src/lock.ts";
import { paths } from "../src/paths.ts";
import { openPeople, type PeopleDb } from "../src/people/open.ts";
import { requireNoEvents } from "../src/serve/data-directory.ts";
import { userName } from "./os-user.ts";
import { dataDirOf } from "./settings.ts";

/** There is nothing to work on yet. */
class NotInitialised extends AppError {
  readonly code = "not_initialised";
  override readonly hint = "Run `flagkeep init` or `flagkeep serve` first.";
}

/** What a command would bring up to date, the server that runs on it could not open any more. */
class OlderServer extends AppError {
  readonly code = "older_server";
  override readonly hint = "Stop it and start this version, or use the executable that it was started with.";
  constructor(folder: string) {
    super(`A Flagkeep of an older version runs on ${folder}, and its data stay as they are meanwhile.`);
  }
}

/** A command has to be told which of several things is meant. */
export class WhichOne extends AppError {
  readonly code = "which_one";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

/** The folder, which is a data directory. @throws {NotInitialised} */
export function requireInitialised(folder: string): string {
  if (existsSync(paths(folder).metadata)) return folder;
  throw new NotInitialised(`${folder} is not a data directory of Flagkeep.`);
}

/**
 * Opens the metadata store, which may be shared with a running appliance: that notices changes by itself.
 *
 * @throws {NotInitialised} @throws {OlderServer} @throws {PayloadKeyError}
 */
export function withMetadata<Result>(options: object, work: (metadata: Metadata) => Result): Result {
  const folder = requireInitialised(dataDirOf(options as Record<string, unknown>));
  requireNoOlderServer(folder);
  const metadata = openMetadata(paths(folder).metadata);
  try {
    if (!isInitialised(metadata.db)) {
      requireNoEvents(folder);
      throw new NotInitialised(`${folder} holds no organisation yet.`);
    }
    assertPayloadKey(paths(folder).payloadKey, metadata);
    return work(metadata);
  } finally {
    metadata.close();
  }
}

/** Looking must not make it impossible to start that server again. */
function requireNoOlderServer(folder: string): void {
  const place = paths(folder);
  const found = sqliteVersion(place.metadata) ?? 0;
  if (found === 0 || found >= metadataSchemaVersion) return;
  const lock = lockToLook(place.lock, folder);
  if (lock === undefined) throw new OlderServer(folder);
  lock.release();
}

/** Opens the store of persons for reading; it is made when no appliance has done so yet. */
export function withPeople<Result>(options: object, work: (people: PeopleDb) => Result): Result {
  const path = paths(dataDirOf(options as Record<string, unknown>)).people;
  if (!existsSync(path)) openPeople(path).$client.close();
  const people = openPeople(path, { readonly: true });
  try {
    return work(people);
  } finally {
    people.$client.close();
  }
}

/** What commands about one project work with. */
export interface ProjectStores {
  metadata: Metadata;
  project: Project;
  /** For writing flags as the API does. */
  writing: FlagWriting;
  /** The user of the operating system, for the activity log. */
  by: Author;
  /** Persons and groups, for reading. */
  people: PeopleDb;
  flagSets: FlagSets;
}

/**
 * Opens the stores for one project and closes them after the work.
 *
 * @param options.project an id; may be absent when there is one project.
 * @throws {NotInitialised} @throws {WhichOne}
 */
export function withProject<Result>(
  options: { project?: number; dataDir?: string },
  work: (stores: ProjectStores) => Result,
): Result {
  const place = paths(dataDirOf(options as Record<string, unknown>));
  return withMetadata(options, (metadata) => {
    const project = chosenProject(metadata, options.project);
    return withPeople(options, (people) => {
      const groupTypes = groupTypesFrom(people);
      return work({
        metadata,
        project,
        writing: {
          metadata,
          groupTypes,
          payloads: payloadCipher(openPayloadKey(place.payloadKey, metadata)),
        },
        by: operator(),
        people,
        flagSets: new FlagSets(metadata, groupTypes),
      });
    });
  });
}

/**
 * The named project, or the only one; archived ones are none.
 *
 * @param how how the command is told which one.
 * @throws {WhichOne}
 */
export function chosenProject(metadata: Metadata, id: number | undefined, how = "--project ID"): Project {
  const all = metadata.projects.list();
  const chosen =
    id === undefined ? (all.length === 1 ? all[0] : undefined) : all.find((one) => one.id === id);
  if (chosen !== undefined) return chosen;
  const archived = id === undefined ? undefined : metadata.projects.find(id);
  if (archived !== undefined) {
    const complaint = `Project ${archived.id} (${archived.name}) is archived.`;
    throw new WhichOne(complaint, `Open it again with \`flagkeep projects archive ${id} --undo\`.`);
  }
  if (all.length === 0)
    throw new WhichOne("There is no open project.", "Make one with `flagkeep projects create`.");
  const complaint = id === undefined ? "There are several projects." : `There is no project ${id}.`;
  const names = all.map((one) => `${one.id} (${one.name})`).join(", ");
  throw new WhichOne(complaint, `Name one with ${how}: ${names}.`);
}

/** The named organisation, or the only one. @throws {WhichOne} */
export function chosenOrganization(metadata: Metadata, id: string | undefined): Organization {
  const all = listOrganizations(metadata.db);
  const chosen =
    id === undefined ? (all.length === 1 ? all[0] : undefined) : all.find((one) => one.id === id);
  if (chosen !== undefined) return chosen;
  const complaint =
    id === undefined ? "There are several organisations." : `There is no organisation with the id ${id}.`;
  const names = all.map((one) => `${one.id} (${one.name})`).join(", ");
  throw new WhichOne(complaint, `Name one with --organization ID: ${names}.`);
}

/** The named project, or all, archived ones too. @throws {WhichOne} */
export function chosenProjects(metadata: Metadata, id: number | undefined): Project[] {
  if (id === undefined) return metadata.projects.list({ includeArchived: true });
  const found = metadata.projects.find(id);
  if (found === undefined)
    throw new WhichOne(`There is no project ${id}.`, "See `flagkeep projects list --all`.");
  return [found];
}

/** Help of the option that `creatorOf` reads. */
export const creatorWords = "user who is shown as the creator; default: the first owner";

/**
 * The user to whom the objects that a command creates belong: the named one, else the only owner, else the first owner who
 * is active (contract, management-api 3.1).
 *
 * @param email of a member of the organization; absent: an owner.
 * @returns undefined where all owners are deactivated. @throws {NotFound}
 */
export function creatorOf(
  { db }: Metadata,
  organizationId: string,
  email: string | undefined,
): User | undefined {
  const members = listMembers(db, organizationId);
  if (email === undefined) {
    const owners = members.filter(({ level, user }) => level >= membershipLevels.owner && user.isActive);
    return owners[0]?.user;
  }
  const named = findUserByEmail(db, email);
  const member = members.find(({ user }) => user.id === named?.id);
  if (member !== undefined) return member.user;
  throw new NotFound(
    `User ${email} is not a member of the organization. \`flagkeep members list\` shows all.`,
  );
}

/** The author of changes that create objects: the operating system user in the activity, `creatorOf` as their creator. */
export function creatingAuthor(
  metadata: Metadata,
  organizationId: string,
  email: string | undefined,
): Author {
  const creatorId = creatorOf(metadata, organizationId, email)?.id;
  return creatorId === undefined ? operator() : { ...operator(), creatorId };
}

/** The operating system user, who has no account, as the author of changes. */
export function operator() {
  const uid = process.geteuid?.();
  const name = uid === undefined ? undefined : userName(uid);
  // A container may run under a number that has no name.
  return { job_type: "command_line", job_id: name ?? `uid ${uid ?? "unknown"}`, payload: {} };
}
