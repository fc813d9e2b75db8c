/**
 * Cohorts for SDKs: as definitions next to the flags, or inlined in the flag.
 *
 * Source: contract, management-api 5.15, flag-evaluation 13 and 16.
 */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import { operatorsWhere } from "../../lib/operator-table.ts";
import { groupDepthMax } from "../evaluate/cohorts.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import { type CohortDefinition, getGroups, getGroupType, getProperties } from "../rules/types.ts";
import { isSupportedBySdks, supportedProperty } from "./local-filters.ts";

type Cohorts = ReadonlyMap<number, CohortDefinition>;

/** Replaces a group that matches no user: to most SDKs a group without members matches every user. */
const noPersons = "no_users";
/** Every SDK reads this as matching every user. */
const everybody: JsonObject = { type: "AND", values: [] };
/** The operators that every SDK supports: a cohort with any other makes some SDKs reject all definitions. */
export const knownOperators: ReadonlySet<Json | undefined> = operatorsWhere(
  ({ isKnownToSdks }) => isKnownToSdks === true,
);
const membershipOperators = new Set<Json | undefined>([undefined, "in", "not_in", "exact"]);

/**
 * Definitions by ID of all cohorts that flags use, including nested ones; and complements, by negative ID, for flags
 * that exclude a cohort. SDKs ask the server about all others.
 */
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
  const excluded = flags.flatMap((flag) => filtersIn(flag.filters as JsonObject).flatMap(getExcludedId));
  for (const id of excluded) if (rendered.has(id)) rendered.set(-id, everyoneNotIn(id));
  const byId = [...rendered].sort(([a], [b]) => a - b);
  return Object.fromEntries(byId.map(([id, definition]) => [String(id), definition]));
}

/**
 * A flag's filters with "not in this cohort" replaced by "in its complement", if that is sent: several SDKs support
 * neither the operator nor the negation of a flag's cohort filter, and would include the excluded users.
 */
export function withComplements(
  filters: JsonObject,
  sentCohorts: Readonly<Record<string, JsonObject>>,
): JsonObject {
  return mapProperties(filters, "groups", (property) => {
    const [id] = getExcludedId(property);
    return id !== undefined && Object.hasOwn(sentCohorts, String(-id))
      ? { ...property, operator: "in", value: -id }
      : property;
  });
}

/** Every SDK supports the negation inside of cohorts. */
function everyoneNotIn(id: number): JsonObject {
  return {
    type: "AND",
    values: [{ key: "id", type: "cohort", operator: "in", value: id, negation: true }],
  };
}

/**
 * Filters in which the only cohort of a flag is inlined as person properties, or the same filters when its definition
 * cannot be inlined.
 */
