/** Persons (contract: management-api 6.4). */

import type { Static } from "@sinclair/typebox";
import type { Metadata } from "../accounts/metadata.ts";
import { findCohort, membership } from "../cohorts/cohorts.ts";
import { unavailable } from "../http/error-mapping.ts";
import { notFound } from "../http/http-error.ts";
import { readBoolean, readPropertyFilters } from "../http/params.ts";
import { int, list, object, optional, string, uuid, withPage } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import {
  filteredPersons,
  namedPerson,
  type PersonFinder,
  parseAfter,
  personBodies,
  readFoundQuery,
} from "../persons/api/person-pages.ts";
import {
  examplePerson as example,
  PersonBody,
  PersonPage,
  peopleLimit,
} from "../persons/api/person-schemas.ts";
import { Deletion, type PersonDeleter } from "../persons/deletion.ts";
import type { Person } from "../persons/person.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { cursorListOperation, getAuthor, operation, type ProjectContext } from "./operation.ts";

type PersonRecord = Static<typeof PersonBody>;
type Context = ProjectContext<{ persons: PersonReader }>;
/** What the routes of persons use. */
export interface PersonDeps {
  metadata: Metadata;
  persons: PersonReader;
  personCounter: PersonFinder;
  eraser: PersonDeleter;
}

const tag = "Persons";
const exampleDeletion = {
  uuid: example.uuid,
  state: "deleted",
  detail: "The person is deleted, with its properties, distinct ids and cohort memberships.",
  events: "The events of the person are kept: event data cannot be deleted selectively.",
  backups: { last: null, detail: "No known backup contains the person." },
};

export const listAllPersons = cursorListOperation({
  id: "persons.list",
  on: "project",
  scope: "person:read",
  tag,
  summary: "List persons",
  description: "Newest first.",
  http: { method: "GET", path: "/persons", answer: "One page of persons.", errors: unavailable },
  cli: {
    name: "persons list",
    description: "List persons, newest first.",
    examples: ["persons list --search example.com", "persons list --cohort 3 --url http://127.0.0.1:8000"],
    options: {
      limit: { description: "page size; default: 100" },
      offset: { description: "persons to skip" },
      properties: { description: "JSON list of filters by property; needs --url" },
      cohort: { description: "only members of the cohort with this id; needs --url" },
      after: { description: "with --properties or --cohort: cursor of the previous page" },
    },
    result: {
      schema: list(PersonBody),
      build: ({ output }: { output: { results: PersonRecord[] } }) => output.results,
    },
    done: (persons: readonly PersonRecord[]) =>
      persons.map(({ uuid, created_at: since, name }) => `${uuid}  ${since}  ${name}`).join("\n"),
  },
  mcp: {
    name: "list_persons",
    arguments: {
      search: optional(string({ description: "Part of an address, name or distinct id." })),
      distinct_id: optional(string({ description: "Only the person with this distinct id." })),
      cohort: optional(int({ description: "Only members of this cohort." })),
      limit: optional(int({ minimum: 1, maximum: 100 })),
      offset: optional(int({ minimum: 0 })),
    },
  },
  input: withPage(
    object({
      limit: peopleLimit,
      search: optional(string({ description: "Part of an address, name or distinct id." })),
      distinct_id: optional(string({ description: "Only the person with this distinct id." })),
      uuid: optional(string({ description: "Only the person with this uuid; also accepted by `search`." })),
      properties: optional(
        string({
          description: "JSON list of `{key, value, operator, type}`, joined by AND; sorts by oldest first.",
        }),
      ),
      cohort: optional(int({ description: "Only members of this cohort; sorts by oldest first." })),
      after: optional(string({ description: "With `properties` or `cohort`: cursor of the previous page." })),
    }),
  ),
  output: PersonPage,
  example,
  readQuery: (query) => ({
    ...readFoundQuery(query),
    filters: readPropertyFilters(query, "person") ?? [],
    cohortId: readCohortId(query),
    named: { distinctId: query.get("distinct_id"), uuid: query.get("uuid") },
    search: query.get("search")?.trim() || undefined,
  }),
  run: async ({ stores, project }: ProjectContext<PersonDeps>, { named: names, cohortId, ...query }) => {
    const reader = stores.persons;
    const { search, limit, offset } = query;
    const filters = [...query.filters, ...cohortFilters(stores, project.id, cohortId)];
    const named = await namedPerson(reader, project.id, { ...names, search });
    if (filters.length > 0 && stores.personCounter === undefined)
      throw new InvalidFieldError(
        null,
        "unavailable",
        "Filters by property require a running server. Use --url.",
      );
    if (filters.length > 0)
      return await filteredPersons(reader, { ...query, projectId: project.id, named }, (page) =>
        stores.personCounter.find(project.id, filters, page),
      );
    if (parseAfter(query.after) !== undefined)
      throw new InvalidFieldError("after", "invalid_input", "`after` requires `properties` or `cohort`.");
    if (named !== undefined)
      return { next: null, previous: null, results: named ? await personBodies(reader, [named]) : [] };
    // Searches scan all persons, in slices so that other requests are served.
    const { persons, hasMore } =
      search === undefined
        ? await reader.listPersons(project.id, { limit, offset })
        : await reader.searchPersons(project.id, search, { limit, offset });
    return {
      next: hasMore ? { offset: offset + persons.length } : null,
      // The first page has no offset.
      previous: offset > 0 ? { offset: offset > limit ? offset - limit : undefined } : null,
      results: await personBodies(reader, persons),
    };
  },
});

