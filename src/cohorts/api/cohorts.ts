/** Cohorts: groups of persons, by conditions or as a list (contract: management-api 6.2). */

import type { Static } from "@sinclair/typebox";
import type { Author } from "../../accounts/activity.ts";
import { projectRoute } from "../../accounts/api/routes.ts";
import { findUser } from "../../accounts/users.ts";
import { parseLimitedJson } from "../../http/body.ts";
import { parseFields } from "../../http/fields.ts";
import { methodNotAllowed, notFound } from "../../http/http-error.ts";
import type { Route } from "../../http/route.ts";
import { ApiFailure } from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { parserMessage } from "../../lib/json/limits.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { type CalculationDeps, calculate, calculateInBackground } from "../cohort-calculation.ts";
import { filtersOfGroups } from "../cohort-filters.ts";
import { type Cohort, type CohortFields, createCohort, findCohort, updateCohort } from "../cohorts.ts";
import { CohortInput, cohortBody } from "./cohort-schemas.ts";

export const cohortTag = "Cohorts";

export interface CohortDeps extends CalculationDeps {
  persons: PersonReader;
}

/** Throws if changes of the cohort require approval because a protected flag uses it. */
export type AssertMayChange = (cohort: Cohort) => void;

/** The changes requested by a PATCH or PUT. */
export interface CohortChange {
  fields: Partial<CohortFields>;
  /** Distinct ids to add to a static cohort. */
  distinctIds: string[] | undefined;
}

/** A method that is not allowed; no operation. */
export function cohortRoutes(): Route[] {
  return [
    projectRoute("DELETE", "/cohorts/:id", "cohort:write", {
      summary: "Not allowed: delete cohorts with PATCH",
      tag: cohortTag,
      answers: { 405: { description: "Always.", schema: ApiFailure } },
      handle: () => {
        const detail = 'Hard delete of a cohort is not allowed. Send a PATCH with {"deleted": true} instead.';
        throw methodNotAllowed("DELETE", ["GET", "PUT", "PATCH", "HEAD", "OPTIONS"], detail);
      },
    }),
  ];
}

/** Author and project of a change. */
interface CohortActor {
  projectId: number;
  by: Author;
  now: Date;
}

/** Creates a cohort from the body of a request, and starts the calculation of its members. @throws {InvalidFieldError} */
export async function createFromBody(deps: CohortDeps, { projectId, by, now }: CohortActor, body: unknown) {
  const { csv, ...sent } = unpackForm(body);
  const input = parseFields(CohortInput, sent);
  const distinctIds = await idsIn(csv, input.is_static === true);
  const fields = { ...cohortFields(input), name: input.name };
  const created = createCohort(deps.metadata, { projectId, by, fields }, now);
  await fill(deps, created, distinctIds);
  return await storedBody(deps, created);
}

/** Changes a cohort by the body of a request. @throws {InvalidFieldError} */
export async function updateFromBody(
  deps: CohortDeps,
  { projectId, by, now }: CohortActor,
  id: number,
  body: unknown,
  { isPartial, assertMayChange }: { isPartial: boolean; assertMayChange: AssertMayChange },
) {
  const before = getCohort(deps, projectId, id);
  const change = await readCohortChange(body, before, { isPartial });
  if (isMembershipChanged(before, change)) assertMayChange(before);
  const after = updateCohort(deps.metadata, { projectId, id, by }, change.fields, now);
  await fillChanged(deps, after, change);
  return await storedBody(deps, after);
}

/** Parses the body of a PATCH or PUT. @throws {InvalidFieldError} */
export async function readCohortChange(
  body: unknown,
  before: Cohort,
  { isPartial }: { isPartial: boolean },
): Promise<CohortChange> {
  const { fields, csv } = readDefinition(body, { isPartial });
  return { fields, distinctIds: await idsIn(csv, fields.isStatic ?? before.isStatic) };
}

/** The part of `readCohortChange` that reads no uploaded file. @throws {InvalidFieldError} */
export function readDefinition(
  body: unknown,
  { isPartial }: { isPartial: boolean },
): { fields: Partial<CohortFields>; csv: string | undefined } {
  const { csv, ...sent } = unpackForm(body);
  return { fields: cohortFields(parseFields(CohortInput, sent, { partial: isPartial })), csv };
}

