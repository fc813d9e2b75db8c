/** Definitions of cohorts (contract: management-api 6.2). Members of static ones live with the persons. */

import { and, asc, desc, eq, like, or, sql } from "drizzle-orm";
import { type Author, changesBetween, creatorIdOf, recordActivity } from "../accounts/activity.ts";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { cohort, flag } from "../accounts/schema.ts";
import { InvalidField, NotFound } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json.ts";
import type { NoteMisfit } from "../lib/operator-values.ts";
import { checkedCohortFilters, cohortIdsIn, hasBehaviouralFilters, hasConditions } from "./cohort-filters.ts";

export interface Cohort {
  id: number;
  projectId: number;
  name: string;
  description: string;
  /** Of an older generation; kept, without effect. */
  groups: Json[];
  /** `{"properties": {}}` when static. */
  filters: JsonObject;
  query: Json;
  deleted: boolean;
  isStatic: boolean;
  isCalculating: boolean;
  errorsCalculating: number;
  /** Persons at `lastCalculation`; null before the first. */
  personCount: number | null;
  lastCalculation: Date | null;
  createdById: number | null;
  createdAt: Date;
}

export type CohortFields = Pick<
  Cohort,
  "name" | "description" | "groups" | "filters" | "query" | "deleted" | "isStatic"
>;

/** One cohort; a deleted one only on request. */
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
  filter: { search?: string; hidesBehavioural?: boolean },
  page: { limit: number; offset: number },
): { cohorts: Cohort[]; count: number } {
  const wanted = filter.search?.trim().toLowerCase() ?? "";
  const found = db
    .select()
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, false)))
    .orderBy(desc(cohort.createdAt), desc(cohort.id))
    .all()
    // SQLite folds the case of ASCII only.
    .filter(({ name }) => name.toLowerCase().includes(wanted))
    .filter((row) => !filter.hidesBehavioural || row.isStatic || !hasBehaviouralFilters(row.filters));
  return { cohorts: found.slice(page.offset, page.offset + page.limit), count: found.length };
}

/** All cohorts of a project that are not deleted, by id. For evaluation. */
export function readCohorts(db: Reading, projectId: number): Cohort[] {
  return db
    .select()
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, false)))
    .orderBy(asc(cohort.id))
    .all();
}

/** Ids and names of the cohorts of a project that were deleted: flags may still refer to them. */
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
  /** Takes values in conditions that match nothing; without it they are rejected. */
  noteMisfit?: NoteMisfit;
}

/** Makes a cohort. @throws {InvalidField} */
export function createCohort(metadata: Metadata, input: NewCohort, now: Date): Cohort {
  return metadata.change((t) => insertCohort(t, input, now));
}

