/** Names of events and properties, and values, to choose from. */

import type { Static } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import type { Route } from "../../http/route.ts";
import {
  anyJson,
  bool,
  choice,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  onePage,
  optional,
  pageOf,
  text,
  uuid,
  withPage,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { microsToWire } from "../../lib/wire-time.ts";
import { listGroupTypes } from "../groups.ts";
import { listEventNames, listPropertyNames, listPropertyValues } from "../names.ts";
import type { PeopleDb } from "../open.ts";

const tagName = "Events";
const propertyKinds = ["event", "person", "group"] as const;
const propertyTypes = ["String", "Numeric", "Boolean", "DateTime"] as const;

const EventDefinition = named(
  "EventDefinition",
  object({
    id: uuid(),
    name: text(),
    created_at: instant(),
    last_seen_at: instant({ description: "Exact to a day." }),
  }),
);
const PropertyDefinition = named(
  "PropertyDefinition",
  object({
    id: uuid(),
    name: text({ blank: true }),
    property_type: nullable(choice(propertyTypes), { description: "`String` when several kinds were seen." }),
    is_numerical: bool(),
    last_seen_at: instant({ description: "Exact to a day." }),
  }),
);
const Values = list(object({ name: anyJson() }));

const searchQuery = {
  search: optional(text({ blank: true, description: "Part of the name, in any case." })),
};
const valuesQuery = object({
  key: text({ description: "The property." }),
  value: optional(text({ blank: true, description: "Part of the value, in any case." })),
});
const valuesAnswer = {
  200: {
    description: "The first 50 short values that were seen.",
    schema: Values,
    example: [{ name: "pro" }],
  },
};

export function nameRoutes({ people }: { people: PeopleDb }): Route[] {
  return [
    projectRoute("GET", "/event_definitions", "event_definition:read", {
      summary: "List event definitions",
      description: "Kept while events are taken: at most 5,000 names, of at most 200 characters.",
      tag: tagName,
      query: withPage(object(searchQuery)),
      answers: {
        200: onePage("One page of names, by name.", pageOf("EventDefinitionPage", EventDefinition), {
          ...{ id: "8bb8c3f6-2a4b-5c0d-9e1f-0a1b2c3d4e5f", name: "order paid" },
          ...{ created_at: "2026-03-01T12:00:00.000000Z", last_seen_at: "2026-03-04T16:00:01.007000Z" },
        }),
      },
      handle: ({ project, query, url }) => {
        const page = readPage(query);
        const { names, count } = listEventNames(people, project.id, query.get("search") ?? "", page);
        const results = names.map(
          ({ name, firstSeenMicros, lastSeenMicros }): Static<typeof EventDefinition> => ({
            ...{ id: definitionId(project.id, "", name), name },
            ...{ created_at: microsToWire(firstSeenMicros), last_seen_at: microsToWire(lastSeenMicros) },
          }),
        );
        return pageAnswer(url, page, count, results);
      },
    }),
    projectRoute("GET", "/property_definitions", "property_definition:read", {
      summary: "List property definitions",
      description:
        "Of events, persons, or groups of one type, as they were sent: at most 10,000 names of each.",
      tag: tagName,
      query: withPage(
        object({
          type: optional(choice(propertyKinds, { default: "event" })),
          group_type_index: optional(int({ minimum: 0, description: "Needed for groups." })),
          ...searchQuery,
        }),
      ),
      answers: {
        200: onePage("One page of names, by name.", pageOf("PropertyDefinitionPage", PropertyDefinition), {
          ...{
            id: "2f6d1a7c-93b5-5e84-8d02-7c6b5a493827",
            name: "plan",
            property_type: "String",
            is_numerical: false,
          },
          last_seen_at: "2026-03-04T16:00:01.007000Z",
        }),
      },
      handle: ({ project, query, url }) => {
        const page = readPage(query);
        const owner = ownerIn(people, project.id, query);
        const of = { projectId: project.id, owner: owner ?? "", search: query.get("search") ?? "" };
        const { names, count } =
          owner === undefined ? { names: [], count: 0 } : listPropertyNames(people, of, page);
        const results = names.map(
          ({ name, type, lastSeenMicros }): Static<typeof PropertyDefinition> => ({
            ...{
              id: definitionId(project.id, of.owner, name),
              name,
              property_type: type,
              is_numerical: type === "Numeric",
            },
            last_seen_at: microsToWire(lastSeenMicros),
          }),
        );
        return pageAnswer(url, page, count, results);
      },
    }),
    projectRoute("GET", "/events/values", ["event:read", "query:read"], {
      summary: "List values of an event property",
      tag: tagName,
      query: valuesQuery,
      answers: valuesAnswer,
      handle: ({ project, query }) => values(people, project.id, "event", query),
    }),
    projectRoute("GET", "/persons/values", "person:read", {
      summary: "List values of a person property",
      tag: "Persons",
      query: valuesQuery,
      answers: valuesAnswer,
      handle: ({ project, query }) => values(people, project.id, "person", query),
    }),
  ];
}

const definitionNamespace = "5b0f6f5e-3a6f-4c62-9d0a-1f2e7c9b8a44";

/** The id of a definition, which clients expect to be a UUID; it follows from the name. @param owner empty for events. */
function definitionId(projectId: number, owner: string, name: string): string {
  return Bun.randomUUIDv5(JSON.stringify([projectId, owner, name]), definitionNamespace);
}

function values(people: PeopleDb, projectId: number, owner: string, query: URLSearchParams) {
  const name = query.get("key");
  if (name === null || name === "") throw new InvalidField("key", "required", "This field is required.");
  const search = query.get("value") ?? "";
  return listPropertyValues(people, { projectId, owner, name, search }).map((value) => ({ name: value }));
}

/** @returns undefined for groups of a type that there is not. @throws {InvalidField} */
function ownerIn(people: PeopleDb, projectId: number, query: URLSearchParams): string | undefined {
  const kind = query.get("type") || "event";
  if (kind === "event" || kind === "person") return kind;
  if (kind !== "group") throw new InvalidField("type", "invalid_choice", `"${kind}" is not a valid choice.`);
  const index = query.get("group_type_index");
  if (index === null || !/^\d{1,9}$/.test(index)) {
    throw new InvalidField("group_type_index", "invalid_input", "A valid integer is required.");
  }
  const type = listGroupTypes(people, projectId).find(({ typeIndex }) => typeIndex === Number(index));
  return type && `group:${type.name}`;
}
