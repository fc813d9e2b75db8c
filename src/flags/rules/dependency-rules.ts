/** Rules for dependencies of a flag. Source: contract, management-api 4.4 (dependency rows). */

import { type Json, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import {
  type FilterValueError,
  fitsOperator,
  formatFilterValue,
  type RecordMisfit,
} from "../../lib/values/operators.ts";
import { rejectOrRecord } from "./condition-rules.ts";
import { filtersInvalid } from "./errors.ts";
import { type FlagFact, type FlagFacts, getGroups, getProperties, getVariants } from "./types.ts";

interface Owner {
  flagId: number | null;
  flagKey: string;
  flags: FlagFacts;
  recordMisfit?: RecordMisfit;
}

/** The IDs of the flags that filters refer to, without duplicates; invalid references are skipped. */
export function dependencyIds(filters: JsonObject): number[] {
  const ids = dependencyReferences(filters).map((reference) => wholeNumber(reference));
  return [...new Set(ids.filter((id) => id !== undefined))];
}

/**
 * @param known references that the stored filters have already: a flag that was switched off meanwhile may stay.
 * @throws {InvalidFlagError} not an ID, no such flag, a disabled one, the flag itself, a cycle; a value that the flag cannot
 * have.
 */
export function checkDependencies(filters: JsonObject, known: readonly string[], owner: Owner): void {
  for (const property of dependenciesIn(filters)) {
    const reference = String(property.key);
    const flag = checkDependency(reference, known.includes(reference), owner);
    if (!canEvaluateTo(property.value, flag))
      rejectOrRecord(evaluatesToProblem(property.value), owner.recordMisfit);
  }
  if (owner.flagId === null) return; // no flag can depend on one that does not exist yet
  const circle = findCircle(dependencyIds(filters), owner.flagId, owner.flags);
  if (circle === undefined) return;
  const keys = [owner.flagKey, ...circle.map(({ key }) => key), owner.flagKey];
  throw filtersInvalid(`Circular dependency detected: ${keys.join(" → ")}`);
}

/** The references to other flags in filters, in order: IDs, unless the filters are invalid. */
export function dependencyReferences(filters: JsonObject): string[] {
  return dependenciesIn(filters).map(({ key }) => String(key));
}

/** The conditions on the values of other flags. */
function dependenciesIn(filters: JsonObject): JsonObject[] {
  return getGroups(filters)
    .flatMap(getProperties)
    .filter(({ type }) => type === "flag");
}

/** A flag is on, off, or has one of its variants (contract, third round B1). */
export function canEvaluateTo(value: Json | undefined, { filters }: Pick<FlagFact, "filters">): boolean {
  if (!fitsOperator("flag_evaluates_to", value)) return false;
  return typeof value === "boolean" || getVariants(filters).some(({ key }) => key === value);
}

function evaluatesToProblem(value: Json | undefined): FilterValueError {
  return {
    code: "invalid_value",
    detail: `Invalid value for operator flag_evaluates_to: ${formatFilterValue(value)}`,
  };
}

function checkDependency(reference: string, isKnown: boolean, owner: Owner): FlagFact {
  const id = wholeNumber(reference);
  if (id === undefined) {
    throw filtersInvalid(
      `Flag dependencies must reference flag IDs (integers), not flag keys. Invalid reference: '${reference}'`,
    );
  }
  if (id === owner.flagId) throw filtersInvalid(`Feature flag '${owner.flagKey}' cannot depend on itself`);
  const flag = owner.flags.find(id);
  if (flag === undefined || flag.deleted) {
    throw filtersInvalid(`Flag dependency references non-existent flag with ID ${id}`);
  }
  if (flag.active || isKnown) return flag;
  throw filtersInvalid(
    `Cannot create dependency on disabled flag '${flag.key}' (ID: ${id}). Flag dependencies must reference active flags only.`,
  );
}

/** The flags on a path from the given ones back to the target, first to last; undefined without such a path. */
function findCircle(start: readonly number[], target: number, flags: FlagFacts): FlagFact[] | undefined {
  const visited = new Set<number>();
  const open: { id: number; way: FlagFact[] }[] = start.map((id) => ({ id, way: [] }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.id === target) return next.way;
    if (visited.has(next.id)) continue;
    visited.add(next.id);
    const flag = flags.find(next.id);
    if (flag === undefined || flag.deleted) continue;
    const way = [...next.way, flag];
    for (const id of dependencyIds(flag.filters)) open.push({ id, way });
  }
  return undefined;
}
