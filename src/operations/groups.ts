/** Groups and their types (contract: management-api 6.4). */

import type { Static } from "@sinclair/typebox";
import { GroupTypeBody } from "../accounts/api/project-schemas.ts";
import { notFound } from "../http/http-error.ts";
import { readPage } from "../http/pagination.ts";
import { int, list, object, optional, string } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { microsToApiTime } from "../lib/time.ts";
import {
  GroupBody,
  GroupPage,
  groupTypeBody,
  peopleLimit,
  personsPerPageMax,
} from "../persons/api/person-schemas.ts";
import type { Group, GroupCursor } from "../persons/groups.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { cursorListOperation, operation, type ProjectContext } from "./operation.ts";

type Context = ProjectContext<{ persons: PersonReader }>;

const tag = "Groups";
const exampleGroupType = {
  group_type: "company",
  group_type_index: 0,
  name_singular: null,
  name_plural: null,
  detail_dashboard: null,
  default_columns: null,
  created_at: "2026-03-02T08:15:30.120000Z",
};
const example = {
  group_type_index: 0,
  group_key: "acme",
  group_properties: { plan: "pro" },
  created_at: "2026-03-02T08:15:30.120000Z",
};

const listAllGroupTypes = operation({
  id: "group_types.list",
  on: "project",
  scope: "group:read",
  tag,
  summary: "List group types",
  description: "In order of first appearance, with consecutive indexes. Not paginated.",
  http: { method: "GET", path: "/groups_types", answer: "The types." },
  input: object({}),
  output: list(GroupTypeBody),
  example: [exampleGroupType],
  run: async ({ stores: { persons }, project }: Context) =>
    (await persons.groupTypes(project.id)).map(groupTypeBody),
});

const listAllGroups = cursorListOperation({
  id: "groups.list",
  on: "project",
  scope: "group:read",
  tag,
  summary: "List the groups of one type",
  description: "Newest first.",
  http: { method: "GET", path: "/groups", answer: "One page of groups." },
  input: object({
    group_type_index: int({ minimum: 0 }),
    limit: peopleLimit,
    cursor: optional(string({ description: "Cursor from `next` of the previous page." })),
    search: optional(string({ description: "Part of the key or of the property `name`, case-insensitive." })),
  }),
  output: GroupPage,
  example,
  readQuery: (query) => ({
    limit: readPage(query, personsPerPageMax).limit,
    after: readCursor(query.get("cursor")),
    typeIndex: readTypeIndex(query),
    search: query.get("search")?.trim(),
  }),
  run: async ({ stores: { persons }, project }: Context, { limit, after, typeIndex, search }) => {
    const page = { limit, after };
    const { groups, next } = search
      ? await persons.searchGroups(project.id, typeIndex, search, page)
      : await persons.listGroups(project.id, typeIndex, page);
    return {
      next: next ? { cursor: formatCursor(next) } : null,
      previous: null,
      results: groups.map(groupBody),
    };
  },
});

const findOneGroup = operation({
  id: "groups.find",
  on: "project",
  scope: "group:read",
  tag,
  summary: "Get a group by its key",
  http: { method: "GET", path: "/groups/find", answer: "The group." },
  input: object({ group_type_index: int({ minimum: 0 }), group_key: string() }),
  output: GroupBody,
  example,
  readQuery: (query) => ({ typeIndex: readTypeIndex(query), key: readKey(query) }),
  run: async ({ stores: { persons }, project }: Context, { typeIndex, key }) => {
    const group = await persons.findGroup(project.id, typeIndex, key);
    if (!group) throw notFound();
    return groupBody(group);
  },
});

function groupBody(group: Group): Static<typeof GroupBody> {
  return {
    group_type_index: group.typeIndex,
    group_key: group.key,
    group_properties: group.properties as Static<typeof GroupBody>["group_properties"],
    created_at: microsToApiTime(group.createdMicros),
  };
}

const requiredParameter = "This query parameter is required.";

function readTypeIndex(query: URLSearchParams): number {
  const option = query.get("group_type_index");
  if (option === null || option === "")
    throw new InvalidFieldError("group_type_index", "required", requiredParameter);
  if (/^\d{1,9}$/.test(option)) return Number(option);
  throw new InvalidFieldError("group_type_index", "invalid_input", "A valid integer is required.");
}

function readKey(query: URLSearchParams): string {
  const key = query.get("group_key");
  if (key === null) throw new InvalidFieldError("group_key", "required", requiredParameter);
  return key;
}

const formatCursor = ({ createdMicros, id }: GroupCursor) => `${createdMicros}.${id}`;

function readCursor(option: string | null): GroupCursor | undefined {
  if (option === null || option === "") return undefined;
  const match = /^(-?\d{1,16})\.(\d{1,15})$/.exec(option);
  if (match) return { createdMicros: Number(match[1]), id: Number(match[2]) };
  throw new InvalidFieldError("cursor", "invalid_input", "Invalid cursor for this list.");
}

/** In the order of the documentation. */
export const groupOperations = [listAllGroupTypes, listAllGroups, findOneGroup];
