/**
 * Flags of GrowthBook: what its SDKs read (`{"features": {KEY: {"defaultValue", "rules"}}}`) and answers of its API
 * (`GET /api/v1/features`). Whoever is not in the coverage of a rule goes on to the next one. Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import { compared, type Expression, hasText, isOneOf, not, test, unknown } from "./expression.ts";
import {
  always,
  type FlagItems,
  type ForeignFlag,
  type ForeignRule,
  type Outcome,
  otherwise,
  rounded,
  variantsOfValues,
} from "./foreign-flag.ts";
import { asText, chosenEnvironment, entries, list, number, object, objects, text } from "./values.ts";

/** Whether a file is GrowthBook's. */
export function isGrowthBook(root: JsonObject): boolean {
  const ofSdk = entries(root.features);
  if (ofSdk.length > 0) return ofSdk.some(([, feature]) => "defaultValue" in feature);
  return objects(root.features).some((each) => "valueType" in each && "environments" in each);
}

export function readGrowthBook(root: JsonObject, items: FlagItems, environment?: string): string | undefined {
  const saved = object(root.savedGroups);
  const ofSdk = entries(root.features);
  if (ofSdk.length > 0) {
    for (const [key, feature] of items.flagsIn(root.features))
      items.add(readFeature(key, feature, feature, saved, true));
    return undefined;
  }
  const features = objects(root.features);
  const chosen = chosenEnvironment(
    features.flatMap(({ environments }) => Object.keys(object(environments))),
    environment,
  );
  for (const feature of features) {
    const key = asText(feature.id);
    const state = object(object(feature.environments)[chosen ?? ""]);
    if (feature.archived === true) items.note(items.keyOf(key), "the flag", "is archived");
    else items.add(readFeature(key, feature, state, saved, state.enabled === true));
  }
  return chosen;
}

function readFeature(
  key: string,
  feature: JsonObject,
  state: JsonObject,
  saved: JsonObject,
  active: boolean,
): ForeignFlag {
  const type = text(feature.valueType);
  const typedValue = (value: Json | undefined): Json => typed(value ?? null, type);
  const fallback = typedValue((state.defaultValue ?? feature.defaultValue) as Json | undefined);
  const rules = objects(state.rules).filter(({ enabled }) => enabled !== false);
  const values = [fallback, ...rules.flatMap((rule) => valuesOf(rule).map(typedValue))];
  const isBoolean = values.every((value) => typeof value === "boolean");
  const known = new Map<string, Json>(values.map((value) => [JSON.stringify(value), value]));
  const variants = isBoolean ? [] : variantsOfValues([...known.values()].map((value) => ({ value })));
  const keys = new Map([...known.keys()].map((written, index) => [written, variants[index]?.key ?? ""]));
  const outcomeOf = (value: Json | undefined): string | boolean =>
    isBoolean ? typedValue(value) === true : keys.get(JSON.stringify(typedValue(value)))!;
  const notMapped: { part: string; reason: string }[] = [];
  return {
    key,
    name: text(feature.description),
    active,
    tags: list(feature.tags).flatMap((tag) => text(tag) ?? []),
    variants,
    rules: [
      ...rules.map((rule, index) => readRule(rule, index, { outcomeOf, saved, notMapped })),
      otherwise(always(outcomeOf((state.defaultValue ?? feature.defaultValue) as Json | undefined))),
    ],
    notMapped,
  };
}

/** The API writes values as text, with the type beside them. */
function typed(value: Json, type: string | undefined): Json {
  if (typeof value !== "string" || type === undefined || type === "string") return value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
}

function valuesOf(rule: JsonObject): Json[] {
  if (Array.isArray(rule.variations)) {
    return rule.variations.map((each) =>
      isJsonObject(each) && "value" in each ? (each.value as Json) : each,
    );
  }
  if ("force" in rule) return [rule.force as Json];
  return "value" in rule ? [rule.value as Json] : [];
}

interface RuleContext {
  outcomeOf: (value: Json | undefined) => string | boolean;
  saved: JsonObject;
  notMapped: { part: string; reason: string }[];
}

