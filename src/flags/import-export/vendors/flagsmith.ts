/**
 * Flags of Flagsmith: feature exports (`[{"name", "initial_value", "enabled", "multivariate"}]`) and environment documents
 * (`{"feature_states", "project": {"segments"}, "identity_overrides"}`), which its SDKs evaluate. Pure.
 */

import { parseExactJson } from "../../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import {
  compared,
  type Expression,
  hasContent,
  isOneOf,
  matchesNone,
  matching,
  not,
  notOfPresent,
  readEach,
  test,
  unknown,
  versioned,
} from "./expression.ts";
import type { FlagItems } from "./flag-items.ts";
import {
  checkedObjects,
  checkedPercent,
  list,
  name,
  number,
  object,
  objects,
  stringify,
  text,
} from "./values.ts";
import {
  otherwise,
  type Rollout,
  rounded,
  type VendorFlag,
  type VendorRule,
  variantsOfValues,
} from "./vendor-flag.ts";

/** Whether a file is Flagsmith's. */
export function isFlagsmith(root: Json): boolean {
  if (isJsonObject(root)) return Array.isArray(root.feature_states);
  return objects(root).some((each) => "default_enabled" in each && "initial_value" in each);
}

export function readFlagsmith(root: Json, items: FlagItems): void {
  if (!isJsonObject(root)) {
    items.addList(
      root,
      ({ name: key }) => key,
      (key, feature) => readFeature(key, feature, [], feature.is_server_key_only === true),
    );
    return;
  }
  const segments = list(object(root.project).segments ?? root.segments);
  const identities = list(root.identity_overrides);
  items.addList(
    root.feature_states,
    (state) => object(state.feature).name,
    (key, state) => {
      const overrides = [...identityOverrides(identities, key), ...segmentOverrides(segments, key)];
      return readFeature(key, state, overrides, object(state.feature).is_server_key_only === true);
    },
  );
}

/** Result for a user: on or off, and the value. */
interface State {
  enabled: boolean;
  value: Json;
  /** Other values and their percentages; the rest gets `value`. */
  shares: { value: Json; percent: number }[];
  problems: string[];
}

interface Override {
  name: string;
  when: Expression;
  state: State;
}

function getState(state: JsonObject): State {
  const problems: string[] = [];
  const report = (reason: string) => void problems.push(reason);
  const shares = ["multivariate_feature_state_values", "multivariate"].flatMap((member) =>
    checkedObjects(state[member], member, report),
  );
  if (typeof state.enabled !== "boolean")
    report(`enabled: ${stringify(state.enabled ?? null)} is not a boolean`);
  const read = shares.map((share) => ({
    value: (object(share.multivariate_feature_option).value ?? share.value ?? null) as Json,
    percent: checkedPercent(share.percentage_allocation, "percentage_allocation", report),
  }));
  if (read.reduce((sum, { percent }) => sum + percent, 0) > 100.001)
    report("the percentages of its values add up to more than 100");
  return {
    enabled: state.enabled === true,
    value: (state.feature_state_value ?? state.value ?? null) as Json,
    shares: read,
    problems,
  };
}

function readFeature(
  key: string,
  source: JsonObject,
  overrides: readonly Override[],
  isServerOnly: boolean,
): VendorFlag {
  const state = getState(source);
  const problems = [...overrides, { name: "the default rule", state }].flatMap((each) =>
    each.state.problems.map((reason) => ({ part: each.name, reason })),
  );
  const states = [...overrides.map((override) => override.state), state].filter(({ enabled }) => enabled);
  const values = new Map<string, Json>();
  for (const { value, shares } of states) {
    for (const each of [value, ...shares.map((share) => share.value)]) values.set(JSON.stringify(each), each);
  }
  // One value or none is a payload; values become variants only if users get different ones.
  const isVaried = values.size > 1;
  const variants = isVaried ? variantsOfValues([...values.values()].map((value) => ({ value }))) : [];
  const keys = new Map([...values.keys()].map((written, index) => [written, variants[index]?.key]));
  const getRollout = ({ enabled, value, shares }: State): Rollout => {
    if (!enabled) return [];
    if (!isVaried) return [{ variant: true, percent: 100 }];
    const sent = shares.reduce((sum, { percent }) => sum + percent, 0);
    return [...shares, { value, percent: rounded(Math.max(0, 100 - sent)) }].map((share) => ({
      variant: keys.get(JSON.stringify(share.value))!,
      percent: share.percent,
    }));
  };
  const [only] = values.values();
  return {
    key,
    // A flag that is on only for some users is active here, with rules for them.
    active: state.enabled || overrides.some((override) => override.state.enabled),
    runtime: isServerOnly ? "server" : "all",
    variants,
    ...(isVaried || only === undefined || only === null ? {} : { payload: only }),
    rules: [
      ...overrides.map(
        (override): VendorRule => ({
          name: override.name,
          when: override.when,
          rest: "off",
          rollout: getRollout(override.state),
        }),
      ),
      otherwise(getRollout(state)),
    ],
    obstacles: problems,
  };
}

