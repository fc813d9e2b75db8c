/** Definitions of cohorts (contract: management-api 6.2). Members of static cohorts are in the person store. */

import { and, asc, desc, eq, like, or, sql } from "drizzle-orm";
import { type Author, getCreatorId, recordActivity, recordChange } from "../accounts/activity.ts";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { anyJsonValue, cohort, flag } from "../accounts/schema.ts";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import type { RecordMisfit } from "../lib/values/operators.ts";
import { checkedCohortFilters, cohortIdsIn, hasBehavioralFilters, hasConditions } from "./cohort-filters.ts";
import { recordSize } from "./cohort-sizes.ts";

export interface Cohort {
  id: number;
  projectId: number;
  name: string;
  description: string;
  /** Legacy definition; stored without effect. */
  groups: Json[];
  /** `{"properties": {}}` if static. */
  filters: JsonObject;
  query: Json;
  deleted: boolean;
  isStatic: boolean;
  isCalculating: boolean;
  errorsCalculating: number;
  /** Number of persons at `lastCalculation`; null before the first calculation. */
  personCount: number | null;
  lastCalculation: Date | null;
  createdById: number | null;
  createdAt: Date;
}

export type CohortFields = Pick<
  Cohort,
  "name" | "description" | "groups" | "filters" | "query" | "deleted" | "isStatic"
>;

/** A cohort by ID; excludes deleted ones unless requested. */
export function findCohort(
  db: Reading,
  projectId: number,
  id: number,
  options: { includeDeleted?: boolean } = {},
): Cohort | undefined {
  const found = db
    .select()
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.id, id)))
    .get();
  return found && (!found.deleted || options.includeDeleted) ? found : undefined;
}

/** The cohorts of a project that are not deleted, newest first. */
export function listCohorts(
  db: Reading,
  projectId: number,
  filter: { search?: string; hidesBehavioral?: boolean },
  page: { limit: number; offset: number },
): { cohorts: Cohort[]; count: number } {
  const wanted = filter.search?.trim().toLowerCase() ?? "";
  const found = db
    .select()
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, false)))
    .orderBy(desc(cohort.createdAt), desc(cohort.id))
    .all()
    // Not in SQL: SQLite is case-insensitive for ASCII only.
    .filter(({ name }) => name.toLowerCase().includes(wanted))
    .filter((row) => !filter.hidesBehavioral || row.isStatic || !hasBehavioralFilters(row.filters));
  return { cohorts: found.slice(page.offset, page.offset + page.limit), count: found.length };
}

/** All cohorts of a project that are not deleted, by ID. For evaluation. */
export function readCohorts(db: Reading, projectId: number): Cohort[] {
  return db
    .select()
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, false)))
    .orderBy(asc(cohort.id))
    .all();
}

/** IDs and names of a project's deleted cohorts, which flags may still reference. */
export function deletedCohorts(db: Reading, projectId: number): Pick<Cohort, "id" | "name">[] {
  return db
    .select({ id: cohort.id, name: cohort.name })
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, true)))
    .all();
}

export interface NewCohort {
  projectId: number;
  by: Author;
  fields: Partial<CohortFields> & { name: string };
  /** Receives messages about values that match nothing; without it they are rejected. */
  recordMisfit?: RecordMisfit;
}

/** Creates a cohort. @throws {InvalidFieldError} */
export function createCohort(metadata: Metadata, input: NewCohort, now: Date): Cohort {
  return metadata.change((t) => insertCohort(t, input, now));
}

/** Like `createCohort`, within a transaction. */
function insertCohort(t: MetadataTx, input: NewCohort, now: Date): Cohort {
  const { projectId, by, fields, recordMisfit } = input;
  const definition = fields.isStatic
    ? {}
    : {
        filters: checkedDefinition(t, { projectId, ownId: undefined, recordMisfit }, fields.filters).filters,
      };
  const created = t
    .insert(cohort)
    .values({ ...withQuery(fields), ...definition, projectId, createdById: getCreatorId(by), createdAt: now })
    .returning()
    .get();
  recordActivity(t, {
    by,
    projectId,
    activity: "created",
    scope: "Cohort",
    itemId: created.id,
    name: created.name,
    changes: [],
    now,
  });
  bumpRevision(t, flagRevision(projectId));
  return created;
}

