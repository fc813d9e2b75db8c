/**
 * Flags whose changes require another user's approval, and other changes that affect them: of the flags they depend on
 * and the cohorts they use, directly or indirectly (contract: management-api 5.19).
 */

import { and, asc, eq, like, or } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { cohort, flag, tag } from "../../accounts/schema.ts";
import { once } from "../../lib/concurrency.ts";
import { PermissionDeniedError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { dependencyIds } from "../rules/dependency-rules.ts";
import { flagsByCohort } from "../rules/dependents.ts";
import { getNames } from "../rules/errors.ts";
import { criticalTag } from "../rules/shared-rules.ts";
import { findFlag } from "./flag.ts";
import { withoutDisplayNames } from "./flag-conflicts.ts";

/** Flags and cohorts of a project that change. */
export interface Changed {
  projectId: number;
  flagIds?: readonly number[];
  cohortIds?: readonly number[];
}

interface Deps {
  metadata: Metadata;
}

/** Fields of a flag that never change its value. */
const harmlessFields: ReadonlySet<string> = new Set<keyof FlagFields>([
  "name",
  "tags",
  "analyticsDashboards",
  "hasEnrichedAnalytics",
  "creationContext",
  "experimentSet",
  "surveys",
  "features",
  "rollbackConditions",
  "performedRollback",
] as const);
const harmlessNames: ReadonlySet<string> = new Set(
  [...harmlessFields].map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
);

/** Whether the project requires approval for changes of a flag. */
export function needsApproval({ metadata }: Deps, flag: Pick<Flag, "projectId" | "tags">): boolean {
  const approvals = metadata.projects.find(flag.projectId)?.approvals ?? "off";
  return approvals === "all" || (approvals === "critical" && flag.tags.includes(criticalTag));
}

/**
 * Rejects a change that requires approval: of a protected flag itself, or of one that a protected flag depends on.
 *
 * @param fields the written ones; undefined: any.
 * @throws {PermissionDeniedError} `approval_required`.
 */
export function assertNoApprovalNeeded(deps: Deps, flag: Flag, fields?: Partial<FlagFields>): void {
  const affected = protectedBy(deps, flag, fields);
  if (affected.includes(flag)) {
    throw new PermissionDeniedError(
      "Changes of this flag need approval: create a change request with POST …/change_requests/.",
      "approval_required",
    );
  }
  rejectForProtected(affected, "flag");
}

/** The protected flags affected by a change of a flag: the flag itself, else its protected dependents. */
export function protectedBy(deps: Deps, flag: Flag, fields?: Partial<FlagFields>): Flag[] {
  if (needsApproval(deps, flag)) return [flag];
  if (fields !== undefined && !isChangedByFields(flag, fields)) return [];
  return protectedDependents(deps, { projectId: flag.projectId, flagIds: [flag.id] });
}

/** Rejects a change of a cohort that a protected flag uses. @throws {PermissionDeniedError} `approval_required` */
export function assertCohortNeedsNoApproval(deps: Deps, target: { projectId: number; id: number }): void {
  rejectForProtected(
    protectedDependents(deps, { projectId: target.projectId, cohortIds: [target.id] }),
    "cohort",
  );
}

/** The protected flags whose value a change may alter, by ID; without the changed flags themselves. */
export const protectedDependents = (deps: Deps, { projectId, ...changed }: Changed): Flag[] =>
  dependentsFinder(deps, projectId)(changed);

/** Like `protectedDependents`, for several changes of a project. */
function dependentsFinder(deps: Deps, projectId: number): (changed: Omit<Changed, "projectId">) => Flag[] {
  const { db, projects } = deps.metadata;
  if ((projects.find(projectId)?.approvals ?? "off") === "off") return () => [];
  const find = dependentIdsFinder(db, projectId);
  return (changed) =>
    find(changed)
      .map((id) => findFlag(db, projectId, id)!)
      .filter((dependent) => needsApproval(deps, dependent));
}

/** Finds the flags that depend on changed flags and cohorts; what depends on what is read once. */
function dependentIdsFinder(
  db: Reading,
  projectId: number,
): (changed: Omit<Changed, "projectId">) => number[] {
  const flags = flagsWithDependencies(db, projectId);
  const users = once(() => flagsByCohort(flags, getCohorts(db, projectId)));
  const dependents = new Map<number, number[]>();
  for (const { id, filters } of flags) {
    for (const needed of dependencyIds(filters))
      dependents.set(needed, [...(dependents.get(needed) ?? []), id]);
  }
  return ({ flagIds = [], cohortIds = [] }) => {
    const found = new Set<number>();
    const open = [...flagIds];
    for (const { id } of cohortIds.flatMap((cohortId) => users().get(cohortId) ?? [])) {
      found.add(id);
      open.push(id);
    }
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      for (const dependent of dependents.get(id) ?? []) {
        if (found.has(dependent)) continue;
        found.add(dependent);
        open.push(dependent);
      }
    }
    for (const id of flagIds) found.delete(id);
    return [...found];
  };
}

