/**
 * Flag definitions for SDKs with local evaluation.
 *
 * As strict as SDKs are: booleans and objects are never null, every property filter has a `value`, payloads are
 * strings. Source: contract, management-api 5.15, flag-evaluation 16, sdk-compat 0.1 item 13 and 4.4.
 */

import { weakTag } from "../../http/route-response.ts";
import { type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import { orderByDependency } from "../evaluate/dependency-order.ts";
import { mapProperties, withGroups } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type FlagDefinition,
  type GroupType,
  getGroups,
  getProperties,
  surveyFlagPrefix,
} from "../rules/types.ts";
import { inlineSingleCohort, renderCohorts, withComplements } from "./local-cohorts.ts";
import { requiresServerEvaluation, supportedFilters } from "./local-filters.ts";
import { LocalIssues } from "./local-issues.ts";

export interface LocalEvaluationInput {
  /** All flags of the project; may include deleted ones. */
  flags: Iterable<FlagDefinition>;
  cohorts: Iterable<CohortDefinition>;
  groupTypes: Iterable<GroupType>;
  projectId: number;
  /** With definitions of cohorts; without them, a flag's only cohort is inlined if possible. */
  sendCohorts: boolean;
}

export interface LocalEvaluationBody {
  flags: JsonObject[];
  group_type_mapping: Record<string, string>;
  cohorts: Record<string, JsonObject>;
  /** Why flags are omitted, by key; flags in `flags` contain their issues. */
  local_evaluation_issues: Record<string, string[]>;
}

/** The definitions of a project, including inactive flags; survey flags and encrypted payloads are excluded. */
export function localEvaluationBody(input: LocalEvaluationInput): LocalEvaluationBody {
  const all = [...input.flags].filter(({ deleted }) => !deleted);
  const cohorts = new Map([...input.cohorts].map((cohort) => [cohort.id, cohort]));
  const withDependencyKeys = dependencyRenderer(all);
  const types = new Set([...input.groupTypes].map(({ index }) => index));
  const byId = new Map(all.map((flag) => [flag.id, flag]));
  const issues = new LocalIssues({
    flag: (id) => byId.get(id),
    cohort: (id) => cohorts.get(id),
    hasGroupType: (index) => types.has(index),
  });
  const isLeftOut = ({ key, hasEncryptedPayloads }: FlagDefinition) =>
    hasEncryptedPayloads === true || key.startsWith(surveyFlagPrefix);
  const ordered = all.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.id - b.id));
  const leftOut = ordered.filter(isLeftOut).map((flag) => [flag.key, issues.getIssues(flag)]);
  const flags = ordered
    .filter((flag) => !isLeftOut(flag))
    .map((flag) => {
      const definition = renderDefinition(flag, input.projectId);
      const filters = withDependencyKeys(definition.filters as JsonObject);
      const inlined = input.sendCohorts ? filters : inlineSingleCohort(filters, cohorts);
      return {
        ...definition,
        filters: mapProperties(inlined, "groups", withPlainNegation),
        local_evaluation_issues: issues.getIssues(flag),
      };
    });
  const sentCohorts = input.sendCohorts ? renderCohorts(flags, cohorts) : {};
  return {
    flags: flags.map((flag) => ({
      ...flag,
      filters: withComplements(flag.filters as JsonObject, sentCohorts),
    })),
    group_type_mapping: Object.fromEntries(
      [...input.groupTypes].map(({ index, name }) => [String(index), name]),
    ),
    cohorts: sentCohorts,
    local_evaluation_issues: Object.fromEntries(leftOut),
  };
}

/** A serialized body and its ETag, which changes only with the body. */
export function localEvaluationReply(body: LocalEvaluationBody): { text: string; etag: string } {
  const text = JSON.stringify(body);
  return { text, etag: weakTag(text) };
}

/** A flag in the shape of `local_evaluation` and `my_flags`, with the stored filters in the types that SDKs support. */
export function renderDefinition(flag: FlagDefinition, projectId: number): JsonObject {
  return {
    id: flag.id,
    team_id: projectId,
    name: flag.name ?? "",
    key: flag.key,
    filters: supportedFilters(flag),
    deleted: flag.deleted === true,
    active: flag.active === true,
    ensure_experience_continuity: flag.ensureExperienceContinuity === true,
    has_encrypted_payloads: flag.hasEncryptedPayloads === true,
    version: flag.version,
    evaluation_runtime: flag.evaluationRuntime ?? "all",
    bucketing_identifier: flag.bucketingIdentifier ?? "distinct_id",
    evaluation_tags: [...flag.evaluationTags],
    evaluation_contexts: [...flag.evaluationTags],
  };
}

/** SDKs support the operator of a flag's cohort filter but not its `negation`, so the operator alone expresses it. */
function withPlainNegation(property: JsonObject): JsonObject {
  if (property.type !== "cohort") return property;
  const { operator, negation } = property;
  // With any other operator it matches nothing here, but SDKs would read it as membership.
  if (operator !== undefined && operator !== "in" && operator !== "not_in") return requiresServerEvaluation;
  if (negation !== true) return property;
  return { ...property, operator: operator === "not_in" ? "in" : "not_in", negation: false };
}

/*
 * Dependencies between flags for SDKs: by key, with the chain of flags to evaluate first.
 *
 * Source: contract, flag-evaluation 11, management-api 5.15.
 */

interface Node {
  id: number;
  key: string;
  active: boolean;
  dependencies: (number | undefined)[];
}

/** Builds the function that rewrites the dependencies in the filters of any of these flags, none of them deleted. */
function dependencyRenderer(flags: readonly FlagDefinition[]): (filters: JsonObject) => JsonObject {
  // By ID, so that chains, and with them the ETag, do not depend on the order in which flags are read.
  const byId = [...flags].sort((a, b) => a.id - b.id);
  const nodes = new Map(byId.map((flag) => [flag.id, getNode(flag)]));
  const { ordered, resolutions } = orderByDependency(nodes);
  const ranks = new Map(ordered.map(({ id }, rank) => [id, rank]));

  const getChain = (target: Node): string[] => {
    if (!target.active) return [target.key];
    if (resolutions.get(target.id) !== "ok") return [];
    return dependenciesFrom(target, nodes)
      .sort((a, b) => (ranks.get(a.id) ?? -1) - (ranks.get(b.id) ?? -1))
      .map(({ key }) => key);
  };

  return (filters) =>
    mapProperties(filters, "groups", (property) => {
      if (property.type !== "flag") return property;
      const id = wholeNumber(property.key);
      const target = id === undefined ? undefined : nodes.get(id);
      if (target === undefined) return { ...property, dependency_chain: [] };
      return { ...property, key: target.key, dependency_chain: getChain(target) };
    });
}

function getNode(flag: FlagDefinition): Node {
  const dependencies = getGroups(withGroups(flag.filters))
    .flatMap(getProperties)
    .filter(({ type, operator }) => type === "flag" && operator === "flag_evaluates_to")
    .map(({ key }) => wholeNumber(key));
  return { id: flag.id, key: flag.key, active: flag.active, dependencies };
}

/** A flag and everything it depends on. An inactive flag needs nothing: it is off whatever the others are. */
function dependenciesFrom(start: Node, nodes: ReadonlyMap<number, Node>): Node[] {
  const found = new Map<number, Node>();
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (found.has(node.id)) continue;
    found.set(node.id, node);
    if (!node.active) continue;
    for (const id of node.dependencies) {
      const needed = id === undefined ? undefined : nodes.get(id);
      if (needed !== undefined) open.push(needed);
    }
  }
  return [...found.values()];
}
