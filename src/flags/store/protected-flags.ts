/**
 * Flags whose changes somebody else has to approve, and what else changes them: the flags that they depend on and the cohorts
 * that they use, directly or through others (contract: management-api 5.19).
 */

import { and, asc, eq, like, or } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { cohort, flag } from "../../accounts/schema.ts";
import { AppError, NotPermitted } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { criticalTag } from "../rules/critical-tag.ts";
import { dependencyIds } from "../rules/dependency-rules.ts";
import { flagsByCohort } from "../rules/dependents.ts";
import { findFlag } from "./flag.ts";
import { withoutShown } from "./flag-conflicts.ts";

/** Flags and cohorts of a project that change. */
export interface Changed {
  projectId: number;
  flagIds?: readonly number[];
  cohortIds?: readonly number[];
}

interface Deps {
  metadata: Metadata;
}

/** Fields of a flag that change its value for nobody. */
const harmlessFields: ReadonlySet<string> = new Set<keyof FlagFields>([
  ...(["name", "tags", "analyticsDashboards", "hasEnrichedAnalytics", "creationContext"] as const),
  ...(["experimentSet", "surveys", "features", "rollbackConditions", "performedRollback"] as const),
]);
const harmlessNames: ReadonlySet<string> = new Set(
  [...harmlessFields].map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
);
const namesMax = 5;

/** Whether the project wants changes of a flag to be approved. */
export function needsApproval({ metadata }: Deps, of: Pick<Flag, "projectId" | "tags">): boolean {
  const approvals = metadata.projects.find(of.projectId)?.approvals ?? "off";
  return approvals === "all" || (approvals === "critical" && of.tags.includes(criticalTag));
}

/** A change needs approval, and the command was not confirmed (contract: management-api 5.19). */
export class ApprovalRequired extends AppError {
  readonly code = "approval_required";
  override readonly hint =
    "Create a change request in the console or with POST …/change_requests/, or add --confirm to apply the change without one.";
  /** @param keys of the protected flags, at least one. */
  constructor(keys: readonly string[]) {
    super(`Changes of these flags need approval (approval_required): ${namesOf(keys)}.`);
  }
}

/**
 * Rejects a change that has to be approved: of a protected flag itself, or of one that a protected flag depends on.
 *
 * @param fields those that are written; undefined: any.
 * @throws {NotPermitted} `approval_required`.
 */
export function assertNoApprovalNeeded(deps: Deps, of: Flag, fields?: Partial<FlagFields>): void {
  const affected = protectedBy(deps, of, fields);
  if (affected.includes(of)) {
    throw new NotPermitted(
      "Changes of this flag need approval: create a change request with POST …/change_requests/.",
      "approval_required",
    );
  }
  rejectForProtected(affected, "flag");
}

/** The protected flags that a change of a flag changes: the flag itself, else those that depend on it. */
export function protectedBy(deps: Deps, of: Flag, fields?: Partial<FlagFields>): Flag[] {
  if (needsApproval(deps, of)) return [of];
  if (fields !== undefined && !isChangedByFields(of, fields)) return [];
  return protectedDependents(deps, { projectId: of.projectId, flagIds: [of.id] });
}

/** Rejects a change of a cohort that a protected flag uses. @throws {NotPermitted} `approval_required` */
export function assertCohortNeedsNoApproval(deps: Deps, of: { projectId: number; id: number }): void {
  rejectForProtected(protectedDependents(deps, { projectId: of.projectId, cohortIds: [of.id] }), "cohort");
}

/** The protected flags whose value a change may alter, by id; without the changed flags themselves. */
export function protectedDependents(
  deps: Deps,
  { projectId, flagIds = [], cohortIds = [] }: Changed,
): Flag[] {
  const { db, projects } = deps.metadata;
  if ((projects.find(projectId)?.approvals ?? "off") === "off") return [];
  const flags = flagsWithDependencies(db, projectId);
  const found = new Set<number>();
  const open = [...flagIds];
  if (cohortIds.length > 0) {
    const users = flagsByCohort(flags, cohortsOf(db, projectId));
    for (const { id } of cohortIds.flatMap((cohortId) => users.get(cohortId) ?? [])) {
      found.add(id);
      open.push(id);
    }
  }
  const dependents = new Map<number, number[]>();
  for (const { id, filters } of flags) {
    for (const needed of dependencyIds(filters))
      dependents.set(needed, [...(dependents.get(needed) ?? []), id]);
  }
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const dependent of dependents.get(id) ?? []) {
      if (found.has(dependent)) continue;
      found.add(dependent);
      open.push(dependent);
    }
  }
  for (const id of flagIds) found.delete(id);
  return [...found]
    .map((id) => findFlag(db, projectId, id)!)
    .filter((dependent) => needsApproval(deps, dependent));
}

/** Whether a member of a flag or cohort, by its name in the API, has no effect on a flag's value. */
export const isHarmless = (name: string) => name === "description" || harmlessNames.has(name);

function rejectForProtected(flags: readonly Flag[], what: "flag" | "cohort"): void {
  if (flags.length === 0) return;
  throw new NotPermitted(
    `Changes of this ${what} need approval because flags that need it depend on it: ${namesOf(flags.map(({ key }) => key))}. ` +
      "Create a change request with POST …/change_requests/.",
    "approval_required",
  );
}

function namesOf(keys: readonly string[]): string {
  const names = keys.slice(0, namesMax).map((key) => `"${key}"`);
  if (keys.length > namesMax) names.push(`${keys.length - namesMax} more`);
  return names.join(", ");
}

/** Whether fields that are written differ from those of the flag and can change its value for a user. */
function isChangedByFields(of: Flag, fields: Partial<FlagFields>): boolean {
  return Object.entries(fields).some(([name, value]) => {
    if (value === undefined || harmlessFields.has(name)) return false;
    if (name === "filters") return isPartChanged(of.filters, value as JsonObject | null);
    if (name === "evaluationContexts") return !Bun.deepEquals(value, of.evaluationTags);
    if (name === "rolloutPercentage") return true;
    return !Bun.deepEquals(value ?? null, (of[name as keyof Flag] as Json | undefined) ?? null);
  });
}

/** The members that are sent replace the stored ones. */
function isPartChanged(stored: JsonObject, sent: JsonObject | null): boolean {
  if (!isJsonObject(sent)) return sent !== null;
  return Object.entries(sent).some(
    ([name, value]) => !Bun.deepEquals(withoutShown(value), stored[name] ?? null),
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

function cohortsOf(db: Reading, projectId: number) {
  return db
    .select({ id: cohort.id, name: cohort.name, isStatic: cohort.isStatic, filters: cohort.filters })
    .from(cohort)
    .where(and(eq(cohort.projectId, projectId), eq(cohort.deleted, false)))
    .all();
}
