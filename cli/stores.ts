/** Opens stores for commands, with or without a running server, and determines the author. */

import { existsSync, readFileSync } from "node:fs";
import type { Author } from "../src/accounts/activity.ts";
import { metadataSchemaVersion } from "../src/accounts/db.ts";
import { isInitialized } from "../src/accounts/initialize.ts";
import { type Metadata, openMetadata } from "../src/accounts/metadata.ts";
import { listOrganizations, type Organization } from "../src/accounts/organizations.ts";
import type { Project } from "../src/accounts/project-directory.ts";
import { findUserByEmail, listMembers, membershipLevels, type User } from "../src/accounts/users.ts";
import { FlagSets, groupTypesFrom } from "../src/flags/store/flag-sets.ts";
import type { FlagWriteDeps } from "../src/flags/store/flag-writes.ts";
import { payloadCipher } from "../src/flags/store/payload-cipher.ts";
import { assertPayloadKey, openPayloadKey } from "../src/flags/store/payload-key.ts";
import { AppError, NotFoundError } from "../src/lib/errors.ts";
import { sqliteVersion } from "../src/lib/sqlite.ts";
import { acquireSharedLock } from "../src/lock.ts";
import { paths } from "../src/paths.ts";
import { assertPersonsPresent } from "../src/persons/missing.ts";
import { openPersons, type PersonsDb } from "../src/persons/open.ts";
import type { PersonReader } from "../src/persons/person-reader.ts";
import { SqlitePersonReader } from "../src/persons/sqlite-person-reader.ts";
import { assertNoEvents } from "../src/serve/data-directory.ts";
import { getDataDir } from "./settings.ts";

class NotInitializedError extends AppError {
  readonly code = "not_initialised";
  override readonly hint = "Run `flagkeep init` or `flagkeep serve` first.";
}

/** The command would migrate the store, and the running server could not open it any more. */
class OlderServerError extends AppError {
  readonly code = "older_server";
  override readonly hint = "Stop it and start this version, or use the executable that it was started with.";
  constructor(folder: string) {
    super(`A server of an older version runs on ${folder}; its data cannot be changed meanwhile.`);
  }
}

