/**
 * Dependents: which flags use a cohort, and what must hold for other flags when one is switched on, switched off or
 * deleted.
 *
 * Only transitions are checked. Source: contract, management-api 3.5 and 5.7.
 */

import { isJsonObject, type Json, wholeNumber } from "../../lib/json/value.ts";
import { dependencyIds } from "./dependency-rules.ts";
import { flagInvalid } from "./errors.ts";
import type { CohortDefinition, FlagFact, FlagFacts } from "./types.ts";

const namedMax = 5;

/** The active flags, deleted ones excluded, that depend directly on a flag. */
export function getDependents<F extends FlagFact>(flagId: number, flags: Iterable<F>): F[] {
  return [...flags].filter(
    (flag) =>
      flag.id !== flagId && flag.active && !flag.deleted && dependencyIds(flag.filters).includes(flagId),
  );
}

/**
 * The flags, including inactive ones, that use each cohort anywhere in their filters, or one whose definition contains
 * it; cohorts without any are omitted.
 */
export function flagsByCohort<F extends FlagFact>(
  flags: Iterable<F>,
  cohorts: Iterable<CohortDefinition>,
): Map<number, F[]> {
  const nested = new Map([...cohorts].map(({ id, filters }) => [id, cohortIdsIn(filters)]));
  const found = new Map<number, F[]>();
  for (const flag of flags) {
    const seen = new Set<number>();
    const open = cohortIdsIn(flag.filters);
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const inner = nested.get(id);
      if (inner === undefined || seen.has(id)) continue;
      seen.add(id);
      open.push(...inner);
    }
    for (const id of seen) {
      const users = found.get(id);
      if (users === undefined) found.set(id, [flag]);
      else users.push(flag);
    }
  }
  return found;
}

function cohortIdsIn(filters: Json | undefined): number[] {
  const ids: number[] = [];
  const open: unknown[] = [filters];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node);
    else if (isJsonObject(node)) {
      const id = node.type === "cohort" ? wholeNumber(node.value) : undefined;
      if (id !== undefined) ids.push(id);
      open.push(...Object.values(node));
    }
  }
  return ids;
}

/** @throws {InvalidFlagError} when active flags depend on the flag to be deleted. */
export function checkDeletable(dependents: readonly FlagFact[]): void {
  if (dependents.length === 0) return;
  throw flagInvalid(
    `Cannot delete this feature flag because other flags depend on it: ${named(dependents)}. ` +
      "Please update or delete the dependent flags first.",
  );
}

/** @throws {InvalidFlagError} when active flags depend on the flag to be switched off. */
export function checkDisablable(dependents: readonly FlagFact[]): void {
  if (dependents.length === 0) return;
  throw flagInvalid(
    `Cannot disable this feature flag because other flags depend on it: ${named(dependents)}. ` +
      "Please update or disable the dependent flags first.",
  );
}

/** @throws {InvalidFlagError} when the flag to be switched on depends on flags that are off or deleted. */
export function checkEnablable(flag: Pick<FlagFact, "filters">, flags: FlagFacts): void {
  const disabled = dependencyIds(flag.filters).flatMap((id) => {
    const needed = flags.find(id);
    return needed !== undefined && (!needed.active || needed.deleted) ? [needed] : [];
  });
  if (disabled.length === 0) return;
  throw flagInvalid(
    `Cannot enable this feature flag because it depends on disabled flags: ${named(disabled)}. ` +
      "Please enable the dependency flags first.",
  );
}

function named(flags: readonly FlagFact[]): string {
  const names = flags.slice(0, namedMax).map(({ key, id }) => `${key} (ID: ${id})`);
  if (flags.length > namedMax) names.push(`and ${flags.length - namedMax} more`);
  return names.join(", ");
}
