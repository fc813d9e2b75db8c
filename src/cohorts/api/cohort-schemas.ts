/** Cohorts in requests and responses (contract: management-api 5.11, 6.2). */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-schemas.ts";
import type { User } from "../../accounts/users.ts";
import {
  anyJson,
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
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import type { Cohort } from "../cohorts.ts";

export const CohortBody = named(
  "Cohort",
  object({
    id: int(),
    name: string(),
    description: string({ blank: true }),
    groups: list(anyJson()),
    deleted: bool(),
    filters: record({ description: '`{"properties": {}}` when static.' }),
    query: anyJson(),
    is_calculating: bool({ description: "The members are being calculated." }),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    last_calculation: nullable(dateTime()),
    errors_calculating: int(),
    count: nullable(
      int({ description: "Members at `last_calculation`; current members of a static cohort." }),
    ),
    is_static: bool(),
    experiment_set: list(int()),
  }),
);

export const CohortInput = object({
  name: string({ max: 400 }),
  description: optional(nullable(string({ blank: true, max: 1_000 }))),
  groups: optional(nullable(list(anyJson()))),
  deleted: optional(bool()),
  filters: optional(nullable(record())),
  query: optional(anyJson()),
  is_static: optional(bool()),
  _create_in_folder: optional(anyJson({ description: "Accepted without effect." })),
});

/** The wire form of a cohort. */
export function cohortBody(cohort: Cohort, creator: User | undefined): Static<typeof CohortBody> {
  return {
    id: cohort.id,
    name: cohort.name,
    description: cohort.description,
    groups: cohort.groups,
    deleted: cohort.deleted,
    filters: cohort.filters,
    query: cohort.query,
    is_calculating: cohort.isCalculating,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(cohort.createdAt),
    last_calculation: toApiTimeOrNull(cohort.lastCalculation),
    errors_calculating: cohort.errorsCalculating,
    count: cohort.personCount,
    is_static: cohort.isStatic,
    experiment_set: [],
  };
}

export const exampleCohort = {
  id: 7,
  name: "People at example.com",
  description: "",
  groups: [],
  deleted: false,
  filters: {
    properties: {
      type: "OR",
      values: [
        {
          type: "AND",
          values: [{ key: "email", type: "person", operator: "icontains", value: "@example.com" }],
        },
      ],
    },
  },
  query: null,
  is_calculating: false,
  created_by: exampleUser,
  created_at: "2026-03-02T08:15:30.120000Z",
  last_calculation: "2026-03-02T08:15:31.000000Z",
  errors_calculating: 0,
  count: 42,
  is_static: false,
  experiment_set: [],
};
