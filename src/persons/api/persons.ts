/** Persons and groups (contract: management-api 6.4). */

import type { Static } from "@sinclair/typebox";
import { GroupTypeBody } from "../../accounts/api/project-schemas.ts";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { unavailable } from "../../http/documented-responses.ts";
import { notFound } from "../../http/http-error.ts";
import { readPage } from "../../http/pagination.ts";
import { readUuid } from "../../http/path.ts";
import { readBoolean, readPropertyFilters } from "../../http/query.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { int, list, object, optional, string, withPage } from "../../http/schemas.ts";
import { microsToApiTime } from "../../lib/api-time.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { canonicalUuid } from "../../lib/uuid.ts";
import { Deletion, type PersonDeleter } from "../deletion.ts";
import {
  findGroup,
  type Group,
  type GroupCursor,
  listGroups,
  listGroupTypes,
  searchGroups,
} from "../groups.ts";
import type { PeopleDb } from "../open.ts";
import type { Person } from "../person.ts";
import { personByDistinctId, personByUuid } from "../reader.ts";
import { listPersons, searchMatchesMax, searchPersons } from "../search.ts";
import { foundPersons, personBodies, readAfter } from "./person-pages.ts";
import {
  GroupBody,
  GroupPage,
  groupTypeBody,
  PersonBody,
  PersonPage,
  peopleLimit,
  peoplePerPageMax,
} from "./person-schemas.ts";

const personExample = {
  id: "0193d1a2-7b1c-7c3e-9f60-9c0d1e2f3a4b",
  uuid: "0193d1a2-7b1c-7c3e-9f60-9c0d1e2f3a4b",
  name: "kim@example.com",
  distinct_ids: ["kim", "anonymous-7f"],
  properties: { email: "kim@example.com" },
  is_identified: true,
  created_at: "2026-03-02T08:15:30.120000Z",
};
const deletionExample = {
  uuid: personExample.uuid,
  state: "deleted",
  detail: "The person is deleted, with its properties, distinct ids and cohort memberships.",
  events: "The events of the person are kept: event data cannot be deleted selectively.",
  backups: { last: null, detail: "No known backup contains the person." },
};
const groupType = {
  group_type: "company",
  group_type_index: 0,
  name_singular: null,
  name_plural: null,
  detail_dashboard: null,
  default_columns: null,
  created_at: "2026-03-02T08:15:30.120000Z",
};
const groupExample = {
  group_type_index: 0,
  group_key: "acme",
  group_properties: { plan: "pro" },
  created_at: "2026-03-02T08:15:30.120000Z",
};
const personPage = {
  description: "One page of persons.",
  schema: PersonPage,
  example: { next: null, previous: null, results: [personExample] },
};

export interface PeopleDeps {
  people: PeopleDb;
  personCounter: PersonFinder;
  eraser: PersonDeleter;
}

/** Filters that match a cohort's members; undefined for unknown cohorts. */
export type CohortMembership = (projectId: number, cohortId: number) => JsonObject[] | undefined;

export interface PersonFinder {
  /** Persons that match property filters joined by AND, ordered by ID; continue with `afterId` of the last one. */
  find(
    projectId: number,
    filters: readonly JsonObject[],
    page: { afterId?: number; limit: number },
  ): Promise<Person[]>;
}

