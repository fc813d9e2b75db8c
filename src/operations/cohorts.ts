/** Cohorts (contract: management-api 6.2). */

import type { Static } from "@sinclair/typebox";
import type { Metadata } from "../accounts/metadata.ts";
import { userFinder } from "../accounts/users.ts";
import {
  CohortBody,
  CohortInput,
  cohortBody,
  exampleCohort as example,
} from "../cohorts/api/cohort-schemas.ts";
import {
  type CohortDeps,
  createFromBody,
  getCohort,
  storedBody,
  cohortTag as tag,
  updateFromBody,
  withCounts,
} from "../cohorts/api/cohorts.ts";
import { cohortSizeDaysMax, listSizes } from "../cohorts/cohort-sizes.ts";
import { listCohorts } from "../cohorts/cohorts.ts";
import { assertCohortNeedsNoApproval } from "../flags/store/protected-flags.ts";
import { unavailable } from "../http/error-mapping.ts";
import { readBoolean } from "../http/params.ts";
import { bool, int, list, object, optional, pageOf, record, string } from "../http/schemas.ts";
import { foundPersons, readFoundQuery } from "../persons/api/person-pages.ts";
import { PersonPage, peopleLimit } from "../persons/api/person-schemas.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { jsonOptions } from "./experiment-list.ts";
import {
  type CommandArgument,
  cursorListOperation,
  getAuthor,
  listOperation,
  type Operation,
  operation,
  type ProjectContext,
  type RawInput,
} from "./operation.ts";

type Context = ProjectContext<{ metadata: Metadata; persons: PersonReader }>;
type WriteContext = ProjectContext<CohortDeps & Parameters<typeof assertCohortNeedsNoApproval>[0]>;

const uploadHint =
  "A static cohort may be sent as `multipart/form-data` with the same fields and a file `csv`: one distinct id per line, or a table with a column `distinct_id`.";

export const listAllCohorts = listOperation({
  id: "cohorts.list",
  on: "project",
  scope: "cohort:read",
  tag,
  summary: "List cohorts",
  description: "Newest first, without deleted cohorts.",
  http: { method: "GET", path: "/cohorts", answer: "One page of cohorts." },
  mcp: { name: "list_cohorts" },
  input: object({
    search: optional(string({ description: "Part of the name." })),
    hide_behavioral_cohorts: optional(bool({ description: "Exclude behavioral cohorts." })),
  }),
  output: pageOf("CohortPage", CohortBody),
  example,
  readQuery: (query) => ({
    search: query.get("search") || undefined,
    hidesBehavioral: readBoolean(query, "hide_behavioral_cohorts") ?? false,
  }),
  run: async ({ stores, project }: Context, { limit, offset, ...filter }) => {
    const { db } = stores.metadata;
    const { cohorts, count } = listCohorts(db, project.id, filter, { limit, offset });
    const users = userFinder(db);
    return {
      count,
      results: (await withCounts(stores, cohorts)).map((cohort) =>
        cohortBody(cohort, users(cohort.createdById)),
      ),
    };
  },
});

const createNewCohort = operation({
  id: "cohorts.create",
  on: "project",
  scope: "cohort:write",
  tag,
  summary: "Create a cohort",
  description: `Members are calculated in the background. ${uploadHint}`,
  http: { method: "POST", path: "/cohorts", status: 201, answer: "The new cohort.", takesRawBody: true },
  mcp: {
    name: "create_cohort",
    description: "Create a cohort; its members are calculated in the background.",
  },
  input: CohortInput,
  inputExample: { name: example.name, filters: example.filters },
  output: CohortBody,
  example,
  run: (context: WriteContext, { body }) => createFromBody(context.stores, getActor(context), body),
});

const getOneCohort = operation({
  id: "cohorts.get",
  on: "project",
  scope: "cohort:read",
  tag,
  summary: "Get a cohort",
  http: { method: "GET", path: "/cohorts/:id", answer: "The cohort." },
  mcp: { name: "get_cohort" },
  input: object({ id: int() }),
  output: CohortBody,
  example,
  run: ({ stores, project }: Context, { id }) => storedBody(stores, { projectId: project.id, id }),
});

const CohortChange = object({ id: int(), ...CohortInput.properties });

const updateOneCohort = operation({
  id: "cohorts.update",
  on: "project",
  scope: "cohort:write",
  tag,
  summary: "Update or delete a cohort",
  description: `\`deleted: true\` deletes it. A cohort that active flags use cannot be deleted, made static or cleared. ${uploadHint}`,
  http: { method: "PATCH", path: "/cohorts/:id", answer: "The cohort.", takesRawBody: true },
  input: CohortChange,
  inputExample: { name: "Staff" },
  output: CohortBody,
  example,
  run: (context: WriteContext, input) => update(context, input, true),
});

const replaceOneCohort = operation({
  id: "cohorts.replace",
  on: "project",
  scope: "cohort:write",
  tag,
  summary: "Update a cohort",
  description: "Like PATCH, but `name` is required. Omitted fields keep their values.",
  http: { method: "PUT", path: "/cohorts/:id", answer: "The cohort.", takesRawBody: true },
  input: CohortChange,
  inputExample: { name: "Staff", description: "Employees" },
  output: CohortBody,
  example,
  run: (context: WriteContext, input) => update(context, input, false),
});