/** The keys of the flags tagged as critical that use cohorts, directly or through other cohorts and flags, by cohort. */
export function criticalByCohort(
  db: Reading,
  projectId: number,
  cohortIds: Iterable<number>,
): Map<number, string[]> {
  const find = dependentIdsFinder(db, projectId);
  const tagged = once(() => keysWithTag(db, projectId, criticalTag));
  return new Map(
    [...cohortIds].map((id) => [
      id,
      find({ cohortIds: [id] }).flatMap((flagId) => tagged().get(flagId) ?? []),
    ]),
  );
}

function keysWithTag(db: Reading, projectId: number, name: string): Map<number, string> {
  const rows = db
    .select({ id: flag.id, key: flag.key })
    .from(flag)
    .innerJoin(tag, and(eq(tag.itemKind, "flag"), eq(tag.itemId, flag.id), eq(tag.name, name)))
    .where(eq(flag.projectId, projectId))
    .all();
  return new Map(rows.map(({ id, key }) => [id, key]));
}

/** A requested change of a flag or cohort, with the members of the API. */
interface Requested {
  flagId: number | null;
  cohortId: number | null;
  changes: JsonObject;
}

/** Finds the keys of the protected flags that requested changes of a project affect, for several requests. */
export function affectedKeysFinder(deps: Deps, projectId: number): (request: Requested) => string[] {
  const dependents = once(() => dependentsFinder(deps, projectId));
  return ({ flagId, cohortId, changes }) => {
    const linked = flagId === null ? undefined : findFlag(deps.metadata.db, projectId, flagId);
    const own = linked !== undefined && needsApproval(deps, linked) ? [linked] : [];
    const changed = {
      flagIds: flagId === null ? [] : [flagId],
      cohortIds: cohortId === null ? [] : [cohortId],
    };
    const others = Object.keys(changes).every(isHarmless) ? [] : dependents()(changed);
    return [...own, ...others].map(({ key }) => key);
  };
}

/** Whether a member of a flag or cohort, by its name in the API, has no effect on a flag's value. */
export const isHarmless = (name: string) => name === "description" || harmlessNames.has(name);

function rejectForProtected(flags: readonly Flag[], what: "flag" | "cohort"): void {
  if (flags.length === 0) return;
  throw new PermissionDeniedError(
    `Changes of this ${what} need approval because flags that need it depend on it: ${getNames(flags.map(({ key }) => key))}. ` +
      "Create a change request with POST …/change_requests/.",
    "approval_required",
  );
}

/** Whether the written fields differ from those of the flag and can change its value for a user. */
function isChangedByFields(flag: Flag, fields: Partial<FlagFields>): boolean {
  return Object.entries(fields).some(([name, value]) => {
    if (value === undefined || harmlessFields.has(name)) return false;
    if (name === "filters") return isPartChanged(flag.filters, value as JsonObject | null);
    if (name === "evaluationContexts") return !Bun.deepEquals(value, flag.evaluationTags);
    if (name === "rolloutPercentage") return true;
    return !Bun.deepEquals(value ?? null, (flag[name as keyof Flag] as Json | undefined) ?? null);
  });
}

/** Sent members replace the stored ones. */
function isPartChanged(stored: JsonObject, sent: JsonObject | null): boolean {
  if (!isJsonObject(sent)) return sent !== null;
  return Object.entries(sent).some(
    ([name, value]) => !Bun.deepEquals(withoutDisplayNames(value), stored[name] ?? null),
  );
}

/** Flags that are not deleted and refer to a cohort or to another flag. */
function flagsWithDependencies(db: Reading, projectId: number) {
  return db
    .select({ id: flag.id, key: flag.key, active: flag.active, deleted: flag.deleted, filters: flag.filters })
    .from(flag)
    .where(
      and(
        eq(flag.projectId, projectId),
        eq(flag.deleted, false),
        or(like(flag.filters, "%flag_evaluates_to%"), like(flag.filters, '%"cohort"%')),
      ),
    )
    .orderBy(asc(flag.id))
    .all();
}

function getCohorts(db: Reading, projectId: number) {
  return db
    .select({ id: cohort.id, name: cohort.name, isStatic: cohort.isStatic, filters: cohort.filters })
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, false)))
    .all();
}