export function peopleRoutes(deps: PeopleDeps, cohortMembership: CohortMembership): Route[] {
  const { people } = deps;
  return [
    projectRoute("GET", "/persons", "person:read", {
      summary: "List persons",
      description: "Newest first.",
      tag: "Persons",
      query: withPage(
        object({
          limit: peopleLimit,
          search: optional(string({ description: "Part of an address, name or distinct id." })),
          distinct_id: optional(string({ description: "Only the person with this distinct id." })),
          uuid: optional(
            string({ description: "Only the person with this uuid; also accepted by `search`." }),
          ),
          properties: optional(
            string({
              description:
                "JSON list of `{key, value, operator, type}`, joined by AND; sorts by oldest first.",
            }),
          ),
          cohort: optional(int({ description: "Only members of this cohort; sorts by oldest first." })),
          after: optional(
            string({ description: "With `properties` or `cohort`: cursor of the previous page." }),
          ),
        }),
      ),
      answers: { 200: personPage, ...unavailable },
      handle: async (call) => {
        const page = readPage(call.query, peoplePerPageMax);
        const filters = [
          ...(readPropertyFilters(call.query, "person") ?? []),
          ...readCohort(cohortMembership, call),
        ];
        const named = namedPerson(people, call.project.id, call.query);
        const search = call.query.get("search")?.trim() || undefined;
        if (filters.length > 0) return await filteredPersons(deps, call, filters, { named, search });
        if (readAfter(call.query) !== undefined)
          throw new InvalidFieldError("after", "invalid_input", "`after` requires `properties` or `cohort`.");
        if (named !== undefined) {
          return { next: null, previous: null, results: named ? personBodies(people, [named]) : [] };
        }
        // Searches scan all persons, in slices so that other requests are served.
        const { persons, hasMore } =
          search === undefined
            ? listPersons(people, call.project.id, page)
            : await searchPersons(people, call.project.id, search, page);
        return {
          next: hasMore ? moved(call.url, page.offset + persons.length) : null,
          previous: page.offset > 0 ? moved(call.url, page.offset - page.limit) : null,
          results: personBodies(people, persons),
        };
      },
    }),
    projectRoute("GET", "/persons/:uuid", "person:read", {
      summary: "Get a person",
      tag: "Persons",
      answers: { 200: { description: "The person.", schema: PersonBody, example: personExample } },
      handle: (call) => {
        const person = personByUuid(people, call.project.id, readUuid(call.params, "uuid"));
        if (!person) throw notFound();
        return personBodies(people, [person])[0];
      },
    }),
    projectRoute("DELETE", "/persons/:uuid", "person:write", {
      summary: "Delete a person",
      description:
        "Deletes the person, its properties, distinct ids and cohort memberships permanently, also across rebuilds. Its events are kept; a later event creates a new person for its distinct id.",
      tag: "Persons",
      query: object({
        delete_events: optional(
          string({ description: "Only `false`: events cannot be deleted selectively." }),
        ),
      }),
      answers: {
        200: { description: "The person is deleted.", schema: Deletion, example: deletionExample },
        202: {
          description: "The deletion is on disk and is applied after the events before it.",
          schema: Deletion,
          example: { ...deletionExample, state: "accepted" },
        },
        ...unavailable,
      },
      // Waits for the process that loads events.
      isLongRunning: true,
      handle: async (call) => {
        const person = personByUuid(people, call.project.id, readUuid(call.params, "uuid"));
        if (!person) throw notFound();
        if (readBoolean(call.query, "delete_events") === true) {
          const detail =
            "Events cannot be deleted selectively. Omit this parameter to delete only the person.";
          throw new InvalidFieldError("delete_events", "invalid_input", detail);
        }
        const { uuid, mainDistinctId } = person;
        const deletion = await deps.eraser.erase(
          call.project.id,
          { uuid, distinctId: mainDistinctId },
          call.user.id,
        );
        return new RouteResponse(deletion.state === "deleted" ? 200 : 202, deletion);
      },
    }),
    projectRoute("GET", "/groups_types", "group:read", {
      summary: "List group types",
      description: "In order of first appearance, with consecutive indexes. Not paginated.",
      tag: "Groups",
      answers: {
        200: { description: "The types.", schema: list(GroupTypeBody), example: [groupType] },
      },
      handle: (call) => listGroupTypes(people, call.project.id).map(groupTypeBody),
    }),
    projectRoute("GET", "/groups", "group:read", {
      summary: "List the groups of one type",
      description: "Newest first.",
      tag: "Groups",
      query: object({
        group_type_index: int({ minimum: 0 }),
        limit: peopleLimit,
        cursor: optional(string({ description: "Cursor from `next` of the previous page." })),
        search: optional(
          string({ description: "Part of the key or of the property `name`, case-insensitive." }),
        ),
      }),
      answers: {
        200: {
          description: "One page of groups.",
          schema: GroupPage,
          example: { next: null, previous: null, results: [groupExample] },
        },
      },
      handle: async (call) => {
        const { limit } = readPage(call.query, peoplePerPageMax);
        const page = { limit, after: readCursor(call.query.get("cursor")) };
        const typeIndex = getTypeIndex(call);
        const search = call.query.get("search")?.trim();
        const { groups, next } = search
          ? await searchGroups(people, call.project.id, typeIndex, search, page)
          : listGroups(people, call.project.id, typeIndex, page);
        return {
          next: next ? withCursor(call.url, next) : null,
          previous: null,
          results: groups.map(groupBody),
        };
      },
    }),
    projectRoute("GET", "/groups/find", "group:read", {
      summary: "Get a group by its key",
      tag: "Groups",
      query: object({ group_type_index: int({ minimum: 0 }), group_key: string() }),
      answers: { 200: { description: "The group.", schema: GroupBody, example: groupExample } },
      handle: (call) => {
        const typeIndex = getTypeIndex(call);
        const key = call.query.get("group_key");
        if (key === null) throw new InvalidFieldError("group_key", "required", requiredField);
        const group = findGroup(people, call.project.id, typeIndex, key);
        if (!group) throw notFound();
        return groupBody(group);
      },
    }),
  ];
}

