/**
 * All flags of a project, compiled once and evaluated many times.
 *
 * Immutable: build a new one when a flag, a cohort or a group type changes.
 */

import type { CohortDefinition, FlagDefinition, GroupType } from "../rules/types.ts";
import { compileCohorts } from "./cohorts.ts";
import { compileFlag, getFilters } from "./compiled-flag.ts";
import { orderByDependency } from "./dependency-order.ts";
import type { CompiledFlag, FlagSet, StoredDataNeeds } from "./model.ts";
import { sourceOfInitial } from "./person-view.ts";
import { Failure } from "./reasons.ts";

/**
 * Compiles a project's flags. Deleted flags may be passed and are skipped.
 *
 * Never throws for bad definitions: invalid parts do not match.
 */
export function compileFlagSet(
  flags: Iterable<FlagDefinition>,
  cohorts: Iterable<CohortDefinition>,
  groupTypes: Iterable<GroupType>,
): FlagSet {
  const compiledCohorts = compileCohorts(cohorts);
  const byId = new Map<number, CompiledFlag>();
  for (const flag of flags) if (!flag.deleted) byId.set(flag.id, compileFlag(flag, compiledCohorts));
  const all = [...byId.values()];
  const { ordered, resolutions } = orderByDependency(byId);
  for (const [position, flag] of ordered.entries()) flag.position = position;
  shareVerdicts(ordered);
  return {
    active: ordered,
    inactive: all.filter(({ active }) => !active),
    byId,
    byKey: new Map(all.map((flag) => [flag.key, flag])),
    cohorts: compiledCohorts,
    groupTypeNames: new Map([...groupTypes].map(({ index, name }) => [index, name])),
    resolutions,
    needs: collectNeeds(ordered),
    isRepeatable: ordered.every(({ isRepeatable }) => isRepeatable),
    hasDependencies: ordered.some(({ dependencies }) => dependencies.length > 0),
  };
}

/** True when the request provides every person property that the flags use, so that the store need not be read. */
export function coversPersonKeys(set: FlagSet, overrides: Readonly<Record<string, unknown>>): boolean {
  for (const key of set.needs.personKeys) if (!Object.hasOwn(overrides, key)) return false;
  return true;
}

function collectNeeds(flags: readonly CompiledFlag[]): StoredDataNeeds {
  const personKeys = new Set<string>();
  const groupKeys = new Map<number, Set<string>>();
  let staticCohorts = false;
  for (const flag of flags) {
    if (flag.enrollmentKey !== null) personKeys.add(flag.enrollmentKey);
    for (const filter of getFilters(flag)) {
      if (filter.kind === "person") personKeys.add(filter.key);
      if (filter.kind === "group") {
        groupKeys.set(
          filter.groupTypeIndex,
          (groupKeys.get(filter.groupTypeIndex) ?? new Set()).add(filter.key),
        );
      }
      if (filter.kind === "cohort" && !(filter.cohort instanceof Failure)) {
        for (const key of filter.cohort.personKeys) personKeys.add(key);
        staticCohorts ||= filter.cohort.needsMemberLists;
      }
    }
  }
  for (const key of personKeys) {
    const source = sourceOfInitial(key);
    if (source !== undefined) personKeys.add(source);
  }
  // The request always contains its distinct ID and group keys.
  personKeys.delete("distinct_id");
  for (const keys of groupKeys.values()) keys.delete("$group_key");
  const continuityKeys = flags.filter(({ hasContinuity }) => hasContinuity).map(({ key }) => key);
  return {
    personProperties: personKeys.size > 0,
    personKeys,
    groupProperties: [...groupKeys.values()].some(({ size }) => size > 0),
    groupKeys,
    staticCohorts,
    continuity: continuityKeys.length > 0,
    continuityKeys,
  };
}

/** Assigns equal person filters the same slot: many flags have the same filter, and a request computes it once. */
function shareVerdicts(flags: readonly CompiledFlag[]): void {
  const slots = new Map<string, number>();
  for (const flag of flags) {
    for (const filter of getFilters(flag)) {
      if (filter.kind !== "person") continue;
      const { operator, value } = filter.written;
      const question = JSON.stringify([filter.key, operator ?? null, value ?? null]);
      let slot = slots.get(question);
      if (slot === undefined) {
        slot = slots.size;
        slots.set(question, slot);
      }
      filter.slot = slot;
    }
  }
}
