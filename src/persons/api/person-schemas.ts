/** Persons, groups and ingestion status in responses (contract: management-api 6.4). */

import type { Static } from "@sinclair/typebox";
import type { GroupTypeBody } from "../../accounts/api/project-schemas.ts";
import {
  bool,
  dateTime,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  record,
  string,
  uuid,
} from "../../http/schemas.ts";
import { microsToApiTime } from "../../lib/time.ts";
import type { GroupType } from "../groups.ts";

/** Maximum page size: millions would block all other requests. */
export const personsPerPageMax = 10_000;

/** For the parameter `limit` of these lists. */
export const peopleLimit = optional(
  int({
    description: `Page size, at most ${personsPerPageMax.toLocaleString("en")}; pages of large ones are shorter.`,
    default: 100,
  }),
);

export const PersonBody = named(
  "Person",
  object({
    id: uuid({ description: "Same as `uuid`." }),
    uuid: uuid(),
    name: string({ blank: true, description: "Display name from a property, else the main distinct id." }),
    distinct_ids: list(string(), { description: "The main distinct id first, then by merge time." }),
    properties: record(),
    is_identified: bool(),
    created_at: dateTime(),
    version: int({ description: "Increases with each change of the person." }),
  }),
);

export const examplePerson = {
  id: "0193d1a2-7b1c-7c3e-9f60-9c0d1e2f3a4b",
  uuid: "0193d1a2-7b1c-7c3e-9f60-9c0d1e2f3a4b",
  name: "kim@example.com",
  distinct_ids: ["kim", "anonymous-7f"],
  properties: { email: "kim@example.com" },
  is_identified: true,
  created_at: "2026-03-02T08:15:30.120000Z",
  version: 3,
};

export const PersonPage = named(
  "PersonPage",
  object({ next: nullable(string()), previous: nullable(string()), results: list(PersonBody) }),
);

export const GroupBody = named(
  "Group",
  object({
    group_type_index: int({ minimum: 0 }),
    group_key: string(),
    group_properties: record(),
    created_at: dateTime(),
  }),
);

export const GroupPage = named(
  "GroupPage",
  object({ next: nullable(string()), previous: nullable(string()), results: list(GroupBody) }),
);

/** The wire form of a group type. */
export function groupTypeBody(type: GroupType): Static<typeof GroupTypeBody> {
  return {
    group_type: type.name,
    group_type_index: type.typeIndex,
    name_singular: null,
    name_plural: null,
    detail_dashboard: null,
    default_columns: null,
    created_at: microsToApiTime(type.createdMicros),
  };
}
