/**
 * Flags whose changes somebody else has to approve, and what else changes them: the flags that they depend on and the cohorts
 * that they use, directly or through others (contract: management-api 5.19).
 */

import { and, asc, eq, like, or } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { cohort, flag } from "../../accounts/schema.ts";
import { NotPermitted } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { criticalTag } from "../rules/critical-tag.ts";
import { dependencyIds } from "../rules/dependency-rules.ts";
import { flagsByCohort } from "../rules/dependents.ts";
import { findFlag } from "./flag.ts";
import { withoutShown } from "./flag-conflicts.ts";

/** What depends on something: a flag or a cohort of a project. */
export interface Changed {
  projectId: number;
  flagId?: number;
  cohortId?: number;
}

interface Deps {
  metadata: Metadata;
}

/** Fields of a flag that change its value for nobody. */
const harmlessFields: ReadonlySet<string> = new Set<keyof FlagFields>([
  ...(["name", "tags", "analyticsDashboards", "hasEnrichedAnalytics", "creationContext"] as const),
  ...(["experimentSet", "surveys", "features", "rollbackConditions", "performedRollback"] as const),
]);
const namesMax = 5;

/** Whether the project wants changes of a flag to be approved. */
export function needsApproval({ metadata }: Deps, of: Pick<Flag, "projectId" | "tags">): boolean {
  const approvals = metadata.projects.find(of.projectId)?.approvals ?? "off";
  return approvals === "all" || (approvals === "critical" && of.tags.includes(criticalTag));
}

/**
 * Rejects a change that has to be approved: of a protected flag itself, or of one that a protected flag depends on.
 *
 * @param fields those that are written; undefined: any.
 * @throws {NotPermitted} `approval_required`.
 */
export function assertNoApprovalNeeded(deps: Deps, of: Flag, fields?: Partial<FlagFields>): void {
  if (needsApproval(deps, of)) {
    throw new NotPermitted(
      "Changes of this flag need approval: create a change request with POST …/change_requests/.",
      "approval_required",
    );
  }
  if (fields !== undefined && !isChangedByFields(of, fields)) return;
  rejectForProtected(protectedDependents(deps, { projectId: of.projectId, flagId: of.id }), "flag");
}

/** Rejects a change of a cohort that a protected flag uses. @throws {NotPermitted} `approval_required` */
export function assertCohortNeedsNoApproval(deps: Deps, of: { projectId: number; id: number }): void {
  rejectForProtected(protectedDependents(deps, { projectId: of.projectId, cohortId: of.id }), "cohort");
}

/** The protected flags whose value a change may alter, by id; without the changed flag itself. */
export function protectedDependents(deps: Deps, of: Changed): Flag[] {
  const { db, projects } = deps.metadata;
  if ((projects.find(of.projectId)?.approvals ?? "off") === "off") return [];
  const flags = flagsWithDependencies(db, of.projectId);
  const found = new Set<number>();
  const open = of.flagId === undefined ? [] : [of.flagId];
  if (of.cohortId !== undefined) {
    for (const { id } of flagsByCohort(flags, cohortsOf(db, of.projectId)).get(of.cohortId) ?? []) {
      found.add(id);
      open.push(id);
    }
  }
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const dependent of flags) {
      if (found.has(dependent.id) || !dependencyIds(dependent.filters).includes(id)) continue;
      found.add(dependent.id);
      open.push(dependent.id);
    }
  }
  if (of.flagId !== undefined) found.delete(of.flagId);
  return [...found]
    .map((id) => findFlag(db, of.projectId, id)!)
    .filter((dependent) => needsApproval(deps, dependent));
}

function rejectForProtected(flags: readonly Flag[], what: "flag" | "cohort"): void {
  if (flags.length === 0) return;
  const names = flags.slice(0, namesMax).map(({ key }) => `"${key}"`);
  if (flags.length > namesMax) names.push(`${flags.length - namesMax} more`);
  throw new NotPermitted(
    `Changes of this ${what} need approval because flags that need it depend on it: ${names.join(", ")}. ` +
      "Create a change request with POST …/change_requests/.",
    "approval_required",
  );
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
