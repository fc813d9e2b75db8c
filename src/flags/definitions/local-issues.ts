/**
 * Why SDKs with local evaluation cannot evaluate a flag, or would evaluate it differently, so that they ask the server,
 * which operators should know. Pure. Source: contract, management-api 5.15, flag-evaluation 18.
 */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import { canEvaluateTo } from "../rules/dependency-rules.ts";
import { withGroups } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type FlagDefinition,
  getGroups,
  getGroupType,
  getProperties,
  surveyFlagPrefix,
} from "../rules/types.ts";
import { cohortIdsIn, knownOperators, renderDefinition } from "./local-cohorts.ts";
import { isMisfit, isSupportedBySdks } from "./local-filters.ts";

/** The part of a flag that issues depend on. */
type LocalFlag = Pick<
  FlagDefinition,
  "id" | "key" | "active" | "deleted" | "filters" | "ensureExperienceContinuity" | "hasEncryptedPayloads"
>;

/** The part of a project that issues depend on. */
export interface LocalFacts {
  flag(id: number): LocalFlag | undefined;
  cohort(id: number): CohortDefinition | undefined;
  /** Absent when group types are unknown; then all exist. */
  hasGroupType?(index: number): boolean;
}

/** Messages per flag; a flag of 512 KiB could have thousands. */
const issuesMax = 20;
/** Maximum depth of dependencies between flags or cohorts that is checked. */
const depthMax = 100;

/** Finds the issues of a project's flags, as messages; an empty list for a flag that every SDK evaluates. */
export class LocalIssues {
  private readonly flags = new Map<number, string[]>();
  private readonly cohorts = new Map<number, string | undefined>();
  /** Flags in progress; one that is reached again depends on itself. */
  private readonly openFlags = new Set<number>();
  private readonly openCohorts = new Set<number>();

  constructor(private readonly facts: LocalFacts) {}

  getIssues(flag: LocalFlag): string[] {
    const known = this.flags.get(flag.id);
    if (known !== undefined) return known;
    this.openFlags.add(flag.id);
    const all = [...new Set(this.find(flag))];
    this.openFlags.delete(flag.id);
    const issues =
      all.length <= issuesMax
        ? all
        : [...all.slice(0, issuesMax - 1), `${all.length - issuesMax + 1} more issues.`];
    this.flags.set(flag.id, issues);
    return issues;
  }

  private find(flag: LocalFlag): string[] {
    const issues: string[] = [];
    const filters = withGroups(flag.filters);
    if (flag.hasEncryptedPayloads)
      issues.push("Encrypted payloads: the flag is excluded from local evaluation.");
    if (flag.key.startsWith(surveyFlagPrefix))
      issues.push("Survey flag: it is excluded from local evaluation.");
    if (flag.ensureExperienceContinuity)
      issues.push("Experience continuity: only the server knows the ID before a user was identified.");
    if (filters.feature_enrollment === true || getGroups({ groups: filters.super_groups ?? [] }).length > 0)
      issues.push("Early access: SDKs ignore enrollment and super condition sets.");
    if (isJsonObject(filters.holdout) || getGroups({ groups: filters.holdout_groups ?? [] }).length > 0)
      issues.push("Holdout: not every SDK evaluates holdouts.");
    for (const [index, group] of getGroups(filters).entries()) {
      for (const problem of this.inGroup(group, filters))
        issues.push(`Condition set ${index + 1}: ${problem}`);
    }
    return issues;
  }

