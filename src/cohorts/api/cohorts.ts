/** Cohorts: groups of persons by a rule, or by a list (contract: management-api 6.2). */

import type { Static } from "@sinclair/typebox";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { findUser, userFinder } from "../../accounts/users.ts";
import { unavailable } from "../../http/answers.ts";
import { methodNotAllowed, notFound } from "../../http/failure.ts";
import { parseFields } from "../../http/fields.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readId } from "../../http/path.ts";
import { readBoolean } from "../../http/query.ts";
import { Reply, type Route } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  int,
  object,
  onePage,
  optional,
  pageOf,
  text,
  withPage,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { PersonPage, peopleLimit } from "../../people/api/people-shapes.ts";
import { foundPersons } from "../../people/api/person-pages.ts";
import { countCohortMembers } from "../../people/cohort-members.ts";
import type { PeopleDb } from "../../people/open.ts";
import { type FillingDeps, fillInBackground, fillNow } from "../cohort-filling.ts";
import { filtersOfGroups } from "../cohort-filters.ts";
import {
  type Cohort,
  type CohortFields,
  createCohort,
  findCohort,
  listCohorts,
  updateCohort,
} from "../cohorts.ts";
import { CohortBody, CohortInput, cohortBody, exampleCohort } from "./cohort-shapes.ts";

const tagName = "Cohorts";
const oneAnswer = { 200: { description: "The cohort.", schema: CohortBody, example: exampleCohort } };
const uploadHint =
  "A static cohort may be sent as `multipart/form-data` with the same fields and a file `csv`: one distinct id per line, or a table with a column `distinct_id`.";

export interface CohortDeps extends FillingDeps {
  people: PeopleDb;
}

/** Throws if changes of the cohort have to be approved: a protected flag uses it. */
export type AssertMayChange = (cohort: Cohort) => void;

/** What a PATCH of a cohort wants to write. */
export interface CohortChange {
  fields: Partial<CohortFields>;
  /** Distinct ids to add to a static cohort. */
  distinctIds: string[] | undefined;
}