/** A command requires a selector because several objects match. */
export class AmbiguousSelectorError extends AppError {
  readonly code = "which_one";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

/** Returns the folder. @throws {NotInitializedError} it is not a data directory. */
export function assertInitialized(folder: string): string {
  if (existsSync(paths(folder).metadata)) return folder;
  throw new NotInitializedError(`${folder} is not a Flagkeep data directory.`);
}

/**
 * Opens the metadata store, which a running server may use too: it notices changes automatically.
 *
 * @throws {NotInitializedError} @throws {OlderServerError} @throws {PayloadKeyError}
 */
export function withMetadata<Result>(options: object, work: (metadata: Metadata) => Result): Result {
  const metadata = getOpener(options);
  return closingAfter(
    () => work(metadata),
    () => metadata.close(),
  );
}

/** Closes when the work is done, which may be asynchronous. */
function closingAfter<Result>(work: () => Result, close: () => void): Result {
  let result: Result;
  try {
    result = work();
  } catch (error) {
    close();
    throw error;
  }
  if (result instanceof Promise) return result.finally(close) as Result;
  close();
  return result;
}

function getOpener(options: object): Metadata {
  const folder = assertInitialized(getDataDir(options as Record<string, unknown>));
  assertNoOlderServer(folder);
  const metadata = openMetadata(paths(folder).metadata);
  try {
    if (!isInitialized(metadata.db)) {
      assertNoEvents(folder);
      throw new NotInitializedError(`${folder} contains no organization yet.`);
    }
    assertPayloadKey(paths(folder).payloadKey, metadata);
    return metadata;
  } catch (error) {
    metadata.close();
    throw error;
  }
}

/** Reading must not make it impossible to start that server again. */
function assertNoOlderServer(folder: string): void {
  const dataPaths = paths(folder);
  const found = sqliteVersion(dataPaths.metadata) ?? 0;
  if (found === 0 || found >= metadataSchemaVersion) return;
  const lock = acquireSharedLock(dataPaths.lock, folder);
  if (lock === undefined) throw new OlderServerError(folder);
  lock.release();
}

/** The persons store for reading; created if no server has done so yet. @throws {PersonsMissingError} */
export function openPersonsToRead(options: object): PersonsDb {
  const folder = getDataDir(options as Record<string, unknown>);
  assertPersonsPresent(folder);
  const path = paths(folder).people;
  if (!existsSync(path)) openPersons(path).$client.close();
  return openPersons(path, { readonly: true });
}

/** Opens the persons store for reading; created if no server has done so yet. */
export function withPeople<Result>(options: object, work: (people: PersonsDb) => Result): Result {
  const people = openPersonsToRead(options);
  return closingAfter(
    () => work(people),
    () => people.$client.close(),
  );
}

/** Stores and author of commands about one project. */
export interface ProjectStores {
  metadata: Metadata;
  project: Project;
  /** For writing flags as the API does. */
  writing: FlagWriteDeps;
  /** The operating system user, for the activity log. */
  by: Author;
  /** Persons and groups, for reading. */
  people: PersonsDb;
  persons: PersonReader;
  flagSets: FlagSets;
}

/**
 * Opens the stores for one project and closes them after the work.
 *
 * @param options.project an id; optional if there is one project.
 * @throws {NotInitializedError} @throws {AmbiguousSelectorError}
 */
export function withProject<Result>(
  options: { project?: number; dataDir?: string },
  work: (stores: ProjectStores) => Result,
): Result {
  const storePaths = paths(getDataDir(options as Record<string, unknown>));
  return withMetadata(options, (metadata) => {
    const project = resolveProject(metadata, options.project);
    return withPeople(options, (people) => {
      const groupTypes = groupTypesFrom(people);
      return work({
        metadata,
        project,
        writing: {
          metadata,
          groupTypes,
          payloads: payloadCipher(openPayloadKey(storePaths.payloadKey, metadata)),
        },
        by: osUserAuthor(),
        people,
        persons: new SqlitePersonReader(people),
        flagSets: new FlagSets(metadata, groupTypes),
      });
    });
  });
}

/**
 * The given project, or the only active one.
 *
 * @param how the option that selects one.
 * @throws {AmbiguousSelectorError}
 */
export function resolveProject(metadata: Metadata, id: number | undefined, how = "--project ID"): Project {
  const all = metadata.projects.list();
  const chosen =
    id === undefined ? (all.length === 1 ? all[0] : undefined) : all.find((project) => project.id === id);
  if (chosen !== undefined) return chosen;
  const archived = id === undefined ? undefined : metadata.projects.find(id);
  if (archived !== undefined) {
    const complaint = `Project ${archived.id} (${archived.name}) is archived.`;
    throw new AmbiguousSelectorError(
      complaint,
      `Unarchive it with \`flagkeep projects archive ${id} --undo\`.`,
    );
  }
  if (all.length === 0)
    throw new AmbiguousSelectorError(
      "All projects are archived.",
      "Create one with `flagkeep projects create`.",
    );
  const complaint = id === undefined ? "Several projects exist." : `Project ${id} does not exist.`;
  const names = all.map((project) => `${project.id} (${project.name})`).join(", ");
  throw new AmbiguousSelectorError(complaint, `Name one with ${how}: ${names}.`);
}

/** The given organization, or the only one. @throws {AmbiguousSelectorError} */
export function resolveOrganization(metadata: Metadata, id: string | undefined): Organization {
  const all = listOrganizations(metadata.db);
  const chosen =
    id === undefined
      ? all.length === 1
        ? all[0]
        : undefined
      : all.find((organization) => organization.id === id);
  if (chosen !== undefined) return chosen;
  const complaint = id === undefined ? "Several organizations exist." : `Organization ${id} does not exist.`;
  const names = all.map((organization) => `${organization.id} (${organization.name})`).join(", ");
  throw new AmbiguousSelectorError(complaint, `Name one with --organization ID: ${names}.`);
}

/** The given project, or all, including archived ones. @throws {AmbiguousSelectorError} */
export function resolveProjects(metadata: Metadata, id: number | undefined): Project[] {
  if (id === undefined) return metadata.projects.list({ includeArchived: true });
  const found = metadata.projects.find(id);
  if (found === undefined)
    throw new AmbiguousSelectorError(`Project ${id} does not exist.`, "See `flagkeep projects list --all`.");
  return [found];
}

/** Help of the option that `getCreator` reads. */
export const creatorHelp = "user who is shown as the creator; default: the first owner";

/**
 * Creator of the objects that a command creates: the given user, else the only owner, else the first active owner
 * (contract, management-api 3.1).
 *
 * @param email of a member of the organization; absent: an owner.
 * @returns undefined if all owners are deactivated. @throws {NotFoundError}
 */
export function getCreator(
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
  throw new NotFoundError(
    `User ${email} is not a member of the organization. \`flagkeep members list\` shows all.`,
  );
}

/** Author of changes that create objects: the operating system user in the activity log, `getCreator` as creator. */
export function creatingAuthor(
  metadata: Metadata,
  organizationId: string,
  email: string | undefined,
): Author {
  const creatorId = getCreator(metadata, organizationId, email)?.id;
  return creatorId === undefined ? osUserAuthor() : { ...osUserAuthor(), creatorId };
}

/** The operating system user, who has no account, as the author of changes. */
export function osUserAuthor() {
  const uid = process.geteuid?.();
  const name = uid === undefined ? undefined : userName(uid);
  // A container may run under a uid without a name.
  return { job_type: "command_line", job_id: name ?? `uid ${uid ?? "unknown"}`, payload: {} };
}

/** Undefined for a uid without a name, as in a container. */
function userName(uid: number): string | undefined {
  try {
    for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
      const [name, , id] = line.split(":");
      if (name && id === String(uid)) return name;
    }
  } catch {
    // A container may contain only the executable.
  }
  return undefined;
}
