/**
 * Property filters outside of a flag: how many persons or groups a condition would reach.
 *
 * Uses the tests of evaluation. Rollout plays no part, and filters about other flags are neutral, because they
 * say nothing about a person by itself. Source: contract, management-api 5.17.
 */

import type { JsonObject } from "../../lib/json.ts";
import type { Clock } from "../../lib/values/dates.ts";
import { type CompiledCohorts, isMember } from "./cohorts.ts";
import { compileFilters } from "./compiled-flag.ts";
import type { CompiledFilter } from "./model.ts";
import { GroupView, PersonView, type PropertyView } from "./person-view.ts";
import { Failure } from "./reasons.ts";

export interface FilterContext extends Clock {
  cohorts?: CompiledCohorts;
  /** The group type the filters are about; null or absent for persons. */
  groupTypeIndex?: number | null;
}

/** A person or a group that is tested. */
export interface FilterSubject {
  properties: Readonly<JsonObject>;
  /** Ids of the static cohorts that list the person. */
  staticCohortIds?: ReadonlySet<number>;
  /** The key of the group, for filters on `$group_key`. */
  groupKey?: string;
}

/** A compiled list of filters; use it for many subjects. */
export interface SubjectFilter {
  /** What makes the filters impossible to answer, such as a cohort that does not exist; null when all is well. */
  problem: Failure | null;
  matches(subject: FilterSubject): boolean;
}

const noCohorts: CompiledCohorts = new Map();
const noIds: ReadonlySet<number> = new Set();

/** Compiles property filters, joined by AND; an empty list matches every subject. */
export function compileSubjectFilter(filters: readonly JsonObject[], context: FilterContext): SubjectFilter {
  const cohorts = context.cohorts ?? noCohorts;
  const parts = compileFilters(filters, context.groupTypeIndex ?? null, cohorts).filter(
    // Told by the written type: a flag filter with a wrong operator is neutral as well.
    ({ written }) => written.type !== "flag",
  );
  const failures = parts.flatMap((part) =>
    part.kind === "cohort" && part.cohort instanceof Failure ? [part.cohort] : [],
  );
  return {
    problem: failures[0] ?? null,
    matches: (subject) => matchesSubject(parts, subject, cohorts, context),
  };
}

function matchesSubject(
  parts: readonly CompiledFilter[],
  subject: FilterSubject,
  cohorts: CompiledCohorts,
  clock: Clock,
): boolean {
  const person: PropertyView = new PersonView(undefined, subject.properties, undefined);
  const group: PropertyView = new GroupView(subject.groupKey, subject.properties, undefined);
  const cohortSubject = {
    person,
    staticCohortIds: subject.staticCohortIds ?? noIds,
    clock,
    answers: new Map<number, boolean>(),
  };
  return parts.every((part) => {
    switch (part.kind) {
      case "person":
        return part.test(person.get(part.key), clock) === true;
      case "group":
        return part.test(group.get(part.key), clock) === true;
      case "cohort":
        if (part.cohort instanceof Failure) return false;
        return isMember(part.cohort, cohorts, cohortSubject) !== part.isInverted;
      default:
        return false;
    }
  });
}