export function cohortRoutes(deps: CohortDeps, assertMayChange: AssertMayChange): Route[] {
  const { metadata } = deps;
  const write = (cohort: Cohort) => written(deps, cohort);
  return [
    projectRoute("GET", "/cohorts", "cohort:read", {
      summary: "List cohorts",
      description: "Newest first; deleted ones are left out.",
      tag: tagName,
      query: withPage(
        object({
          search: optional(text({ description: "Part of the name." })),
          hide_behavioral_cohorts: optional(bool({ description: "Leave out cohorts by what persons did." })),
        }),
      ),
      answers: {
        200: onePage("One page of cohorts.", pageOf("CohortPage", CohortBody), exampleCohort),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const filter = {
          search: call.query.get("search") || undefined,
          hidesBehavioural: readBoolean(call.query, "hide_behavioral_cohorts") ?? false,
        };
        const { cohorts, count } = listCohorts(metadata.db, call.project.id, filter, page);
        const users = userFinder(metadata.db);
        const shown = cohorts.map((cohort) => cohortBody(withCount(deps, cohort), users(cohort.createdById)));
        return pageAnswer(call.url, page, count, shown);
      },
    }),
    projectRoute("POST", "/cohorts", "cohort:write", {
      summary: "Create a cohort",
      description: `Its members are counted in the background. ${uploadHint}`,
      tag: tagName,
      body: CohortInput,
      takesRawBody: true,
      bodyExample: { name: exampleCohort.name, filters: exampleCohort.filters },
      answers: { 201: { description: "The new cohort.", schema: CohortBody, example: exampleCohort } },
      handle: async (call) => {
        const { csv, ...body } = unpackForm(call.body);
        const input = parseFields(CohortInput, body);
        const distinctIds = await idsIn(csv, input.is_static === true);
        const created = createCohort(
          metadata,
          {
            projectId: call.project.id,
            by: call.user.id,
            fields: { ...cohortFields(input), name: input.name },
          },
          call.now,
        );
        await fill(deps, created, distinctIds);
        return new Reply(201, write(storedAgain(deps, created)));
      },
    }),
    projectRoute("GET", "/cohorts/:id", "cohort:read", {
      summary: "Get a cohort",
      tag: tagName,
      answers: oneAnswer,
      handle: (call) => write(getCohort(deps, call)),
    }),
    projectRoute("PATCH", "/cohorts/:id", "cohort:write", {
      summary: "Update or delete a cohort",
      description: `\`deleted: true\` deletes it. A cohort that active flags use cannot be deleted, made static or cleared. ${uploadHint}`,
      tag: tagName,
      body: CohortInput,
      takesRawBody: true,
      bodyExample: { name: "Staff" },
      answers: oneAnswer,
      handle: (call) => edit(deps, call, { isPartial: true, assertMayChange }),
    }),
    projectRoute("PUT", "/cohorts/:id", "cohort:write", {
      summary: "Update a cohort",
      description: "As PATCH, but `name` is required. Fields that are not sent keep their values.",
      tag: tagName,
      body: CohortInput,
      takesRawBody: true,
      bodyExample: { name: "Staff", description: "Everybody who works here" },
      answers: oneAnswer,
      handle: (call) => edit(deps, call, { isPartial: false, assertMayChange }),
    }),
    projectRoute("DELETE", "/cohorts/:id", "cohort:write", {
      summary: "Not allowed: delete cohorts with PATCH",
      tag: tagName,
      answers: { 405: { description: "Always.", schema: ApiFailure } },
      handle: () => {
        const detail = 'Hard delete of a cohort is not allowed. Send a PATCH with {"deleted": true} instead.';
        throw methodNotAllowed("DELETE", ["GET", "PUT", "PATCH", "HEAD", "OPTIONS"], detail);
      },
    }),
    projectRoute("GET", "/cohorts/:id/persons", "cohort:read", {
      summary: "List the members of a cohort",
      tag: tagName,
      alsoNeeds: "person:read",
      query: object({
        limit: peopleLimit,
        offset: optional(int({ default: 0 })),
        after: optional(text({ description: "Where the page before ended; taken from its `next`." })),
      }),
      answers: {
        200: {
          description: "One page of persons.",
          schema: PersonPage,
          example: { next: null, previous: null, results: [] },
        },
        ...unavailable,
      },
      handle: (call) => {
        const cohort = getCohort(deps, call);
        return foundPersons(deps, call, (wanted) =>
          deps.cohortFiller.members(call.project.id, cohort.id, wanted),
        );
      },
    }),
  ];
}

async function edit(
  deps: CohortDeps,
  call: ProjectCall<unknown>,
  { isPartial, assertMayChange }: { isPartial: boolean; assertMayChange: AssertMayChange },
) {
  const before = getCohort(deps, call);
  const change = await readCohortChange(call.body, before, { isPartial });
  if (isMembershipChanged(before, change)) assertMayChange(before);
  const of = { projectId: call.project.id, id: before.id, by: call.user.id };
  const after = updateCohort(deps.metadata, of, change.fields, call.now);
  await fillChanged(deps, after, change);
  return written(deps, storedAgain(deps, after));
}

/** Reads the body of a PATCH or PUT. @throws {InvalidField} */
export async function readCohortChange(
  body: unknown,
  before: Cohort,
  { isPartial }: { isPartial: boolean },
): Promise<CohortChange> {
  const { csv, ...sent } = unpackForm(body);
  const fields = cohortFields(parseFields(CohortInput, sent, { partial: isPartial }));
  return { fields, distinctIds: await idsIn(csv, fields.isStatic ?? before.isStatic) };
}

/** Whether a change can alter who is in the cohort; its name and its description cannot. */
function isMembershipChanged(before: Cohort, { fields, distinctIds }: CohortChange): boolean {
  const { name: _, description: __, ...others } = fields;
  const isChanged = (Object.keys(others) as (keyof typeof others)[]).some(
    (field) => !Bun.deepEquals(others[field], before[field]),
  );
  return isChanged || distinctIds !== undefined;
}