/** Fields for a row: `query` is stored as sent, whatever it is. */
const withQuery = <Fields extends Partial<CohortFields>>({ query, ...others }: Fields) => ({
  ...others,
  ...(query === undefined ? {} : { query: anyJsonValue(query) }),
});

/** Updates or deletes a cohort. @throws {NotFoundError} @throws {InvalidFieldError} */
export function updateCohort(
  metadata: Metadata,
  target: { projectId: number; id: number; by: Author; recordMisfit?: RecordMisfit },
  fields: Partial<CohortFields>,
  now: Date,
): Cohort {
  return metadata.change((t) => {
    const before = findCohort(t, target.projectId, target.id, { includeDeleted: true });
    if (!before) throw new NotFoundError();
    const isStatic = fields.isStatic ?? before.isStatic;
    const sent: Partial<CohortFields> = { ...fields };
    const isRestored = before.deleted && fields.deleted === false;
    if (!isStatic && (isRestored || fields.filters !== undefined || fields.isStatic !== undefined)) {
      const wanted = fields.filters ?? before.filters;
      // Stored values may be older than the validation.
      const recordMisfit = fields.filters === undefined ? () => {} : target.recordMisfit;
      const { filters, isBehavioral } = checkedDefinition(
        t,
        { ...target, ownId: target.id, recordMisfit },
        wanted,
      );
      sent.filters = filters;
      if (isBehavioral && activeFlagsUsing(t, target.projectId, target.id).length > 0) {
        throw new InvalidFieldError(
          "filters",
          "behavioral_cohort_found",
          "Behavioral filters cannot be added to cohorts used in feature flags.",
        );
      }
    }
    if (Object.keys(fields).length === 0) return before;
    checkStaysUsable(t, before, { ...before, ...sent });
    const after = t.update(cohort).set(withQuery(sent)).where(eq(cohort.id, target.id)).returning().get();
    recordChange(t, {
      by: target.by,
      projectId: target.projectId,
      activity: before.deleted === after.deleted ? "updated" : after.deleted ? "deleted" : "restored",
      scope: "Cohort",
      itemId: target.id,
      name: after.name,
      before: shown(before),
      after: shown(after),
      now,
    });
    bumpRevision(t, flagRevision(target.projectId));
    return after;
  });
}

export function markCalculating(metadata: Metadata, id: number): void {
  metadata.change((t) => t.update(cohort).set({ isCalculating: true }).where(eq(cohort.id, id)).run());
}

export type InterruptedCohort = Pick<Cohort, "id" | "projectId">;

/**
 * Handles calculations interrupted by the end of a process. Those of static and deleted cohorts are recorded as failed.
 * @returns dynamic cohorts to calculate again; they stay marked as calculating
 */
export function endInterruptedCalculations(metadata: Metadata): InterruptedCohort[] {
  return metadata.change((t) => {
    t.update(cohort)
      .set({ isCalculating: false, errorsCalculating: sql`errors_calculating + 1` })
      .where(and(eq(cohort.isCalculating, true), or(cohort.isStatic, cohort.deleted)))
      .run();
    return t
      .select({ id: cohort.id, projectId: cohort.projectId })
      .from(cohort)
      .where(eq(cohort.isCalculating, true))
      .all();
  });
}

/**
 * Records the result of a calculation.
 * @param personCount current number of members; undefined if the calculation failed
 */
export function recordCalculation(
  metadata: Metadata,
  id: number,
  personCount: number | undefined,
  now: Date,
): void {
  if (metadata.isClosed) return;
  metadata.change((t) => {
    const result =
      personCount === undefined
        ? { errorsCalculating: sql`errors_calculating + 1` }
        : { personCount, lastCalculation: now, errorsCalculating: 0 };
    const row = t
      .update(cohort)
      .set({ isCalculating: false, ...result })
      .where(eq(cohort.id, id))
      .returning({ projectId: cohort.projectId })
      .get();
    if (row && personCount !== undefined) recordSize(t, id, personCount, now);
    if (row) bumpRevision(t, flagRevision(row.projectId));
  });
}

