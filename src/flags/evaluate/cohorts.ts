/**
 * Membership of a person in cohorts, by properties and lists of members.
 *
 * Definitions nest to any depth and may be inverted at every filter and every nested cohort. Behavioral filters cannot
 * be evaluated here: they match no person, inverted or not. Source: contract, flag-evaluation 13.
 */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import type { Clock } from "../../lib/values/dates.ts";
import { validateFilterValue } from "../../lib/values/operators.ts";
import { compileMatcher, isDateOperator, type Matcher, type MatchResult } from "../operators/matchers.ts";
import type { CohortDefinition } from "../rules/types.ts";
import type { PropertyView } from "./person-view.ts";
import { Failure } from "./reasons.ts";

export interface CompiledCohort {
  id: number;
  name: string;
  isStatic: boolean;
  /** Why membership cannot be evaluated: a missing nested cohort, a cycle, an invalid definition. */
  failure: Failure | undefined;
  /** Person properties used by this cohort and all nested ones. */
  personKeys: ReadonlySet<string>;
  /** Whether this cohort or a nested one has a list of members. */
  needsMemberLists: boolean;
  /** Whether this cohort or a nested one depends on the clock. */
  isDateOperator: boolean;
  /** Undefined when the cohort has a list of members instead. */
  rule: CohortRule | undefined;
}

export type CompiledCohorts = ReadonlyMap<number, CompiledCohort>;

type CohortRule =
  | { kind: "all" | "any"; rules: CohortRule[] }
  | { kind: "everyone" | "unanswerable" }
  | { kind: "property"; key: string; test: Matcher; isDateOperator: boolean; isInverted: boolean }
  | { kind: "cohort"; id: number; isInverted: boolean };

/** The person to evaluate. */
export interface CohortSubject {
  person: PropertyView;
  /** IDs of the static cohorts that contain the person. */
  staticCohortIds: ReadonlySet<number>;
  clock: Clock;
  /** Results so far; one map per person and request. */
  answers: Map<number, boolean>;
}

/** Compiles cohorts that are not deleted; invalid ones carry their failure instead of throwing. */
export function compileCohorts(definitions: Iterable<CohortDefinition>): CompiledCohorts {
  const compiled = new Map<number, CompiledCohort>();
  for (const definition of definitions) compiled.set(definition.id, compileCohort(definition));
  const state = new Map<number, "visiting" | "done">();
  for (const id of compiled.keys()) settle(id, compiled, state);
  return compiled;
}

/** The failure of a cohort that does not exist. */
export function missingCohort(id: number): Failure {
  return new Failure("dependency_not_found_cohort", `Cohort ${id} does not exist`);
}

/** Whether the subject belongs to a cohort that has no failure. */
export function isMember(cohort: CompiledCohort, cohorts: CompiledCohorts, subject: CohortSubject): boolean {
  const known = subject.answers.get(cohort.id);
  if (known !== undefined) return known;
  const answer =
    cohort.rule === undefined
      ? subject.staticCohortIds.has(cohort.id)
      : getResult(cohort.rule, cohorts, subject) === true;
  subject.answers.set(cohort.id, answer);
  return answer;
}

function getResult(rule: CohortRule, cohorts: CompiledCohorts, subject: CohortSubject): MatchResult {
  switch (rule.kind) {
    case "everyone":
      return true;
    case "unanswerable":
      return "error";
    case "all":
      return rule.rules.length > 0 && rule.rules.every((part) => getResult(part, cohorts, subject) === true);
    case "any":
      return rule.rules.some((part) => getResult(part, cohorts, subject) === true);
    case "property": {
      const result = rule.test(subject.person.get(rule.key), subject.clock);
      return result === "error" ? "error" : result !== rule.isInverted;
    }
    case "cohort": {
      const nested = cohorts.get(rule.id);
      return nested === undefined ? "error" : isMember(nested, cohorts, subject) !== rule.isInverted;
    }
  }
}

function compileCohort(definition: CohortDefinition): CompiledCohort {
  const { id, name, isStatic } = definition;
  const cohort: CompiledCohort = {
    id,
    name,
    isStatic,
    failure: undefined,
    personKeys: new Set(),
    needsMemberLists: isStatic,
    isDateOperator: false,
    rule: undefined,
  };
  if (isStatic) return cohort;
  const rule = compileDefinition(definition.filters?.properties);
  if (rule !== undefined) return { ...cohort, rule };
  return {
    ...cohort,
    failure: new Failure("cohort_filters_parsing_error", `Cohort ${id} has unreadable filters`),
  };
}

