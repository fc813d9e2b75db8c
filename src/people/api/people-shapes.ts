/** Persons, groups and what ingestion tells about a project, in answers (contract: management-api 6.4). */

import {
  bool,
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  text,
  uuid,
} from "../../http/shapes.ts";

/** Persons or groups of one page: millions would keep everybody else waiting. */
export const peoplePerPageMax = 10_000;

/** Said of the parameter `limit` of their lists. */
export const peopleLimit = optional(
  int({
    description: `Page size, at most ${peoplePerPageMax.toLocaleString("en")}; pages of large ones are shorter.`,
    default: 100,
  }),
);

export const PersonBody = named(
  "Person",
  object({
    id: uuid({ description: "Same as `uuid`." }),
    uuid: uuid(),
    name: text({ blank: true, description: "A telling property, else the main distinct id." }),
    distinct_ids: list(text(), { description: "The main one first, then by time of joining." }),
    properties: dictionary(),
    is_identified: bool(),
    created_at: instant(),
  }),
);

export const PersonPage = named(
  "PersonPage",
  object({ next: nullable(text()), previous: nullable(text()), results: list(PersonBody) }),
);

export const GroupBody = named(
  "Group",
  object({
    group_type_index: int({ minimum: 0 }),
    group_key: text(),
    group_properties: dictionary(),
    created_at: instant(),
  }),
);

export const GroupPage = named(
  "GroupPage",
  object({ next: nullable(text()), previous: nullable(text()), results: list(GroupBody) }),
);