/** The filters of the parameter `cohort`; empty if absent. @throws {InvalidFieldError} unknown cohort */
function readCohort(membership: CohortMembership, call: ProjectCall<unknown>): JsonObject[] {
  const option = call.query.get("cohort")?.trim();
  if (!option) return [];
  if (!/^\d{1,15}$/.test(option))
    throw new InvalidFieldError("cohort", "invalid_input", "A valid integer is required.");
  const members = membership(call.project.id, Number(option));
  if (members !== undefined) return members;
  throw new InvalidFieldError("cohort", "does_not_exist", `Invalid pk "${option}" - object does not exist.`);
}

/** A page of the persons that match filters, restricted to named or searched ones if requested. */
async function filteredPersons(
  deps: PeopleDeps,
  call: ProjectCall<unknown>,
  filters: readonly JsonObject[],
  { named, search }: { named: Person | null | undefined; search: string | undefined },
): Promise<Static<typeof PersonPage>> {
  const find = (page: { afterId?: number; limit: number }) =>
    deps.personCounter.find(call.project.id, filters, page);
  if (named !== undefined) {
    const [first] = named === null ? [] : await find({ afterId: named.id - 1, limit: 1 });
    const results = first !== undefined && first.id === named?.id ? personBodies(deps.people, [first]) : [];
    return { next: null, previous: null, results };
  }
  if (search === undefined) return await foundPersons(deps, call, find);
  const options = { limit: searchMatchesMax };
  const { persons } = await searchPersons(deps.people, call.project.id, search, options);
  const searched = new Set(persons.map(({ id }) => id));
  return await foundPersons(deps, call, async ({ afterId, limit }) => {
    const found: Person[] = [];
    for (let last = afterId; ; ) {
      const page = await find({ afterId: last, limit: searchMatchesMax });
      found.push(...page.filter(({ id }) => searched.has(id)));
      if (page.length < searchMatchesMax || found.length >= limit) return found.slice(0, limit);
      last = page.at(-1)!.id;
    }
  });
}

/** The person named by a query; null if it does not exist, undefined if the query names no person. */
function namedPerson(people: PeopleDb, projectId: number, query: URLSearchParams): Person | null | undefined {
  const distinctId = query.get("distinct_id");
  if (distinctId) return personByDistinctId(people, projectId, distinctId) ?? null;
  const uuid = query.get("uuid");
  if (uuid) return personByUuid(people, projectId, canonicalUuid(uuid) ?? uuid) ?? null;
  // A UUID without a person can still be a distinct ID.
  const search = canonicalUuid(query.get("search")?.trim() ?? "");
  return search === undefined ? undefined : personByUuid(people, projectId, search);
}

const requiredField = "This query parameter is required.";

function groupBody(group: Group): Static<typeof GroupBody> {
  return {
    group_type_index: group.typeIndex,
    group_key: group.key,
    group_properties: group.properties as Static<typeof GroupBody>["group_properties"],
    created_at: microsToApiTime(group.createdMicros),
  };
}

function getTypeIndex(call: ProjectCall<unknown>): number {
  const option = call.query.get("group_type_index");
  if (option === null || option === "")
    throw new InvalidFieldError("group_type_index", "required", requiredField);
  if (/^\d{1,9}$/.test(option)) return Number(option);
  throw new InvalidFieldError("group_type_index", "invalid_input", "A valid integer is required.");
}

function moved(url: string, offset: number): string {
  const target = new URL(url);
  if (offset > 0) target.searchParams.set("offset", String(offset));
  else target.searchParams.delete("offset");
  return target.href;
}

function withCursor(url: string, { createdMicros, id }: GroupCursor): string {
  const target = new URL(url);
  target.searchParams.set("cursor", `${createdMicros}.${id}`);
  return target.href;
}

function readCursor(option: string | null): GroupCursor | undefined {
  if (option === null || option === "") return undefined;
  const match = /^(-?\d{1,16})\.(\d{1,15})$/.exec(option);
  if (match) return { createdMicros: Number(match[1]), id: Number(match[2]) };
  throw new InvalidFieldError("cursor", "invalid_input", "Invalid cursor for this list.");
}