export function inlineSingleCohort(filters: JsonObject, cohorts: Cohorts): JsonObject {
  const ids = new Set(cohortIdsInFlag(filters));
  const [id] = ids;
  const cohort = ids.size === 1 && id !== undefined ? cohorts.get(id) : undefined;
  if (cohort === undefined || cohort.isStatic) return filters;
  const alternatives = getAlternatives(cohort.filters?.properties ?? null, 0);
  if (alternatives === undefined || alternatives.length === 0) return filters;
  const groups: JsonObject[] = [];
  for (const group of getGroups(filters)) {
    const properties = getProperties(group);
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
  return getGroupType(group, filters) === null && only.negation !== true && (only.operator ?? "in") === "in";
}

/**
 * A definition as a list of alternatives, each a list of person filters that must all match; undefined when it inverts
 * something, nests other cohorts, or joins alternatives by AND.
 */
function getAlternatives(node: Json, depth: number): JsonObject[][] | undefined {
  if (!isJsonObject(node) || depth > groupDepthMax) return undefined;
  if (!Array.isArray(node.values)) {
    const isPlain = (node.type ?? "person") === "person" && node.negation !== true;
    const filter = isPlain ? renderFilter(node) : undefined;
    return filter && [[filter]];
  }
  const parts: JsonObject[][][] = [];
  for (const value of node.values) {
    const part = getAlternatives(value, depth + 1);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  if (parts.length === 0) return undefined;
  if (node.type === "OR") return parts.flat();
  if (node.type !== "AND" || parts.some((part) => part.length !== 1)) return undefined;
  return [parts.flatMap(([only]) => only ?? [])];
}

/** A definition in the form that all SDKs interpret alike; undefined without such a form. */
export function renderDefinition(properties: Json | undefined): JsonObject | undefined {
  if (properties === undefined || properties === null) return everybody;
  const rendered = renderNode(properties, 0);
  if (rendered === noPersons) return hasFilter(properties) ? undefined : everybody;
  if (rendered === undefined || isGroupNode(rendered)) return rendered;
  return { type: "AND", values: [rendered] };
}

function renderNode(node: Json, depth: number): JsonObject | typeof noPersons | undefined {
  if (!isJsonObject(node) || depth > groupDepthMax) return undefined;
  if (Object.keys(node).length === 0) return noPersons;
  return isGroup(node) ? renderGroup(node, depth) : renderFilter(node);
}

function renderGroup(node: JsonObject, depth: number): JsonObject | typeof noPersons | undefined {
  const isAny = node.type === "OR";
  const isAll = node.type === "AND" || node.type === "property";
  const sent = node.values ?? [];
  if (!(isAny || isAll) || !Array.isArray(sent)) return undefined;
  const values: JsonObject[] = [];
  let isEmpty = false;
  for (const value of sent) {
    const rendered = renderNode(value, depth + 1);
    if (rendered === undefined) return undefined;
    if (rendered === noPersons) isEmpty = true;
    else values.push(rendered);
  }
  if (values.length === 0 || (isAll && isEmpty)) return noPersons;
  // SDKs decide by the first member whether a list contains filters or groups, so a list must contain one kind.
  const isMixed = values.some(isGroupNode) && !values.every(isGroupNode);
  return {
    type: isAny ? "OR" : "AND",
    values: isMixed
      ? values.map((value) => (isGroupNode(value) ? value : { type: "AND", values: [value] }))
      : values,
  };
}

/** A filter in the form that every SDK supports; undefined for one that only the server can evaluate. */
function renderFilter(filter: JsonObject): JsonObject | undefined {
  if (!isSupportedBySdks(filter)) return undefined;
  const { operator, negation, ...others } = supportedProperty(filter);
  switch (filter.type ?? "person") {
    case "person":
      if (typeof filter.key !== "string" || !knownOperators.has(operator)) return undefined;
      return { ...others, type: "person", operator: operator!, ...(negation === true ? { negation } : {}) };
    case "cohort": {
      const id = wholeNumber(filter.value);
      if (id === undefined || !membershipOperators.has(operator)) return undefined;
      // In cohorts `not_in` is the operator that several SDKs do not support.
      const isInverted = (operator === "not_in") !== (negation === true);
      return { ...others, value: id, operator: "in", ...(isInverted ? { negation: true } : {}) };
    }
    default:
      return undefined;
  }
}

function isGroup(node: JsonObject): boolean {
  return "values" in node || node.type === "AND" || node.type === "OR";
}

function isGroupNode(node: JsonObject): boolean {
  return "values" in node;
}

/** Only a definition without any filter matches every user. */
function hasFilter(node: Json): boolean {
  if (!isJsonObject(node) || Object.keys(node).length === 0) return false;
  return isGroup(node) ? Array.isArray(node.values) && node.values.some(hasFilter) : true;
}

function filtersIn(filters: JsonObject): JsonObject[] {
  return getGroups(filters).flatMap(getProperties);
}

function cohortIdsInFlag(filters: JsonObject): number[] {
  return filtersIn(filters).flatMap(getCohortId);
}

export function cohortIdsIn(node: JsonObject): number[] {
  if (!Array.isArray(node.values)) return getCohortId(node);
  return node.values.flatMap((value) => (isJsonObject(value) ? cohortIdsIn(value) : []));
}

function getCohortId(filter: JsonObject): number[] {
  return filter.type === "cohort" && Number.isInteger(filter.value) ? [filter.value as number] : [];
}

/** The cohort that a flag's filter excludes; at this point negation is normalized to the operator. */
function getExcludedId(filter: JsonObject): number[] {
  return filter.operator === "not_in" ? getCohortId(filter) : [];
}