function shown(cohort: Cohort): JsonObject {
  return {
    name: cohort.name,
    description: cohort.description,
    filters: cohort.filters,
    is_static: cohort.isStatic,
    deleted: cohort.deleted,
  };
}

/**
 * Validates a definition. @returns the filters to store, and whether they or referenced cohorts are behavioral
 * @throws {InvalidFieldError} malformed, an unknown cohort, or a cyclic reference
 */
function checkedDefinition(
  t: MetadataTx,
  {
    projectId,
    ownId,
    recordMisfit,
  }: { projectId: number; ownId: number | undefined; recordMisfit?: RecordMisfit },
  sent: JsonObject | undefined,
): { filters: JsonObject; isBehavioral: boolean } {
  const filters = checkedCohortFilters(sent, recordMisfit);
  let isBehavioral = hasBehavioralFilters(filters);
  for (const [id, found] of cohortsWithin(t, projectId, filters)) {
    if (id === ownId) {
      throw new InvalidFieldError(
        "filters",
        "invalid_input",
        "Cohorts cannot reference other cohorts in a loop.",
      );
    }
    if (found === undefined) {
      throw new InvalidFieldError("filters", "cohort_does_not_exist", `Cohort with id ${id} does not exist`);
    }
    isBehavioral ||= !found.isStatic && hasBehavioralFilters(found.filters);
  }
  return { filters, isBehavioral };
}

/** The cohorts that filters reference directly or indirectly, without duplicates; undefined for unknown ones. */
function* cohortsWithin(
  t: MetadataTx,
  projectId: number,
  filters: Json,
): Generator<[id: number, found: Cohort | undefined]> {
  const seen = new Set<number>();
  const open = cohortIdsIn(filters);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (seen.has(id)) continue;
    seen.add(id);
    const found = findCohort(t, projectId, id);
    yield [id, found];
    // Filters of a static cohort have no effect.
    if (found?.isStatic === false) open.push(...cohortIdsIn(found.filters));
  }
}

const namedMax = 5;

/**
 * Active flags must not depend on a deleted cohort, or on one that suddenly matches no or all persons. Source:
 * contract, management-api 6.2 (third round B2).
 * @throws {InvalidFieldError} an active flag uses the cohort, directly or indirectly; the message lists flag keys
 */
function checkStaysUsable(t: MetadataTx, before: Cohort, after: Cohort): void {
  if (before.deleted) return;
  const isCleared =
    !after.isStatic && isEmpty(after.filters) && (before.isStatic || !isEmpty(before.filters));
  const loss = after.deleted
    ? { field: "deleted", what: "deleting it" }
    : after.isStatic && !before.isStatic
      ? { field: "is_static", what: "making it static" }
      : isCleared
        ? { field: "filters", what: "clearing its filters" }
        : undefined;
  if (loss === undefined) return;
  const keys = activeFlagsUsing(t, before.projectId, before.id);
  if (keys.length === 0) return;
  const more = keys.length > namedMax ? ` and ${keys.length - namedMax} more` : "";
  throw new InvalidFieldError(
    loss.field,
    "invalid_input",
    `This cohort is used in ${keys.length} active feature flag(s): ${keys.slice(0, namedMax).join(", ")}${more}. ` +
      `Please remove the cohort from these feature flags before ${loss.what}.`,
  );
}

/** Whether a definition has no conditions and matches everyone. */
const isEmpty = (filters: JsonObject): boolean => !hasConditions(filters);

/** Keys of the active flags that use a cohort, directly or indirectly, ordered by flag ID. */
function activeFlagsUsing(t: MetadataTx, projectId: number, id: number): string[] {
  const users = t
    .select({ key: flag.key, filters: flag.filters })
    .from(flag)
    .where(
      and(
        eq(flag.projectId, projectId),
        eq(flag.deleted, false),
        eq(flag.active, true),
        like(flag.filters, '%"cohort"%'),
      ),
    )
    .orderBy(asc(flag.id))
    .all();
  return users
    .filter(({ filters }) => cohortsWithin(t, projectId, filters).some(([used]) => used === id))
    .map(({ key }) => key);
}

/** A filter that matches the members of a cohort. */
export function membership(cohortId: number): JsonObject[] {
  return [{ type: "cohort", key: "id", value: cohortId, operator: "in" }];
}