const getOnePerson = operation({
  id: "persons.get",
  on: "project",
  scope: "person:read",
  tag,
  summary: "Get a person",
  http: { method: "GET", path: "/persons/:uuid", answer: "The person." },
  input: object({ uuid: uuid() }),
  output: PersonBody,
  example,
  run: async ({ stores: { persons }, project }: Context, { uuid: id }) =>
    (await personBodies(persons, [await getPerson(persons, project.id, id)]))[0]!,
});

export const deleteOnePerson = operation({
  id: "persons.delete",
  on: "project",
  scope: "person:write",
  tag,
  summary: "Delete a person",
  description:
    "Deletes the person, its properties, distinct ids and cohort memberships permanently, also across rebuilds. Its events are kept; a later event creates a new person for its distinct id.",
  http: {
    method: "DELETE",
    path: "/persons/:uuid",
    answer: "The person is deleted.",
    status: ({ state }: Deletion) => (state === "deleted" ? 200 : 202),
    errors: {
      202: {
        description: "The deletion is on disk and is applied after the events before it.",
        schema: Deletion,
        example: { ...exampleDeletion, state: "accepted" },
      },
      ...unavailable,
    },
    // Waits for the process that loads events.
    isLongRunning: true,
  },
  input: object({
    uuid: uuid(),
    delete_events: optional(string({ description: "Only `false`: events cannot be deleted selectively." })),
  }),
  output: Deletion,
  example: exampleDeletion,
  readQuery: (query) => ({ deletesEvents: readBoolean(query, "delete_events") ?? false }),
  run: async (context: ProjectContext<PersonDeps>, { uuid: id, deletesEvents }) => {
    const { stores, project, actor } = context;
    const { uuid, mainDistinctId: distinctId } = await getPerson(stores.persons, project.id, id);
    if (deletesEvents) {
      const detail = "Events cannot be deleted selectively. Omit this parameter to delete only the person.";
      throw new InvalidFieldError("delete_events", "invalid_input", detail);
    }
    return await stores.eraser.erase(project.id, { uuid, distinctId }, getAuthor(actor));
  },
});

/** @throws {HttpError} 404. */
async function getPerson(persons: PersonReader, projectId: number, uuid: string): Promise<Person> {
  const person = await persons.personByUuid(projectId, uuid);
  if (!person) throw notFound();
  return person;
}

/** The id in the parameter `cohort`. @throws {InvalidFieldError} not an integer. */
function readCohortId(query: URLSearchParams): string | undefined {
  const option = query.get("cohort")?.trim();
  if (!option) return undefined;
  if (/^\d{1,15}$/.test(option)) return option;
  throw new InvalidFieldError("cohort", "invalid_input", "A valid integer is required.");
}

/** Filters that match the members of a cohort. @throws {InvalidFieldError} unknown cohort. */
function cohortFilters({ metadata }: PersonDeps, projectId: number, id: string | undefined): JsonObject[] {
  if (id === undefined) return [];
  const cohort = findCohort(metadata.db, projectId, Number(id));
  if (cohort?.deleted === false) return membership(cohort.id);
  throw new InvalidFieldError("cohort", "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
}

/** In the order of the documentation. */
export const personOperations = [listAllPersons, getOnePerson, deleteOnePerson];
