/**
 * Filters of flags for SDKs.
 *
 * Some SDKs have a type for every member, and one invalid member makes them reject the definitions of all flags. So
 * members that evaluation ignores are omitted here, and filters that cannot match locally are left to the server.
 * Source: contract, sdk-compat 0.1 item 13; flag-evaluation 16.
 */

import { toNumber } from "../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { fitsOperator, isKnownOperator } from "../../lib/values/operators.ts";
import { payloadJson } from "../evaluate/compiled-flag.ts";
import { withGroups } from "../rules/stored-filters.ts";
import { type FlagDefinition, getGroups, getVariants, redactedPayload } from "../rules/types.ts";

/** Membership in a cohort that is never sent, for which every SDK asks the server. */
export const requiresServerEvaluation: JsonObject = { key: "id", type: "cohort", operator: "in", value: 0 };
const defaultOperator = "exact";

/** The stored filters of a flag, in the types that SDKs have for them. */
export function supportedFilters(flag: FlagDefinition): JsonObject {
  const { early_exit: earlyExit, multivariate, payloads, ...others } = withGroups(flag.filters);
  const filters: JsonObject = {
    ...withSupportedGroupType(others),
    groups: getGroups(others).map(supportedGroup),
  };
  if (typeof earlyExit === "boolean") filters.early_exit = earlyExit;
  if (multivariate !== undefined) filters.multivariate = supportedVariants(multivariate);
  if (isJsonObject(payloads)) filters.payloads = supportedPayloads(payloads, flag);
  for (const list of ["super_groups", "holdout_groups"] as const) {
    if (Array.isArray(filters[list]))
      filters[list] = getGroups({ groups: filters[list] }).map(supportedGroup);
  }
  return filters;
}

function supportedGroup(group: JsonObject): JsonObject {
  const { rollout_percentage: percentage, variant, properties, ...others } = group;
  const readable: JsonObject = {
    ...withSupportedGroupType(others),
    properties: supportedProperties(properties),
  };
  if (percentage !== undefined)
    readable.rollout_percentage = percentage === null ? null : getShare(percentage);
  if (typeof variant === "string" || variant === null) readable.variant = variant;
  return readable;
}

/** An invalid group type means persons. */
function withSupportedGroupType(filters: JsonObject): JsonObject {
  const { aggregation_group_type_index: index } = filters;
  const isReadable = index === undefined || Number.isInteger(index);
  return isReadable ? filters : { ...filters, aggregation_group_type_index: null };
}

/** Invalid filters match nothing: dropping them would include more users. */
function supportedProperties(properties: Json | undefined): Json[] {
  if (properties === undefined || properties === null) return [];
  if (!Array.isArray(properties)) return [requiresServerEvaluation];
  return properties.map((property) => {
    if (!isJsonObject(property) || !isSupportedBySdks(property)) return requiresServerEvaluation;
    const { negation, ...others } = supportedProperty(property);
    // In conditions it applies only to cohorts, which not every SDK knows.
    return property.type === "cohort" && negation !== undefined ? { ...others, negation } : others;
  });
}

const knownTypes = new Set<Json | undefined>([undefined, null, "person", "group", "cohort", "flag"]);

/**
 * Whether every SDK can parse a filter: posthog-dotnet rejects all definitions if a filter's value is a fraction or an
 * object.
 */
export function isSupportedBySdks(property: JsonObject): boolean {
  const { key, type, value } = property;
  const hasKey = typeof key === "string" || typeof key === "number";
  return (
    hasKey &&
    !isMisfit(property) &&
    knownTypes.has(type) &&
    (Array.isArray(value) ? value.every(isScalar) : isPlain(value))
  );
}

/** Whether the operator does not accept the value: it matches nothing here, and SDKs might interpret it differently. */
export function isMisfit({ type, operator, value }: JsonObject): boolean {
  if (type === "cohort" || type === "flag") return false;
  const name = operator ?? defaultOperator;
  return typeof name === "string" && isKnownOperator(name) && !fitsOperator(name, value);
}

function isPlain(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === "number" ? Number.isSafeInteger(value) : isScalar(value);
}

function isScalar(value: Json): boolean {
  return typeof value === "string" || typeof value === "boolean" || typeof value === "number";
}

const typedMembers = new Set(["type", "operator", "negation", "group_type_index", "dependency_chain"]);

/**
 * A property filter in which every typed member has its type or is absent; `value` exists, and so does an operator when
 * something is compared.
 */
export function supportedProperty(property: JsonObject): JsonObject {
  const { type, operator, negation, group_type_index: groupType } = property;
  const others = Object.entries(property).filter(([name]) => !typedMembers.has(name));
  const readable: JsonObject = {
    ...Object.fromEntries(others),
    key: String(property.key),
    value: property.value ?? null,
  };
  if (typeof type === "string") readable.type = type;
  if (typeof operator === "string") readable.operator = operator;
  else if (type !== "cohort" && type !== "flag") readable.operator = defaultOperator;
  if (typeof negation === "boolean") readable.negation = negation;
  if (Number.isInteger(groupType)) readable.group_type_index = groupType as number;
  return readable;
}

/** Without a list of variants the flag is boolean. */
function supportedVariants(multivariate: Json): JsonObject | null {
  if (!isJsonObject(multivariate) || !Array.isArray(multivariate.variants)) return null;
  const variants = getVariants({ multivariate }).filter(({ key }) => typeof key === "string");
  return {
    ...multivariate,
    variants: variants.map(({ name, ...variant }) => ({
      ...variant,
      ...(typeof name === "string" || name === null ? { name } : {}),
      rollout_percentage: getShare(variant.rollout_percentage),
    })),
  };
}

/** An invalid percentage is 0. */
function getShare(percentage: Json | undefined): number {
  const share = toNumber(percentage);
  return share !== undefined && Number.isFinite(share) ? share : 0;
}

function supportedPayloads(payloads: JsonObject, { hasEncryptedPayloads }: FlagDefinition): JsonObject {
  const texts = Object.entries(payloads).map(([key, payload]) => [
    key,
    hasEncryptedPayloads ? redactedPayload : payloadJson(payload),
  ]);
  return Object.fromEntries(texts);
}