/** Maximum depth of a cohort's groups; deeper definitions are unreadable. */
export const groupDepthMax = 100;

/** Only a definition without any filter matches everyone; an empty group inside another one matches no person. */
function compileDefinition(properties: Json | undefined): CohortRule | undefined {
  if (properties === undefined || properties === null) return { kind: "everyone" };
  const rule = compileNode(properties, 0);
  if (rule === undefined) return undefined;
  return getLeaves(rule).next().done ? { kind: "everyone" } : rule;
}

function compileNode(node: Json, depth: number): CohortRule | undefined {
  if (!isJsonObject(node) || depth > groupDepthMax) return undefined;
  if (Object.keys(node).length === 0) return { kind: "any", rules: [] };
  const isGroup = "values" in node || node.type === "AND" || node.type === "OR";
  if (!isGroup) return compileFilter(node);
  const kind =
    node.type === "AND" || node.type === "property" ? "all" : node.type === "OR" ? "any" : undefined;
  const values = node.values ?? [];
  if (kind === undefined || !Array.isArray(values)) return undefined;
  const rules: CohortRule[] = [];
  for (const value of values) {
    const rule = compileNode(value, depth + 1);
    if (rule === undefined) return undefined;
    rules.push(rule);
  }
  return { kind, rules };
}

function compileFilter(filter: JsonObject): CohortRule | undefined {
  const isInverted = filter.negation === true;
  const operator = typeof filter.operator === "string" ? filter.operator : null;
  switch (filter.type ?? "person") {
    case "person": {
      if (typeof filter.key !== "string") return undefined;
      return {
        kind: "property",
        key: filter.key,
        test: compileMatcher(operator, filter.value),
        isDateOperator: isDateOperator(operator),
        // An invalid condition matches nothing; its negation must not match everyone.
        isInverted: isInverted && validateFilterValue(filter) === undefined,
      };
    }
    case "cohort": {
      // Lists that replace behavioral filters have negative IDs.
      const id = Number.isInteger(filter.value) ? (filter.value as number) : wholeNumber(filter.value);
      if (id === undefined) return undefined;
      // Older definitions have `exact` or no operator where newer ones have `in`.
      if (operator !== null && !["in", "not_in", "exact"].includes(operator)) return { kind: "unanswerable" };
      return {
        kind: "cohort",
        id,
        isInverted: isInverted !== (operator === "not_in"),
      };
    }
    default:
      return { kind: "unanswerable" };
  }
}

/** Collects requirements of nested cohorts and propagates their failures, so that `isMember` needs no checks. */
function settle(
  id: number,
  compiled: Map<number, CompiledCohort>,
  state: Map<number, "visiting" | "done">,
): Failure | undefined {
  const cohort = compiled.get(id);
  if (cohort === undefined) return missingCohort(id);
  if (state.get(id) === "visiting") {
    return new Failure("dependency_cycle_cohort", `Cohort ${id} refers to itself through other cohorts`);
  }
  if (state.get(id) === "done") return cohort.failure;
  state.set(id, "visiting");
  const personKeys = new Set<string>();
  for (const leaf of getLeaves(cohort.rule)) {
    if (leaf.kind === "property") {
      personKeys.add(leaf.key);
      cohort.isDateOperator ||= leaf.isDateOperator;
    }
    if (leaf.kind !== "cohort") continue;
    cohort.failure ??= settle(leaf.id, compiled, state);
    const nested = compiled.get(leaf.id);
    for (const key of nested?.personKeys ?? []) personKeys.add(key);
    cohort.needsMemberLists ||= nested?.needsMemberLists ?? false;
    cohort.isDateOperator ||= nested?.isDateOperator ?? false;
  }
  cohort.personKeys = personKeys;
  state.set(id, "done");
  return cohort.failure;
}

function* getLeaves(rule: CohortRule | undefined): Generator<CohortRule> {
  if (rule === undefined) return;
  if (rule.kind === "all" || rule.kind === "any") for (const part of rule.rules) yield* getLeaves(part);
  else yield rule;
}