const listMembers = cursorListOperation({
  id: "cohorts.persons.list",
  on: "project",
  scope: "cohort:read",
  tag,
  summary: "List the members of a cohort",
  http: {
    method: "GET",
    path: "/cohorts/:id/persons",
    answer: "One page of persons.",
    alsoNeeds: ["person:read"],
    errors: unavailable,
  },
  input: object({
    id: int(),
    limit: peopleLimit,
    offset: optional(int({ default: 0 })),
    after: optional(string({ description: "Cursor from `next` of the previous page." })),
  }),
  output: PersonPage,
  readQuery: readFoundQuery,
  run: ({ stores, project }: ProjectContext<CohortDeps>, { id, ...query }) => {
    const cohort = getCohort(stores, project.id, id);
    return foundPersons(stores.persons, query, (page) =>
      stores.cohortFiller.members(project.id, cohort.id, page),
    );
  },
});

const CohortSizesBody = object({
  results: list(
    object({
      day: string({ description: "`2026-11-27`" }),
      count: int({ description: "Members at the last calculation of the day." }),
    }),
  ),
});

const listCohortSizes = operation({
  id: "cohorts.sizes.list",
  on: "project",
  scope: "cohort:read",
  tag,
  summary: "List a cohort's sizes",
  description: `The number of members by day (UTC), oldest first: each cohort is counted once a day, and sizes are kept for ${cohortSizeDaysMax} days.`,
  http: { method: "GET", path: "/cohorts/:id/sizes", answer: "The sizes." },
  mcp: { name: "list_cohort_sizes", description: "List a cohort's number of members by day." },
  input: object({ id: int() }),
  output: CohortSizesBody,
  example: { results: [{ day: "2026-03-02", count: 42 }] },
  run: ({ stores, project }: Context, { id }) => ({
    results: listSizes(stores.metadata.db, getCohort(stores, project.id, id).id),
  }),
});

type CohortRecord = Static<typeof CohortBody>;
type CohortSizes = Static<typeof CohortSizesBody>;

const idArgument: CommandArgument = {
  name: "id",
  description: "cohort id",
  member: "id",
  lookup: {
    in: () => listAllCohorts,
    matches: ({ id }: CohortRecord, text) => String(id) === text,
    value: ({ id }: CohortRecord) => id,
    missing: (text) => `Cohort ${text} does not exist.`,
  },
};
/** Members that commands write; the other ones are PostHog's older forms. */
const written = { description: optional(string({ blank: true })), filters: optional(record()) };
const writtenOptions = { description: { description: "description" }, ...jsonOptions(["filters"]) };

/** Commands of their own; the routes are those of the operations. */
const createCommand = {
  ...createNewCohort,
  input: object({ name: CohortInput.properties.name, ...written, is_static: optional(bool()) }),
  cli: {
    name: "cohorts create",
    description: "Create a cohort; a server counts its members.",
    examples: ["cohorts create Beta --is-static", 'cohorts create Staff --filters "$(cat staff.json)"'],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    options: { ...writtenOptions, is_static: { description: "a list of persons instead of conditions" } },
    hasCreator: true,
    done: ({ id, name }: CohortRecord) => `Cohort ${name} created (${id}).`,
  },
} satisfies Operation;
const showCommand = {
  ...getOneCohort,
  cli: {
    name: "cohorts show",
    description: "Show a cohort.",
    examples: ["cohorts show 3 --json"],
    arguments: [idArgument],
    done: ({ id, name, count, filters }: CohortRecord) =>
      `${name} (${id}): ${count ?? "-"} persons\n${JSON.stringify(filters)}`,
  },
} satisfies Operation;
const sizesCommand = {
  ...listCohortSizes,
  cli: {
    name: "cohorts sizes",
    examples: ["cohorts sizes 3"],
    arguments: [idArgument],
    done: ({ results }: CohortSizes) =>
      results.map(({ day, count }) => `${day}  ${count}`).join("\n") || "No sizes yet.",
  },
} satisfies Operation;
const setCommand = {
  ...updateOneCohort,
  input: object({ id: int(), name: optional(CohortInput.properties.name), ...written }),
  cli: {
    name: "cohorts set",
    description: "Update a cohort; omitted options are kept.",
    examples: ["cohorts set 3 --name Staff"],
    arguments: [idArgument],
    options: { ...writtenOptions, name: { description: "display name" } },
    done: ({ id, name }: CohortRecord) => `Cohort ${name} (${id}) updated.`,
  },
} satisfies Operation;
const deleteCommand = {
  ...updateOneCohort,
  input: object({ id: int() }),
  cli: {
    name: "cohorts delete",
    description: "Delete a cohort that no active flag uses.",
    examples: ["cohorts delete 3"],
    arguments: [idArgument],
    adds: () => ({ deleted: true }),
    done: ({ id, name }: CohortRecord) => `Cohort ${name} (${id}) deleted.`,
  },
} satisfies Operation;

export const cohortCommands: readonly Operation[] = [
  createCommand,
  showCommand,
  sizesCommand,
  setCommand,
  deleteCommand,
];

const getActor = ({ project, actor, now }: WriteContext) => ({
  projectId: project.id,
  by: getAuthor(actor),
  now,
});

function update(context: WriteContext, { id, body }: RawInput, isPartial: boolean) {
  const { stores } = context;
  const assertMayChange = (cohort: { projectId: number; id: number }) =>
    assertCohortNeedsNoApproval(stores, cohort);
  return updateFromBody(stores, getActor(context), id, body, { isPartial, assertMayChange });
}

/** In the order of the documentation. */
export const cohortOperations = [
  listAllCohorts,
  createNewCohort,
  getOneCohort,
  updateOneCohort,
  replaceOneCohort,
  listMembers,
  listCohortSizes,
];