/** Whether a change can alter the members; name and description cannot. */
function isMembershipChanged(before: Cohort, { fields, distinctIds }: CohortChange): boolean {
  const { name: _, description: __, ...others } = fields;
  const isChanged = (Object.keys(others) as (keyof typeof others)[]).some(
    (field) => !Bun.deepEquals(others[field], before[field]),
  );
  return isChanged || distinctIds !== undefined;
}

/** Calculates the members of a changed cohort; resolves when uploaded members are added. */
export async function fillChanged(deps: CohortDeps, after: Cohort, change: CohortChange): Promise<void> {
  const { filters, isStatic, deleted } = change.fields;
  const isAnother = filters !== undefined || isStatic !== undefined || deleted === false;
  if (change.distinctIds !== undefined || isAnother) await fill(deps, after, change.distinctIds);
}

/** A cohort in the API, with the results of its calculation. @throws {HttpError} 404. */
export async function storedBody(
  deps: Pick<CohortDeps, "metadata" | "persons">,
  target: { projectId: number; id: number },
) {
  const cohort = getCohort(deps, target.projectId, target.id);
  const creator = cohort.createdById === null ? undefined : findUser(deps.metadata.db, cohort.createdById);
  return cohortBody((await withCounts(deps, [cohort]))[0]!, creator);
}

/** Static cohorts are counted on read: members leave when persons are deleted or merged. */
export async function withCounts(
  { persons }: Pick<CohortDeps, "persons">,
  cohorts: readonly Cohort[],
): Promise<Cohort[]> {
  const counted = cohorts.filter(({ isStatic, personCount }) => isStatic && personCount !== null);
  const sizes = await persons.cohortSizes(counted.map(({ id }) => id));
  return cohorts.map((cohort) =>
    sizes.has(cohort.id) ? { ...cohort, personCount: sizes.get(cohort.id)! } : cohort,
  );
}

/**
 * The distinct IDs in an uploaded file; undefined without one. @throws {InvalidFieldError} before anything is written
 */
async function idsIn(csv: string | undefined, isStatic: boolean): Promise<string[] | undefined> {
  if (csv === undefined) return undefined;
  if (!isStatic) {
    const detail = "Only static cohorts accept a file: send `is_static` true with it.";
    throw new InvalidFieldError("csv", "invalid_input", detail);
  }
  // Imported on demand: the CSV library stays out of memory.
  const { distinctIdsOfCsv } = await import("../distinct-ids.ts");
  const ids = distinctIdsOfCsv(csv);
  if (ids.length === 0)
    throw new InvalidFieldError("csv", "invalid_input", "The file contains no distinct ids.");
  return ids;
}

/** The response waits for uploaded members; dynamic cohorts are calculated in the background. */
async function fill(deps: CohortDeps, cohort: Cohort, distinctIds: string[] | undefined): Promise<void> {
  if (cohort.deleted) return;
  if (cohort.isStatic) {
    if (distinctIds === undefined) return;
    await calculate(deps, cohort.id, () =>
      deps.cohortFiller.addDistinctIds(cohort.projectId, cohort.id, distinctIds),
    );
    return;
  }
  void calculateInBackground(deps, cohort.id, () =>
    deps.cohortFiller.countMembers(cohort.projectId, cohort.id),
  );
}

/** @throws {HttpError} 404. */
export function getCohort({ metadata }: Pick<CohortDeps, "metadata">, projectId: number, id: number): Cohort {
  const cohort = findCohort(metadata.db, projectId, id, { includeDeleted: true });
  if (!cohort) throw notFound();
  return cohort;
}

/** Form values are strings: the uploaded file, and JSON for structured fields. */
function unpackForm(body: unknown): { csv: string | undefined; [name: string]: unknown } {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return { csv: undefined, body };
  const { csv, filters, groups, query, ...rest } = body as Record<string, unknown>;
  const json = Object.entries({ filters, groups, query }).filter(([, value]) => value !== undefined);
  return {
    ...rest,
    ...Object.fromEntries(json.map(([name, value]) => [name, parsedString(name, value)])),
    csv: typeof csv === "string" ? csv : undefined,
  };
}

function parsedString(name: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return parseLimitedJson(value);
  } catch (error) {
    // As for a body of JSON.
    throw new InvalidFieldError(name, "invalid_input", `JSON parse error - ${parserMessage(error)}`);
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
