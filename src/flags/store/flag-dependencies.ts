/** Dependencies of flags: reads the facts for the rules (contract: management-api 3.5, 4.4). */

import { and, asc, eq, like } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import { cohort, flag } from "../../accounts/schema.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { LocalFacts } from "../definitions/local-issues.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { checkCohorts } from "../rules/condition-rules.ts";
import { checkDeletable, checkDisablable, checkEnablable, getDependents } from "../rules/dependents.ts";
import type { CohortFacts, FlagFacts } from "../rules/types.ts";
import { findFlag } from "./flag.ts";
import type { GroupTypeSource } from "./flag-sets.ts";

/** The active flags whose conditions refer to this one, by ID. */
export function dependentFlags(
  db: Reading,
  projectId: number,
  id: number,
): { id: number; key: string; name: string }[] {
  const dependents = getDependents(id, readDependants(db, projectId));
  return dependents.map((found) => ({ id: found.id, key: found.key, name: found.name }));
}

/** Rejects changes that would break dependent flags; checks only transitions. @throws {InvalidFlagError} */
export function checkTransitions(
  t: Reading,
  before: Flag,
  fields: Partial<FlagFields>,
  filters: JsonObject,
  ignoresDependents = false,
): void {
  const isDeleted = fields.deleted === true && !before.deleted;
  const isDisabled = fields.active === false && before.active;
  const isRestored = fields.deleted === false && before.deleted;
  const isEnabled =
    (fields.active === true && !before.active) || (isRestored && (fields.active ?? before.active));
  if (isDeleted || isDisabled) {
    const dependents = getDependents(before.id, readDependants(t, before.projectId));
    if (isDeleted) checkDeletable(dependents);
    else if (!ignoresDependents) checkDisablable(dependents);
  }
  if (isEnabled) checkEnablable({ filters }, flagFacts(t, before.projectId));
  checkCohortsOfRevived(t, before, fields, filters);
}

/**
 * Cohorts of an inactive or deleted flag may be deleted: without them it is neither enabled nor restored.
 * @throws {InvalidFlagError}
 */
export function checkCohortsOfRevived(
  t: Reading,
  before: Flag,
  fields: Partial<FlagFields>,
  filters: JsonObject,
): void {
  const isRevived =
    (fields.active === true && !before.active) || (fields.deleted === false && before.deleted);
  if (isRevived) checkCohorts(filters, cohortFacts(t, before.projectId));
}

/** Flag lookups of the rules. */
export function flagFacts(t: Reading, projectId: number): FlagFacts {
  return {
    find: (id) =>
      t
        .select(facts)
        .from(flag)
        .where(and(eq(flag.projectId, projectId), eq(flag.id, id)))
        .get(),
  };
}

/** Cohort lookups of the rules. */
export function cohortFacts(t: Reading, projectId: number): CohortFacts {
  return {
    find: (id) =>
      t
        .select({ id: cohort.id, name: cohort.name, isStatic: cohort.isStatic, filters: cohort.filters })
        .from(cohort)
        .where(and(eq(cohort.projectId, projectId), eq(cohort.id, id), eq(cohort.deleted, false)))
        .get(),
  };
}

/** Facts that decide whether SDKs can evaluate a project's flags locally. @param groupTypes absent: all exist */
export function localFacts(
  t: Reading,
  projectId: number,
  groupTypes: GroupTypeSource | undefined,
): LocalFacts {
  return {
    flag: (id) => findFlag(t, projectId, id),
    cohort: cohortFacts(t, projectId).find,
    hasGroupType: groupTypes && ((index) => groupTypes(projectId).some((type) => type.index === index)),
  };
}

const facts = {
  id: flag.id,
  key: flag.key,
  active: flag.active,
  deleted: flag.deleted,
  filters: flag.filters,
};

/** Only flags that refer to another flag: most do not. */
function readDependants(t: Reading, projectId: number) {
  return t
    .select({ ...facts, name: flag.name })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), like(flag.filters, "%flag_evaluates_to%")))
    .orderBy(asc(flag.id))
    .all();
}
