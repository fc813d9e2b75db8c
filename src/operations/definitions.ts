/** Definitions of events and properties, and sample values. */

import type { Static } from "@sinclair/typebox";
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
  pageOf,
  string,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { microsToApiTime } from "../lib/time.ts";
import type { IngestionReader } from "../persons/ingestion-reader.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { listOperation, operation, type ProjectContext } from "./operation.ts";

/** Persons for the group types. */
type Context = ProjectContext<{ ingestion: IngestionReader; persons: PersonReader }>;

const tag = "Events";
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

const listEvents = listOperation({
  id: "event_definitions.list",
  on: "project",
  scope: "event_definition:read",
  tag,
  summary: "List event definitions",
  description: "Recorded during ingestion: at most 5,000 definitions, with names up to 200 characters.",
  http: { method: "GET", path: "/event_definitions", answer: "One page of definitions, by name." },
  cli: {
    name: "events definitions",
    description: "List the names of events.",
    examples: ["events definitions --search order"],
    table: {
      headings: ["name", "first seen", "last seen"],
      row: (definition: Static<typeof EventDefinition>) => [
        definition.name,
        definition.created_at,
        definition.last_seen_at,
      ],
    },
  },
  mcp: { name: "list_event_definitions", limitDefault: 100 },
  input: object(searchQuery),
  output: pageOf("EventDefinitionPage", EventDefinition),
  example: {
    id: "8bb8c3f6-2a4b-5c0d-9e1f-0a1b2c3d4e5f",
    name: "order paid",
    created_at: "2026-03-01T12:00:00.000000Z",
    last_seen_at: "2026-03-04T16:00:01.007000Z",
  },
  readQuery: (query) => ({ search: query.get("search") ?? "" }),
  run: async ({ stores, project }: Context, { search, ...page }) => {
    const { names, count } = await stores.ingestion.eventDefinitions(project.id, search, page);
    const results = names.map(
      ({ name, firstSeenMicros, lastSeenMicros }): Static<typeof EventDefinition> => ({
        id: definitionId(project.id, "", name),
        name,
        created_at: microsToApiTime(firstSeenMicros),
        last_seen_at: microsToApiTime(lastSeenMicros),
      }),
    );
    return { count, results };
  },
});

const listProperties = listOperation({
  id: "property_definitions.list",
  on: "project",
  scope: "property_definition:read",
  tag,
  summary: "List property definitions",
  description:
    "Properties of events, persons, or groups of one type, as sent: at most 10,000 definitions of each.",
  http: { method: "GET", path: "/property_definitions", answer: "One page of definitions, by name." },
  cli: {
    name: "events properties",
    description: "List the names of the properties of events, persons or groups.",
    examples: ["events properties --type person"],
    table: {
      headings: ["name", "type", "last seen"],
      row: (definition: Static<typeof PropertyDefinition>) => [
        definition.name,
        definition.property_type ?? "-",
        definition.last_seen_at,
      ],
    },
  },
  mcp: { name: "list_property_definitions", limitDefault: 100 },
  input: object({
    type: optional(enumeration(propertyKinds, { default: "event" })),
    group_type_index: optional(int({ minimum: 0, description: "Required for groups." })),
    ...searchQuery,
  }),
  output: pageOf("PropertyDefinitionPage", PropertyDefinition),
  example: {
    id: "2f6d1a7c-93b5-5e84-8d02-7c6b5a493827",
    name: "plan",
    property_type: "String",
    is_numerical: false,
    last_seen_at: "2026-03-04T16:00:01.007000Z",
  },
  readQuery: (query) => ({ owner: readOwner(query), search: query.get("search") ?? "" }),
  run: async (context: Context, { owner: asked, search, ...page }) => {
    const { stores, project } = context;
    const owner = await getOwner(context, asked);
    const filter = { projectId: project.id, owner: owner ?? "", search };
    const { names, count } =
      owner === undefined
        ? { names: [], count: 0 }
        : await stores.ingestion.propertyDefinitions(filter, page);
    const results = names.map(
      ({ name, type, lastSeenMicros }): Static<typeof PropertyDefinition> => ({
        id: definitionId(project.id, filter.owner, name),
        name,
        property_type: type,
        is_numerical: type === "Numeric",
        last_seen_at: microsToApiTime(lastSeenMicros),
      }),
    );
    return { count, results };
  },
});

/** What both lists of values have. @param owner of the property */
const ofValues = (owner: "event" | "person") => ({
  on: "project" as const,
  input: valuesQuery,
  output: Values,
  example: [{ name: "pro" }],
  readQuery: readValuesQuery,
  run: async ({ stores, project }: Context, input: object) => {
    const asked = input as ReturnType<typeof readValuesQuery>;
    const found = await stores.ingestion.propertyValues({ projectId: project.id, owner, ...asked });
    return found.map((value) => ({ name: value }));
  },
});

const listEventValues = operation({
  id: "events.values",
  scope: ["event:read", "query:read"],
  tag,
  summary: "List values of an event property",
  http: { method: "GET", path: "/events/values", answer: "The first 50 short values." },
  ...ofValues("event"),
});

const listPersonValues = operation({
  id: "persons.values",
  scope: "person:read",
  tag: "Persons",
  summary: "List values of a person property",
  http: { method: "GET", path: "/persons/values", answer: "The first 50 short values." },
  ...ofValues("person"),
});

const definitionNamespace = "5b0f6f5e-3a6f-4c62-9d0a-1f2e7c9b8a44";

/** A definition's ID, which clients expect to be a UUID; derived from the name. @param owner empty for events */
function definitionId(projectId: number, owner: string, name: string): string {
  return Bun.randomUUIDv5(JSON.stringify([projectId, owner, name]), definitionNamespace);
}

/** @throws {InvalidFieldError} */
function readValuesQuery(query: URLSearchParams): { name: string; search: string } {
  const name = query.get("key");
  if (name === null || name === "") throw new InvalidFieldError("key", "required", "This field is required.");
  return { name, search: query.get("value") ?? "" };
}

interface PropertyOwner {
  kind: (typeof propertyKinds)[number];
  index: number;
}

/** @throws {InvalidFieldError} */
function readOwner(query: URLSearchParams): PropertyOwner {
  const kind = query.get("type") || "event";
  if (kind !== "event" && kind !== "person" && kind !== "group")
    throw new InvalidFieldError("type", "invalid_choice", `"${kind}" is not a valid choice.`);
  const index = query.get("group_type_index") ?? "";
  if (kind !== "group" && index === "") return { kind, index: 0 };
  if (!/^\d{1,9}$/.test(index)) {
    throw new InvalidFieldError("group_type_index", "invalid_input", "A valid integer is required.");
  }
  return { kind, index: Number(index) };
}

/** @returns undefined for groups of an unknown type */
async function getOwner(
  { stores, project }: Context,
  { kind, index }: PropertyOwner,
): Promise<string | undefined> {
  if (kind !== "group") return kind;
  const type = (await stores.persons.groupTypes(project.id)).find(({ typeIndex }) => typeIndex === index);
  return type && `group:${type.name}`;
}

/** In the order of the documentation. */
export const definitionOperations = [listEvents, listProperties, listEventValues, listPersonValues];