function readRule(
  rule: JsonObject,
  index: number,
  { outcomeOf, saved, notMapped }: RuleContext,
): ForeignRule {
  const label = text(rule.description) ?? text(rule.id) ?? text(rule.key);
  const part = `rule ${index + 1}${label === undefined ? "" : ` (${label})`}`;
  const values = valuesOf(rule);
  const coverage = number(rule.coverage) ?? 1;
  const attribute = text(rule.hashAttribute);
  const isShared = coverage < 1 || values.length > 1;
  if (isShared && attribute !== undefined && !["id", "userId", "user_id"].includes(attribute)) {
    notMapped.push({ part, reason: `shared out by ${attribute}, here by distinct id` });
  }
  if (rule.namespace !== undefined) notMapped.push({ part, reason: "its namespace is left out" });
  const weights = list(rule.weights).map((weight) => number(weight) ?? 0);
  const ofVariations = objects(rule.variations).map(({ weight }) => number(weight));
  const outcome: Outcome = values.map((value, place) => ({
    variant: outcomeOf(value),
    percent: rounded(100 * coverage * (weights[place] ?? ofVariations[place] ?? 1 / values.length)),
  }));
  const when: Expression = { all: [...conditionsOf(rule, saved), ...unreadable(rule, values)] };
  return { name: part, when, outcome, rest: "next rule" };
}

function unreadable(rule: JsonObject, values: readonly Json[]): Expression[] {
  const type = text(rule.type);
  if (values.length > 0 && type !== "experiment-ref") return [];
  return [unknown(`a rule of the kind ${type ?? "without a value"} says no values in this file`)];
}

function conditionsOf(rule: JsonObject, saved: JsonObject): Expression[] {
  const conditions: Expression[] = [];
  const written = rule.condition;
  if (typeof written === "string" && written.trim() !== "") {
    try {
      conditions.push(readCondition(JSON.parse(written) as Json, saved));
    } catch {
      conditions.push(unknown("its condition is no JSON"));
    }
  } else if (isJsonObject(written)) conditions.push(readCondition(written, saved));
  for (const parent of [...objects(rule.parentConditions), ...objects(rule.prerequisites)]) {
    conditions.push(readParent(parent));
  }
  for (const targeting of objects(rule.savedGroupTargeting)) {
    conditions.push(unknown(`saved groups (${JSON.stringify(targeting)}) are not in this file`));
  }
  return conditions;
}

function readParent({ id, condition }: JsonObject): Expression {
  const wanted = object(typeof condition === "string" ? (JSON.parse(condition) as Json) : condition).value;
  const value = isJsonObject(wanted) ? (wanted.$eq as Json) : wanted;
  if (typeof value === "boolean" || typeof value === "string") return { flag: asText(id), value };
  return unknown(`what it needs of flag ${asText(id)} cannot be said`);
}

/** A condition in the query language of MongoDB. */
function readCondition(condition: Json, saved: JsonObject): Expression {
  return {
    all: Object.entries(object(condition)).map(([key, wanted]): Expression => {
      const parts = () => list(wanted as Json).map((part) => readCondition(part, saved));
      if (key === "$and") return { all: parts() };
      if (key === "$or") return { any: parts() };
      if (key === "$nor") return not({ any: parts() });
      if (key === "$not") return not(readCondition(wanted as Json, saved));
      const property = ["id", "userId", "user_id"].includes(key) ? "distinct_id" : key;
      if (!isJsonObject(wanted)) return isOneOf(property, [wanted as Json]);
      return {
        all: Object.entries(wanted).map(([operator, value]) =>
          readOperator(property, operator, value as Json, saved),
        ),
      };
    }),
  };
}

const comparisons: Readonly<Record<string, string>> = { $gt: "gt", $gte: "gte", $lt: "lt", $lte: "lte" };
const versions: Readonly<Record<string, string>> = {
  ...{ $veq: "semver_eq", $vne: "semver_neq", $vgt: "semver_gt", $vgte: "semver_gte" },
  ...{ $vlt: "semver_lt", $vlte: "semver_lte" },
};

function readOperator(property: string, operator: string, value: Json, saved: JsonObject): Expression {
  const comparison = comparisons[operator];
  if (comparison !== undefined) return compared(property, comparison, value);
  const version = versions[operator];
  if (version !== undefined) return test(property, version, asText(value));
  switch (operator) {
    case "$eq":
      return isOneOf(property, [value]);
    case "$ne":
      return not(isOneOf(property, [value]));
    case "$in":
      return isOneOf(property, list(value));
    case "$nin":
      return not(isOneOf(property, list(value)));
    case "$inGroup":
    case "$notInGroup": {
      const group = saved[asText(value)];
      if (!Array.isArray(group)) return unknown(`the saved group ${asText(value)} is not in this file`);
      const isIn = isOneOf(property, group);
      return operator === "$inGroup" ? isIn : not(isIn);
    }
    case "$exists":
      return test(property, value === false ? "is_not_set" : "is_set");
    case "$regex":
      return test(property, "regex", asText(value));
    case "$startsWith":
      return hasText(property, "start", [value]);
    case "$not":
      return not({
        all: Object.entries(object(value)).map(([inner, wanted]) =>
          readOperator(property, inner, wanted as Json, saved),
        ),
      });
    default:
      return unknown(`the operator ${operator} has no counterpart`);
  }
}
