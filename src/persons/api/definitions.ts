/** Definitions of events and properties, and sample values. */

import type { Static } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import type { Route } from "../../http/route.ts";
import {
  anyJson,
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  pageExample,
  pageOf,
  string,
  uuid,
  withPage,
} from "../../http/schemas.ts";
import { microsToApiTime } from "../../lib/api-time.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { IngestionReader } from "../ingestion-reader.ts";
import type { PersonReader } from "../person-reader.ts";

const tagName = "Events";
const propertyKinds = ["event", "person", "group"] as const;
const propertyTypes = ["String", "Numeric", "Boolean", "DateTime"] as const;

const EventDefinition = named(
  "EventDefinition",
  object({
    id: uuid(),
    name: string(),
    created_at: dateTime(),
    last_seen_at: dateTime({ description: "Precision: one day." }),
  }),
);
const PropertyDefinition = named(
  "PropertyDefinition",
  object({
    id: uuid(),
    name: string({ blank: true }),
    property_type: nullable(enumeration(propertyTypes), {
      description: "`String` if several types were seen.",
    }),
    is_numerical: bool(),
    last_seen_at: dateTime({ description: "Precision: one day." }),
  }),
);
const Values = list(object({ name: anyJson() }));

const searchQuery = {
  search: optional(string({ blank: true, description: "Part of the name, case-insensitive." })),
};
const valuesQuery = object({
  key: string({ description: "The property." }),
  value: optional(string({ blank: true, description: "Part of the value, case-insensitive." })),
});
const valuesAnswer = {
  200: {
    description: "The first 50 short values.",
    schema: Values,
    example: [{ name: "pro" }],
  },
};

/** Where the routes read. */
export interface DefinitionDeps {
  ingestion: IngestionReader;
  /** For the group types. */
  persons: PersonReader;
}

export function definitionRoutes({ ingestion, persons }: DefinitionDeps): Route[] {
  return [
    projectRoute("GET", "/event_definitions", "event_definition:read", {
      summary: "List event definitions",
      description: "Recorded during ingestion: at most 5,000 definitions, with names up to 200 characters.",
      tag: tagName,
      query: withPage(object(searchQuery)),
      answers: {
        200: pageExample(
          "One page of definitions, by name.",
          pageOf("EventDefinitionPage", EventDefinition),
          {
            id: "8bb8c3f6-2a4b-5c0d-9e1f-0a1b2c3d4e5f",
            name: "order paid",
            created_at: "2026-03-01T12:00:00.000000Z",
            last_seen_at: "2026-03-04T16:00:01.007000Z",
          },
        ),
      },
      handle: async ({ project, query, url }) => {
        const page = readPage(query);
        const { names, count } = await ingestion.eventDefinitions(
          project.id,
          query.get("search") ?? "",
          page,
        );
        const results = names.map(
          ({ name, firstSeenMicros, lastSeenMicros }): Static<typeof EventDefinition> => ({
            id: definitionId(project.id, "", name),
            name,
            created_at: microsToApiTime(firstSeenMicros),
            last_seen_at: microsToApiTime(lastSeenMicros),
          }),
        );
        return pageAnswer(url, page, count, results);
      },
    }),
    projectRoute("GET", "/property_definitions", "property_definition:read", {
      summary: "List property definitions",
      description:
        "Properties of events, persons, or groups of one type, as sent: at most 10,000 definitions of each.",
      tag: tagName,
      query: withPage(
        object({
          type: optional(enumeration(propertyKinds, { default: "event" })),
          group_type_index: optional(int({ minimum: 0, description: "Required for groups." })),
          ...searchQuery,
        }),
      ),
      answers: {
        200: pageExample(
          "One page of definitions, by name.",
          pageOf("PropertyDefinitionPage", PropertyDefinition),
          {
            id: "2f6d1a7c-93b5-5e84-8d02-7c6b5a493827",
            name: "plan",
            property_type: "String",
            is_numerical: false,
            last_seen_at: "2026-03-04T16:00:01.007000Z",
          },
        ),
      },
      handle: async ({ project, query, url }) => {
        const page = readPage(query);
        const owner = await ownerIn(persons, project.id, query);
        const of = { projectId: project.id, owner: owner ?? "", search: query.get("search") ?? "" };
        const { names, count } =
          owner === undefined ? { names: [], count: 0 } : await ingestion.propertyDefinitions(of, page);
        const results = names.map(
          ({ name, type, lastSeenMicros }): Static<typeof PropertyDefinition> => ({
            id: definitionId(project.id, of.owner, name),
            name,
            property_type: type,
            is_numerical: type === "Numeric",
            last_seen_at: microsToApiTime(lastSeenMicros),
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
      handle: ({ project, query }) => values(ingestion, project.id, "event", query),
    }),
    projectRoute("GET", "/persons/values", "person:read", {
      summary: "List values of a person property",
      tag: "Persons",
      query: valuesQuery,
      answers: valuesAnswer,
      handle: ({ project, query }) => values(ingestion, project.id, "person", query),
    }),
  ];
}

const definitionNamespace = "5b0f6f5e-3a6f-4c62-9d0a-1f2e7c9b8a44";

/** A definition's ID, which clients expect to be a UUID; derived from the name. @param owner empty for events */
function definitionId(projectId: number, owner: string, name: string): string {
  return Bun.randomUUIDv5(JSON.stringify([projectId, owner, name]), definitionNamespace);
}

async function values(ingestion: IngestionReader, projectId: number, owner: string, query: URLSearchParams) {
  const name = query.get("key");
  if (name === null || name === "") throw new InvalidFieldError("key", "required", "This field is required.");
  const search = query.get("value") ?? "";
  const found = await ingestion.propertyValues({ projectId, owner, name, search });
  return found.map((value) => ({ name: value }));
}

/** @returns undefined for groups of an unknown type @throws {InvalidFieldError} */
async function ownerIn(
  persons: PersonReader,
  projectId: number,
  query: URLSearchParams,
): Promise<string | undefined> {
  const kind = query.get("type") || "event";
  if (kind !== "event" && kind !== "person" && kind !== "group")
    throw new InvalidFieldError("type", "invalid_choice", `"${kind}" is not a valid choice.`);
  const index = query.get("group_type_index") ?? "";
  if (kind !== "group" && index === "") return kind;
  if (!/^\d{1,9}$/.test(index)) {
    throw new InvalidFieldError("group_type_index", "invalid_input", "A valid integer is required.");
  }
  if (kind !== "group") return kind;
  const type = (await persons.groupTypes(projectId)).find(({ typeIndex }) => typeIndex === Number(index));
  return type && `group:${type.name}`;
}
