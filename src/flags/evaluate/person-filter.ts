/**
 * Property filters outside of a flag: how many persons or groups a condition matches.
 *
 * Uses the tests of evaluation. Rollout is ignored, and filters about other flags are neutral, because they do not
 * depend on a person alone. Source: contract, management-api 5.17.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import type { Clock } from "../../lib/values/dates.ts";
import { type CompiledCohorts, isMember } from "./cohorts.ts";
import { compileFilters } from "./compiled-flag.ts";
import type { CompiledFilter } from "./model.ts";
import { GroupView, PersonView, type PropertyView } from "./person-view.ts";
import { Failure } from "./reasons.ts";

export interface FilterContext extends Clock {
  cohorts?: CompiledCohorts;
  /** The group type of the filters; null or absent for persons. */
  groupTypeIndex?: number | null;
}

/** A person or a group to test. */
export interface FilterSubject {
  properties: Readonly<JsonObject>;
  /** The main distinct ID of the person, for filters on `distinct_id`. */
  distinctId?: string;
  /** IDs of the static cohorts that contain the person. */
  staticCohortIds?: ReadonlySet<number>;
  /** The key of the group, for filters on `$group_key`. */
  groupKey?: string;
}

/** A compiled list of filters, reusable for many subjects. */
export interface SubjectFilter {
  /** Why the filters cannot be evaluated, such as a missing cohort; null if they can. */
  problem: Failure | null;
  matches(subject: FilterSubject): boolean;
}

const noCohorts: CompiledCohorts = new Map();
const noIds: ReadonlySet<number> = new Set();

/** Compiles property filters, joined by AND; an empty list matches every subject. */
export function compileSubjectFilter(filters: readonly JsonObject[], context: FilterContext): SubjectFilter {
  const cohorts = context.cohorts ?? noCohorts;
  const parts = compileFilters(filters, context.groupTypeIndex ?? null, cohorts).filter(
    // By the written type: a flag filter with a wrong operator is neutral too.
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
  const person: PropertyView = new PersonView(subject.distinctId, subject.properties, undefined);
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
