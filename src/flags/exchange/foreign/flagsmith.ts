/**
 * Flags of Flagsmith: feature exports (`[{"name", "initial_value", "enabled", "multivariate"}]`) and environment documents
 * (`{"feature_states", "project": {"segments"}, "identity_overrides"}`), which its SDKs evaluate. Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import {
  compared,
  type Expression,
  hasText,
  isOneOf,
  not,
  notOfPresent,
  test,
  unknown,
} from "./expression.ts";
import {
  type FlagItems,
  type ForeignFlag,
  type ForeignRule,
  type Outcome,
  otherwise,
  rounded,
  variantsOfValues,
} from "./foreign-flag.ts";
import { asText, list, name, number, object, objects, text } from "./values.ts";

/** Whether a file is Flagsmith's. */
export function isFlagsmith(root: Json): boolean {
  if (isJsonObject(root)) return Array.isArray(root.feature_states);
  const [first] = objects(root);
  return first !== undefined && "default_enabled" in first && "initial_value" in first;
}

export function readFlagsmith(root: Json, items: FlagItems): void {
  if (!isJsonObject(root)) {
    for (const feature of objects(root)) {
      items.add(readFeature(asText(feature.name), stateOf(feature), [], feature.is_server_key_only === true));
    }
    return;
  }
  const segments = objects(object(root.project).segments);
  const identities = objects(root.identity_overrides);
  for (const state of objects(root.feature_states)) {
    const feature = object(state.feature);
    const key = asText(feature.name);
    const overrides = [...identityOverrides(identities, key), ...segmentOverrides(segments, key)];
    items.add(readFeature(key, stateOf(state), overrides, feature.is_server_key_only === true));
  }
}

/** What somebody gets: whether it is on, and which value. */
interface State {
  enabled: boolean;
  value: Json;
  /** Other values and their shares; the rest gets `value`. */
  shares: { value: Json; percent: number }[];
}

interface Override {
  name: string;
  when: Expression;
  state: State;
}

function stateOf(state: JsonObject): State {
  const shares = [...objects(state.multivariate_feature_state_values), ...objects(state.multivariate)];
  return {
    enabled: state.enabled === true,
    value: (state.feature_state_value ?? state.value ?? null) as Json,
    shares: shares.map((share) => ({
      value: (object(share.multivariate_feature_option).value ?? share.value ?? null) as Json,
      percent: number(share.percentage_allocation) ?? 0,
    })),
  };
}

function readFeature(
  key: string,
  state: State,
  overrides: readonly Override[],
  isServerOnly: boolean,
): ForeignFlag {
  const states = [...overrides.map((override) => override.state), state].filter(({ enabled }) => enabled);
  const values = new Map<string, Json>();
  for (const { value, shares } of states) {
    for (const each of [value, ...shares.map((share) => share.value)]) values.set(JSON.stringify(each), each);
  }
  // One value, or none, is a payload; only where people get different ones are they variants.
  const isVaried = values.size > 1;
  const variants = isVaried ? variantsOfValues([...values.values()].map((value) => ({ value }))) : [];
  const keys = new Map([...values.keys()].map((written, index) => [written, variants[index]?.key]));
  const outcomeOf = ({ enabled, value, shares }: State): Outcome => {
    if (!enabled) return [];
    if (!isVaried) return [{ variant: true, percent: 100 }];
    const given = shares.reduce((sum, { percent }) => sum + percent, 0);
    return [...shares, { value, percent: rounded(Math.max(0, 100 - given)) }].map((share) => ({
      variant: keys.get(JSON.stringify(share.value))!,
      percent: share.percent,
    }));
  };
  const [only] = values.values();
  return {
    key,
    // A flag that is off for everybody but some is on here, with rules for those.
    active: state.enabled || overrides.some((override) => override.state.enabled),
    runtime: isServerOnly ? "server" : "all",
    variants,
    ...(isVaried || only === undefined || only === null ? {} : { payload: only }),
    rules: [
      ...overrides.map(
        (override): ForeignRule => ({
          ...{ name: override.name, when: override.when, rest: "off" },
          outcome: outcomeOf(override.state),
        }),
      ),
      otherwise(outcomeOf(state)),
    ],
    notMapped: [],
  };
}

function identityOverrides(identities: readonly JsonObject[], key: string): Override[] {
  return identities.flatMap((identity) =>
    objects(identity.identity_features)
      .filter((state) => object(state.feature).name === key)
      .map((state) => ({
        name: `the override of ${asText(identity.identifier)}`,
        when: isOneOf("distinct_id", [asText(identity.identifier)]),
        state: stateOf(state),
      })),
  );
}

function segmentOverrides(segments: readonly JsonObject[], key: string): Override[] {
  return segments
    .flatMap((segment) =>
      objects(segment.feature_states)
        .filter((state) => object(state.feature).name === key)
        .map((state) => ({
          priority: number(object(state.feature_segment).priority) ?? 0,
          override: {
            name: `the override of segment ${name(segment.name) ?? "?"}`,
            when: { all: objects(segment.rules).map(readRule) },
            state: stateOf(state),
          },
        })),
    )
    .sort((a, b) => a.priority - b.priority)
    .map(({ override }) => override);
}

function readRule(rule: JsonObject): Expression {
  const parts = [...objects(rule.conditions).map(readCondition), ...objects(rule.rules).map(readRule)];
  if (rule.type === "ANY") return { any: parts };
  return rule.type === "NONE" ? not({ any: parts }) : { all: parts };
}

const comparisons: Readonly<Record<string, string>> = {
  ...{ GREATER_THAN: "gt", GREATER_THAN_INCLUSIVE: "gte", LESS_THAN: "lt", LESS_THAN_INCLUSIVE: "lte" },
};

function readCondition(condition: JsonObject): Expression {
  const property = text(condition.property_) ?? text(condition.property) ?? "";
  const value = (condition.value ?? "") as Json;
  const operator = asText(condition.operator);
  if (property.startsWith("$.")) return unknown(`it is about ${property}`);
  // Versions are marked by an ending, with the same operators.
  if (typeof value === "string" && value.endsWith(":semver")) {
    const version = value.slice(0, -":semver".length);
    const comparison = comparisons[operator] ?? { EQUAL: "eq", NOT_EQUAL: "neq" }[operator];
    if (comparison !== undefined) return test(property, `semver_${comparison}`, version);
  }
  const comparison = comparisons[operator];
  if (comparison !== undefined) return compared(property, comparison, value);
  switch (operator) {
    case "EQUAL":
      return isOneOf(property, [value]);
    case "NOT_EQUAL":
      return notOfPresent(property, isOneOf(property, [value]));
    case "CONTAINS":
      return hasText(property, "anywhere", [value]);
    case "NOT_CONTAINS":
      return notOfPresent(property, hasText(property, "anywhere", [value]));
    case "REGEX":
      return test(property, "regex", asText(value));
    case "IS_SET":
      return test(property, "is_set");
    case "IS_NOT_SET":
      return test(property, "is_not_set");
    case "IN":
      return isOneOf(property, Array.isArray(value) ? list(value) : asText(value).split(","));
    default:
      return unknown(`the operator ${operator} has no counterpart`);
  }
}