/** The overrides of one feature in the members of a list. */
function getStates(owner: JsonObject, member: string, key: string): JsonObject[] {
  return objects(owner[member]).filter(({ feature }) => object(feature).name === key);
}

function identityOverrides(identities: readonly Json[], key: string): Override[] {
  return identities.filter(isJsonObject).flatMap((identity) =>
    getStates(identity, "identity_features", key).map((state) => ({
      name: `the override of ${stringify(identity.identifier ?? null)}`,
      when: isOneOf("distinct_id", [(identity.identifier ?? null) as Json]),
      state: getState(state),
    })),
  );
}

function segmentOverrides(segments: readonly Json[], key: string): Override[] {
  return segments
    .filter(isJsonObject)
    .flatMap((segment) =>
      getStates(segment, "feature_states", key).map((state) => ({
        // Those without a priority come last.
        priority: number(object(state.feature_segment).priority ?? state.priority) ?? Number.MAX_VALUE,
        segment,
        state: getState(state),
      })),
    )
    .sort((a, b) => a.priority - b.priority)
    .map(({ segment, state }, index) => ({
      name: `rule ${index + 1} (the override of segment ${name(segment.name) ?? "?"})`,
      when: readSegment(segment),
      state,
    }));
}

/** A segment without rules has no members. */
function readSegment(segment: JsonObject): Expression {
  const rules = readEach(segment.rules, "rules of the segment", readRule);
  return rules.length === 0 ? matchesNone : { all: rules };
}

/** The type joins the conditions of a rule, and also its nested rules; without any, each is true. */
function readRule(rule: JsonObject): Expression {
  const conditions = readEach(rule.conditions, "conditions", readCondition);
  const nested = readEach(rule.rules, "rules", readRule);
  const type = stringify(rule.type ?? null);
  if (!["ALL", "ANY", "NONE"].includes(type)) return unknown(`rules of the type ${type} are not supported`);
  const join = (parts: Expression[]): Expression => {
    if (parts.length === 0 || type === "ALL") return { all: parts };
    return type === "ANY" ? { any: parts } : not({ any: parts });
  };
  return { all: [join(conditions), join(nested)] };
}

const comparisons: Readonly<Record<string, string>> = {
  GREATER_THAN: "gt",
  GREATER_THAN_INCLUSIVE: "gte",
  LESS_THAN: "lt",
  LESS_THAN_INCLUSIVE: "lte",
};

function readCondition(condition: JsonObject): Expression {
  const property = toProperty(text(condition.property_) ?? text(condition.property) ?? "");
  const operator = stringify(condition.operator ?? null);
  if (operator === "PERCENTAGE_SPLIT") return unknown("it is a percentage of the users (PERCENTAGE_SPLIT)");
  if (typeof property !== "string") return property;
  const value = (condition.value ?? "") as Json;
  // Versions are marked by a suffix, with the same operators.
  if (typeof value === "string" && value.endsWith(":semver")) {
    const version = value.slice(0, -":semver".length);
    const comparison = comparisons[operator] ?? { EQUAL: "eq", NOT_EQUAL: "neq" }[operator];
    if (comparison !== undefined) return versioned(property, `semver_${comparison}`, version);
  }
  const comparison = comparisons[operator];
  if (comparison !== undefined) return compared(property, comparison, value);
  switch (operator) {
    case "EQUAL":
      return isOneOf(property, [value]);
    case "NOT_EQUAL":
      return notOfPresent(property, isOneOf(property, [value]));
    case "CONTAINS":
      return hasContent(property, "anywhere", [value]);
    case "NOT_CONTAINS":
      return notOfPresent(property, hasContent(property, "anywhere", [value]));
    case "REGEX":
      return matching(property, value);
    case "IS_SET":
      return test(property, "is_set");
    case "IS_NOT_SET":
      return test(property, "is_not_set");
    case "IN":
      return isOneOf(property, listed(value));
    default:
      return unknown(`the operator ${operator} has no counterpart`);
  }
}

/** Traits, and the identifier of the identity, have a counterpart here. */
function toProperty(written: string): string | Expression {
  if (!written.startsWith("$.")) return written;
  if (written === "$.identity.identifier") return "distinct_id";
  const trait = /^\$\.identity\.traits(?:\.(.+)|\['(.+)'\])$/.exec(written);
  return trait?.[1] ?? trait?.[2] ?? unknown(`it uses ${written}`);
}

/** A list, its JSON, or values separated by commas. */
function listed(value: Json): readonly Json[] {
  if (Array.isArray(value)) return value;
  const written = stringify(value);
  try {
    const parsed = parseExactJson(written) as Json;
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // Not JSON.
  }
  return written.split(",");
}