/** As `createCohort`, inside a transaction. */
function insertCohort(t: MetadataTx, input: NewCohort, now: Date): Cohort {
  const { projectId, by, fields, noteMisfit } = input;
  const definition = fields.isStatic
    ? {}
    : { filters: checkedDefinition(t, { projectId, ownId: undefined, noteMisfit }, fields.filters).filters };
  const created = t
    .insert(cohort)
    .values({ ...fields, ...definition, projectId, createdById: creatorIdOf(by), createdAt: now })
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

/** Changes or deletes a cohort. @throws {NotFound} @throws {InvalidField} */
export function updateCohort(
  metadata: Metadata,
  of: { projectId: number; id: number; by: Author; noteMisfit?: NoteMisfit },
  fields: Partial<CohortFields>,
  now: Date,
): Cohort {
  return metadata.change((t) => {
    const before = findCohort(t, of.projectId, of.id, { includeDeleted: true });
    if (!before) throw new NotFound();
    const isStatic = fields.isStatic ?? before.isStatic;
    const sent: Partial<CohortFields> = { ...fields };
    const isRestored = before.deleted && fields.deleted === false;
    if (!isStatic && (isRestored || fields.filters !== undefined || fields.isStatic !== undefined)) {
      const wanted = fields.filters ?? before.filters;
      // Stored values may be older than the rule about them.
      const noteMisfit = fields.filters === undefined ? () => {} : of.noteMisfit;
      const { filters, isBehavioural } = checkedDefinition(t, { ...of, ownId: of.id, noteMisfit }, wanted);
      sent.filters = filters;
      if (isBehavioural && activeFlagsUsing(t, of.projectId, of.id).length > 0) {
        throw new InvalidField(
          "filters",
          "behavioral_cohort_found",
          "Behavioral filters cannot be added to cohorts used in feature flags.",
        );
      }
    }
    if (Object.keys(fields).length === 0) return before;
    checkStaysUsable(t, before, { ...before, ...sent });
    const after = t.update(cohort).set(sent).where(eq(cohort.id, of.id)).returning().get();
    const changes = changesBetween("Cohort", shown(before), shown(after), Object.keys(shown(after)));
    if (changes.length > 0) {
      recordActivity(t, {
        by: of.by,
        projectId: of.projectId,
        activity: before.deleted === after.deleted ? "updated" : after.deleted ? "deleted" : "restored",
        scope: "Cohort",
        itemId: of.id,
        name: after.name,
        changes,
        now,
      });
    }
    bumpRevision(t, flagRevision(of.projectId));
    return after;
  });
}

/** Tells that members are being looked for. */
export function markCalculating(metadata: Metadata, id: number): void {
  metadata.change((t) => t.update(cohort).set({ isCalculating: true }).where(eq(cohort.id, id)).run());
}

export type InterruptedCohort = Pick<Cohort, "id" | "projectId">;

/**
 * For when a process has gone that was looking for members: what was to be added to fixed cohorts has failed.
 *
 * @returns the others, which are to be counted anew; until then they tell that they are.
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
 * Tells how the search for members ended.
 *
 * @param personCount members now; undefined when the search failed.
 */
export function recordCalculation(
  metadata: Metadata,
  id: number,
  personCount: number | undefined,
  now: Date,
): void {
  if (metadata.isClosed) return;
  metadata.change((t) => {
    const outcome =
      personCount === undefined
        ? { errorsCalculating: sql`errors_calculating + 1` }
        : { personCount, lastCalculation: now, errorsCalculating: 0 };
    const row = t
      .update(cohort)
      .set({ isCalculating: false, ...outcome })
      .where(eq(cohort.id, id))
      .returning({ projectId: cohort.projectId })
      .get();
    if (row) bumpRevision(t, flagRevision(row.projectId));
  });
}

function shown(of: Cohort): JsonObject {
  return {
    name: of.name,
    description: of.description,
    filters: of.filters,
    is_static: of.isStatic,
    deleted: of.deleted,
  };
}

/**
 * A definition as it is stored, and whether it, or one that it leads to, asks what persons did.
 *
 * @throws {InvalidField} malformed, an unknown cohort, or a cohort that comes back to itself.
 */
function checkedDefinition(
  t: MetadataTx,
  { projectId, ownId, noteMisfit }: { projectId: number; ownId: number | undefined; noteMisfit?: NoteMisfit },
  given: JsonObject | undefined,
): { filters: JsonObject; isBehavioural: boolean } {
  const filters = checkedCohortFilters(given, noteMisfit);
  let isBehavioural = hasBehaviouralFilters(filters);
  for (const [id, found] of cohortsWithin(t, projectId, filters)) {
    if (id === ownId) {
      throw new InvalidField("filters", "invalid_input", "Cohorts cannot reference other cohorts in a loop.");
    }
    if (found === undefined) {
      throw new InvalidField("filters", "cohort_does_not_exist", `Cohort with id ${id} does not exist`);
    }
    isBehavioural ||= !found.isStatic && hasBehaviouralFilters(found.filters);
  }
  return { filters, isBehavioural };
}

/** The cohorts that filters name, and those that these name, each once; undefined for one that there is not. */
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
    // Those of a static one choose nobody.
    if (found?.isStatic === false) open.push(...cohortIdsIn(found.filters));
  }
}

const namedMax = 5;

/**
 * Whoever an active flag is on for must not depend on a cohort that is gone, or that suddenly holds nobody or everybody.
 *
 * Source: contract, management-api 6.2 (third round B2).
 * @throws {InvalidField} an active flag uses the cohort, also through others; its keys are in the sentence.
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
  throw new InvalidField(
    loss.field,
    "invalid_input",
    `This cohort is used in ${keys.length} active feature flag(s): ${keys.slice(0, namedMax).join(", ")}${more}. ` +
      `Please remove the cohort from these feature flags before ${loss.what}.`,
  );
}

/** A definition without conditions, which holds everybody. */
const isEmpty = (filters: JsonObject): boolean => !hasConditions(filters);

/** The keys of the active flags that use a cohort, directly or through others, by id. */
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
    .filter(({ filters }) => cohortsWithin(t, projectId, filters).some(([reached]) => reached === id))
    .map(({ key }) => key);
}

/** The filter that chooses the members of a cohort. */
export function membership(cohortId: number): JsonObject[] {
  return [{ type: "cohort", key: "id", value: cohortId, operator: "in" }];
}
