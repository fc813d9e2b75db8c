/**
 * Cohorts as SDKs read them: as definitions beside the flags, or written into the flag.
 *
 * Source: contract, management-api 5.15, flag-evaluation 13 and 16.
 */

import { idOf, isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { type CohortDefinition, groupsOf, propertiesOf } from "../rules/types.ts";

type Cohorts = ReadonlyMap<number, CohortDefinition>;

const depthMax = 100;
/** Matches nobody, in every SDK. */
const nobody: JsonObject = { type: "OR", values: [] };

/** Definitions of all cohorts that flags use, nested ones included, by id. SDKs ask the server about all others. */
export function renderCohorts(flags: readonly JsonObject[], cohorts: Cohorts): Record<string, JsonObject> {
  const rendered = new Map<number, JsonObject>();
  const open = flags.flatMap((flag) => cohortIdsInFlag(flag.filters as JsonObject));
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const cohort = cohorts.get(id);
    if (cohort === undefined || cohort.isStatic || rendered.has(id)) continue;
    const definition = renderDefinition(cohort.filters?.properties);
    if (definition === undefined) continue;
    rendered.set(id, definition);
    open.push(...cohortIdsIn(definition));
  }
  const byId = [...rendered].sort(([a], [b]) => a - b);
  return Object.fromEntries(byId.map(([id, definition]) => [String(id), definition]));
}

/**
 * Filters in which the only cohort of a flag is written out as person properties, or the same filters when its
 * definition cannot be said that way.
 */
export function inlineSingleCohort(filters: JsonObject, cohorts: Cohorts): JsonObject {
  const ids = new Set(cohortIdsInFlag(filters));
  const [id] = ids;
  const cohort = ids.size === 1 && id !== undefined ? cohorts.get(id) : undefined;
  if (cohort === undefined || cohort.isStatic) return filters;
  const alternatives = alternativesOf(cohort.filters?.properties ?? null, 0);
  if (alternatives === undefined || alternatives.length === 0) return filters;
  const groups: JsonObject[] = [];
  for (const group of groupsOf(filters)) {
    const properties = propertiesOf(group);
    if (!properties.some(({ type }) => type === "cohort")) {
      groups.push(group);
      continue;
    }
    if (!isInlinable(group, properties, filters)) return filters;
    for (const alternative of alternatives) groups.push({ ...group, properties: alternative });
  }
  return { ...filters, groups };
}

function isInlinable(group: JsonObject, properties: readonly JsonObject[], filters: JsonObject): boolean {
  const [only] = properties;
  if (properties.length !== 1 || only === undefined || group.variant) return false;
  const groupType = Object.hasOwn(group, "aggregation_group_type_index")
    ? group.aggregation_group_type_index
    : filters.aggregation_group_type_index;
  const isAboutPersons = groupType === undefined || groupType === null;
  return isAboutPersons && only.negation !== true && (only.operator ?? "in") === "in";
}

/**
 * A definition as a list of alternatives, each a list of person filters that must all match; undefined when it
 * inverts something, nests other cohorts, or joins alternatives by AND.
 */
function alternativesOf(node: Json, depth: number): JsonObject[][] | undefined {
  if (!isJsonObject(node) || depth > depthMax) return undefined;
  if (!Array.isArray(node.values)) {
    const isPlain =
      (node.type ?? "person") === "person" && typeof node.key === "string" && node.negation !== true;
    return isPlain ? [[{ ...node, type: "person", value: node.value ?? null }]] : undefined;
  }
  const parts: JsonObject[][][] = [];
  for (const value of node.values) {
    const part = alternativesOf(value, depth + 1);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  if (parts.length === 0) return undefined;
  if (node.type === "OR") return parts.flat();
  if (node.type !== "AND" || parts.some((part) => part.length !== 1)) return undefined;
  return [parts.flatMap(([only]) => only ?? [])];
}

/** A definition in the form that all SDKs read alike; undefined when it is unreadable. */
function renderDefinition(properties: Json | undefined): JsonObject | undefined {
  if (properties === undefined || properties === null) return {};
  const rendered = renderNode(properties, 0);
  if (rendered === undefined) return undefined;
  return hasLeaf(rendered) ? rendered : {};
}

function renderNode(node: Json, depth: number): JsonObject | undefined {
  if (!isJsonObject(node) || depth > depthMax) return undefined;
  const isGroup = "values" in node || node.type === "AND" || node.type === "OR";
  if (!isGroup) return Object.keys(node).length === 0 ? nobody : { ...node, value: node.value ?? null };
  const values: JsonObject[] = [];
  for (const value of Array.isArray(node.values) ? node.values : []) {
    const rendered = renderNode(value, depth + 1);
    if (rendered === undefined) return undefined;
    values.push(rendered);
  }
  // SDKs take an empty AND for "everyone"; inside a larger definition it is nobody.
  if (values.length === 0) return nobody;
  // SDKs tell by the first member whether a list holds filters or groups, so a list must hold one kind.
  const isMixed = values.some(isGroupNode) && !values.every(isGroupNode);
  return {
    ...node,
    values: isMixed
      ? values.map((value) => (isGroupNode(value) ? value : { type: "AND", values: [value] }))
      : values,
  };
}

function isGroupNode(node: JsonObject): boolean {
  return "values" in node;
}

function hasLeaf(node: JsonObject): boolean {
  return Array.isArray(node.values)
    ? node.values.some((value) => isJsonObject(value) && hasLeaf(value))
    : true;
}

function cohortIdsInFlag(filters: JsonObject): number[] {
  return groupsOf(filters).flatMap((group) => propertiesOf(group).flatMap(cohortIdOf));
}

function cohortIdsIn(node: JsonObject): number[] {
  if (!Array.isArray(node.values)) return cohortIdOf(node);
  return node.values.flatMap((value) => (isJsonObject(value) ? cohortIdsIn(value) : []));
}

function cohortIdOf(filter: JsonObject): number[] {
  const id = filter.type === "cohort" ? idOf(filter.value) : undefined;
  return id === undefined ? [] : [id];
}