/** Looks for the members of a cohort that was changed; resolves when uploaded ones are added. */
export async function fillChanged(deps: CohortDeps, after: Cohort, change: CohortChange): Promise<void> {
  const { filters, isStatic, deleted } = change.fields;
  const isAnother = filters !== undefined || isStatic !== undefined || deleted === false;
  if (change.distinctIds !== undefined || isAnother) await fill(deps, after, change.distinctIds);
}

/** A cohort as it is once its members were looked for. */
function storedAgain({ metadata }: CohortDeps, { projectId, id }: Cohort): Cohort {
  return findCohort(metadata.db, projectId, id, { includeDeleted: true })!;
}

/** Persons leave a static cohort when they are deleted or merged, long after it was filled. */
function withCount({ people }: CohortDeps, cohort: Cohort): Cohort {
  const isCounted = cohort.isStatic && cohort.personCount !== null;
  return isCounted ? { ...cohort, personCount: countCohortMembers(people, cohort.id) } : cohort;
}

function written(deps: CohortDeps, cohort: Cohort) {
  const { metadata } = deps;
  const creator = cohort.createdById === null ? undefined : findUser(metadata.db, cohort.createdById);
  return cohortBody(withCount(deps, cohort), creator);
}

/** The distinct ids in an uploaded file; undefined without one. @throws {InvalidField} before anything is written. */
async function idsIn(csv: string | undefined, isStatic: boolean): Promise<string[] | undefined> {
  if (csv === undefined) return undefined;
  if (!isStatic) {
    const detail = "Only a static cohort takes a file: send `is_static` true with it.";
    throw new InvalidField("csv", "invalid_input", detail);
  }
  // Loaded late: the library would be in memory for nothing.
  const { distinctIdsOfCsv } = await import("../distinct-ids.ts");
  const ids = distinctIdsOfCsv(csv);
  if (ids.length === 0) throw new InvalidField("csv", "invalid_input", "The file holds no distinct ids.");
  return ids;
}

/** The answer waits for what was uploaded to be added; rules are computed in the background. */
async function fill(deps: CohortDeps, cohort: Cohort, distinctIds: string[] | undefined): Promise<void> {
  if (cohort.deleted) return;
  if (cohort.isStatic) {
    if (distinctIds === undefined) return;
    await fillNow(deps, cohort.id, () =>
      deps.cohortFiller.addDistinctIds(cohort.projectId, cohort.id, distinctIds),
    );
    return;
  }
  void fillInBackground(deps, cohort.id, () => deps.cohortFiller.countMembers(cohort.projectId, cohort.id));
}

function getCohort(deps: CohortDeps, call: ProjectCall<unknown>): Cohort {
  const cohort = findCohort(deps.metadata.db, call.project.id, readId(call.params, "id"), {
    includeDeleted: true,
  });
  if (!cohort) throw notFound();
  return cohort;
}

/** In a form every value is text: the uploaded file, and JSON for what is not text. */
function unpackForm(body: unknown): { csv: string | undefined; [name: string]: unknown } {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return { csv: undefined, body };
  const { csv, filters, groups, query, ...rest } = body as Record<string, unknown>;
  const json = Object.entries({ filters, groups, query }).filter(([, value]) => value !== undefined);
  return {
    ...rest,
    ...Object.fromEntries(json.map(([name, value]) => [name, parsedText(name, value)])),
    csv: typeof csv === "string" ? csv : undefined,
  };
}

function parsedText(name: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    throw new InvalidField(name, "invalid_input", "Value must be valid JSON.");
  }
}

function cohortFields(input: Partial<Static<typeof CohortInput>>): Partial<CohortFields> {
  const fields: Partial<CohortFields> = {
    name: input.name,
    description: input.description ?? undefined,
    groups: input.groups ?? undefined,
    filters: input.filters ?? (input.groups?.length ? filtersOfGroups(input.groups) : undefined),
    query: input.query,
    deleted: input.deleted,
    isStatic: input.is_static,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