  private inGroup(group: JsonObject, filters: JsonObject): string[] {
    const problems: string[] = [];
    const groupType = getGroupType(group, filters);
    if (groupType !== null && this.facts.hasGroupType?.(groupType) === false)
      problems.push(`group type ${groupType} does not exist.`);
    if (group.properties !== undefined && group.properties !== null && !Array.isArray(group.properties))
      problems.push("its properties are not a list.");
    for (const property of getProperties(group)) {
      const problem = this.inProperty(property);
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  private inProperty(property: JsonObject): string | undefined {
    const { type, operator } = property;
    if (type === "cohort") {
      const isMembership = operator === undefined || operator === "in" || operator === "not_in";
      const id = wholeNumber(property.value);
      if (!isMembership || id === undefined)
        return "a cohort filter has an operator that SDKs do not support.";
      return this.inCohort(id);
    }
    if (type === "flag") return this.inDependency(property);
    return problemOfFilter(property);
  }

  private inDependency({ key, value }: JsonObject): string | undefined {
    const id = wholeNumber(key);
    const needed = id === undefined ? undefined : this.facts.flag(id);
    if (needed === undefined || needed.deleted) return `flag ${JSON.stringify(key)} does not exist.`;
    // An inactive flag needs nothing.
    if (!needed.active) return undefined;
    if (!canEvaluateTo(value, needed))
      return `flag "${needed.key}" never evaluates to ${JSON.stringify(value ?? null)}: the condition matches nothing.`;
    if (this.openFlags.has(needed.id)) return `flag "${needed.key}" has a circular dependency on this flag.`;
    if (this.openFlags.size > depthMax) return `it depends on more than ${depthMax} flags in a row.`;
    return this.getIssues(needed).length === 0
      ? undefined
      : `it depends on flag "${needed.key}", which SDKs cannot evaluate.`;
  }

  private inCohort(id: number): string | undefined {
    if (this.cohorts.has(id)) return this.cohorts.get(id);
    const cohort = this.facts.cohort(id);
    if (cohort === undefined) return `cohort ${id} does not exist.`;
    if (this.openCohorts.has(id)) return `cohort "${cohort.name}" contains itself.`;
    if (this.openCohorts.size > depthMax) return `cohorts are nested more than ${depthMax} deep.`;
    this.openCohorts.add(id);
    const problem = this.findInCohort(cohort);
    this.openCohorts.delete(id);
    this.cohorts.set(id, problem);
    return problem;
  }

  private findInCohort(cohort: CohortDefinition): string | undefined {
    if (cohort.isStatic) return `cohort "${cohort.name}" is static: only the server knows its members.`;
    const properties = cohort.filters?.properties;
    const rendered = renderDefinition(properties);
    if (rendered === undefined)
      return `cohort "${cohort.name}" has ${unknownPart(properties ?? null) ?? "a definition"} that SDKs cannot evaluate.`;
    for (const nested of cohortIdsIn(rendered)) {
      if (this.inCohort(nested) !== undefined) {
        const name = this.facts.cohort(nested)?.name ?? String(nested);
        return `cohort "${cohort.name}" contains the cohort "${name}", which SDKs cannot evaluate.`;
      }
    }
    return undefined;
  }
}

function problemOfFilter(property: JsonObject): string | undefined {
  const name = JSON.stringify(property.key ?? null);
  if (isMisfit(property))
    return `property ${name} matches nothing: the operator ${String(property.operator ?? "exact")} does not take its value.`;
  if (!isSupportedBySdks(property))
    return `property ${name} has a value that not every SDK supports, such as a fraction or an object.`;
  const { operator } = property;
  if (operator === undefined || operator === null || knownOperators.has(operator)) return undefined;
  return `property ${name} has the operator ${String(operator)}, which not every SDK supports.`;
}

/** Describes the first filter of a cohort's definition that SDKs cannot evaluate. */
function unknownPart(node: Json): string | undefined {
  if (!isJsonObject(node)) return undefined;
  if (Array.isArray(node.values)) {
    for (const value of node.values) {
      const part = unknownPart(value);
      if (part !== undefined) return part;
    }
    return undefined;
  }
  const { type = "person", key, operator } = node;
  if (type === "behavioral") return "a behavioral filter";
  if (type !== "person" && type !== "cohort") return `a filter of type ${String(type)}`;
  const problem = type === "person" && problemOfFilter({ ...node, operator: operator ?? "exact" });
  if (!problem) return undefined;
  const isOperator = operator !== undefined && operator !== null && !knownOperators.has(operator);
  return isOperator
    ? `the operator ${String(operator)}`
    : `a value of property ${JSON.stringify(key ?? null)}`;
}
