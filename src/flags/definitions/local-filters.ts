/**
 * Filters of flags as SDKs read them.
 *
 * Some SDKs have a type for every member, and one member that does not fit costs them the definitions of all flags.
 * So what evaluation takes for absent is left out here, and what it takes for impossible is left to the server.
 * Source: contract, sdk-compat 0.1 item 13; flag-evaluation 16.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { fitsOperator } from "../../lib/operator-values.ts";
import { isKnownOperator } from "../../lib/operators.ts";
import { numberOf } from "../../lib/values/numbers.ts";
import { payloadText } from "../evaluate/compiled-flag.ts";
import { withGroups } from "../rules/stored-filters.ts";
import { type FlagDefinition, groupsOf, redactedPayload, variantsOf } from "../rules/types.ts";

/** Membership in a cohort that is never sent: every SDK asks the server then. */
export const leftToTheServer: JsonObject = { key: "id", type: "cohort", operator: "in", value: 0 };
/** How a filter compares that does not say it. */
const defaultOperator = "exact";

/** The stored filters of a flag, in the types that SDKs have for them. */
export function readableFilters(flag: FlagDefinition): JsonObject {
  const { early_exit: earlyExit, multivariate, payloads, ...others } = withGroups(flag.filters);
  const filters: JsonObject = {
    ...withReadableGroupType(others),
    groups: groupsOf(others).map(readableGroup),
  };
  if (typeof earlyExit === "boolean") filters.early_exit = earlyExit;
  if (multivariate !== undefined) filters.multivariate = readableVariants(multivariate);
  if (isJsonObject(payloads)) filters.payloads = readablePayloads(payloads, flag);
  for (const list of ["super_groups", "holdout_groups"] as const) {
    if (Array.isArray(filters[list])) filters[list] = groupsOf({ groups: filters[list] }).map(readableGroup);
  }
  return filters;
}

function readableGroup(group: JsonObject): JsonObject {
  const { rollout_percentage: percentage, variant, properties, ...others } = group;
  const readable: JsonObject = {
    ...withReadableGroupType(others),
    properties: readableProperties(properties),
  };
  if (percentage !== undefined)
    readable.rollout_percentage = percentage === null ? null : shareOf(percentage);
  if (typeof variant === "string" || variant === null) readable.variant = variant;
  return readable;
}

/** What is no number of a group type stands for persons. */
function withReadableGroupType(filters: JsonObject): JsonObject {
  const { aggregation_group_type_index: index } = filters;
  const isReadable = index === undefined || Number.isInteger(index);
  return isReadable ? filters : { ...filters, aggregation_group_type_index: null };
}

/** Filters that can be none match nobody: to drop them would let more people in. */
function readableProperties(properties: Json | undefined): Json[] {
  if (properties === undefined || properties === null) return [];
  if (!Array.isArray(properties)) return [leftToTheServer];
  return properties.map((property) => {
    if (!isJsonObject(property) || !isReadable(property)) return leftToTheServer;
    const { negation, ...others } = readableProperty(property);
    // In conditions it means something for cohorts only; not every SDK knows that.
    return property.type === "cohort" && negation !== undefined ? { ...others, negation } : others;
  });
}

const knownTypes = new Set<Json | undefined>([undefined, null, "person", "group", "cohort", "flag"]);

/** Whether every SDK can read a filter: posthog-dotnet loses all definitions to a fraction or an object to compare with. */
export function isReadable(property: JsonObject): boolean {
  const { key, type, value } = property;
  const hasKey = typeof key === "string" || typeof key === "number";
  return (
    hasKey &&
    !isMisfit(property) &&
    knownTypes.has(type) &&
    (Array.isArray(value) ? value.every(isScalar) : isPlain(value))
  );
}

/** Whether the operator takes no such value: it matches nothing here, and SDKs might read it in other ways. */
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
 * One property filter: every member that SDKs have a type for is of that type or not there; a value is, and, where
 * something is compared, an operator.
 */
export function readableProperty(property: JsonObject): JsonObject {
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

/** Without a list of variants this is a flag that is on or off. */
function readableVariants(multivariate: Json): JsonObject | null {
  if (!isJsonObject(multivariate) || !Array.isArray(multivariate.variants)) return null;
  const variants = variantsOf({ multivariate }).filter(({ key }) => typeof key === "string");
  return {
    ...multivariate,
    variants: variants.map(({ name, ...variant }) => ({
      ...variant,
      ...(typeof name === "string" || name === null ? { name } : {}),
      rollout_percentage: shareOf(variant.rollout_percentage),
    })),
  };
}

/** A percentage that is none is nobody's share. */
function shareOf(percentage: Json | undefined): number {
  const share = numberOf(percentage);
  return share !== undefined && Number.isFinite(share) ? share : 0;
}

function readablePayloads(payloads: JsonObject, { hasEncryptedPayloads }: FlagDefinition): JsonObject {
  const texts = Object.entries(payloads).map(([key, payload]) => [
    key,
    hasEncryptedPayloads ? redactedPayload : payloadText(payload),
  ]);
  return Object.fromEntries(texts);
}
