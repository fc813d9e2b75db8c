/**
 * Flags of Unleash: exports of an environment (`{"features", "featureStrategies", "featureEnvironments", …}`) and what its
 * clients read (`{"version", "features": [{"strategies"}], "segments"}`).
 *
 * Strategies are a choice: whoever is in one of them has the flag. Pure.
 */

import type { Json, JsonObject } from "../../../lib/json.ts";
import { compared, dated, type Expression, hasText, isOneOf, not, test, unknown } from "./expression.ts";
import type { FlagItems, ForeignFlag, ForeignRule, Outcome } from "./foreign-flag.ts";
import { always, otherwise, rounded } from "./foreign-flag.ts";
import { asText, chosenEnvironment, list, name, number, object, objects, text } from "./values.ts";

/** Whether a file is Unleash's. */
export function isUnleash(root: JsonObject): boolean {
  if (Array.isArray(root.featureStrategies) && Array.isArray(root.features)) return true;
  return objects(root.features).some(({ strategies }) => Array.isArray(strategies));
}

export function readUnleash(root: JsonObject, items: FlagItems, environment?: string): string | undefined {
  const segments = new Map(objects(root.segments).map((segment) => [name(segment.id) ?? "", segment]));
  const isExport = Array.isArray(root.featureStrategies);
  const states = objects(root.featureEnvironments);
  const chosen = isExport
    ? chosenEnvironment(
        states.flatMap((state) => text(state.environment) ?? []),
        environment,
      )
    : undefined;
  for (const feature of objects(root.features)) {
    const key = asText(feature.name);
    if (feature.archived === true) {
      items.note(items.keyOf(key), "the flag", "is archived");
      continue;
    }
    const of = (member: string) => (each: JsonObject) => each[member] === key;
    const state = isExport
      ? (states.find((each) => each.environment === chosen && (each.featureName ?? each.name) === key) ?? {})
      : feature;
    const strategies = isExport
      ? objects(root.featureStrategies).filter(of("featureName"))
      : objects(feature.strategies);
    const tags = objects(root.featureTags)
      .filter(of("featureName"))
      .flatMap(({ tagValue, value }) => text(tagValue) ?? text(value) ?? []);
    const needed = objects(root.dependencies)
      .filter((each) => each.feature === key || each.child === key)
      .concat(objects(feature.dependencies));
    items.add(readFeature({ feature, state, strategies, tags, needed, segments }));
  }
  return chosen;
}

interface Feature {
  feature: JsonObject;
  state: JsonObject;
  strategies: readonly JsonObject[];
  tags: readonly string[];
  needed: readonly JsonObject[];
  segments: ReadonlyMap<string, JsonObject>;
}

function readFeature({ feature, state, strategies, tags, needed, segments }: Feature): ForeignFlag {
  const notMapped: { part: string; reason: string }[] = [];
  const ownVariants = [
    ...strategies.flatMap(({ variants }) => objects(variants)),
    ...objects(state.variants),
  ];
  const variants = uniqueVariants(ownVariants);
  const prerequisites = needed.map(dependency);
  const guard: ForeignRule[] =
    prerequisites.length === 0
      ? []
      : [{ name: "parent flags", when: not({ all: prerequisites }), outcome: [], rest: "off" }];
  const enabled = strategies.filter(({ disabled }) => disabled !== true);
  if (strategies.length > 0 && enabled.length === 0)
    notMapped.push({ part: "strategies", reason: "all are disabled, so that the flag is on for no one" });
  const rules = enabled.map((strategy, index): ForeignRule => {
    const given = objects(strategy.variants);
    const shares = weighted(given.length > 0 ? given : objects(state.variants));
    const part = `strategy ${index + 1} (${asText(strategy.name)})`;
    const { when, percent } = readStrategy(strategy, segments, (reason) => notMapped.push({ part, reason }));
    return {
      name: part,
      when,
      outcome: shares.map((share) => ({ ...share, percent: rounded((share.percent * percent) / 100) })),
      rest: "next rule",
    };
  });
  // A feature without strategies is on for everyone.
  if (strategies.length === 0) rules.push(otherwise(weighted(objects(state.variants))));
  return {
    key: asText(feature.name),
    name: text(feature.description),
    active: (state.enabled ?? feature.enabled) === true,
    tags,
    variants,
    rules: [...guard, ...overrides(objects(state.variants)), ...rules],
    notMapped,
  };
}

function dependency(each: JsonObject): Expression {
  const flag = text(each.parent) ?? text(each.feature) ?? "";
  const [variant] = list(each.variants);
  if (each.enabled === false) return { flag, value: false };
  return { flag, value: text(variant) ?? true };
}

function uniqueVariants(all: readonly JsonObject[]): { key: string; payload?: Json }[] {
  const byKey = new Map<string, { key: string; payload?: Json }>();
  for (const variant of all) {
    const key = asText(variant.name);
    if (byKey.has(key)) continue;
    const payload = payloadOf(object(variant.payload));
    byKey.set(key, payload === undefined ? { key } : { key, payload });
  }
  return [...byKey.values()];
}

/** Payloads are texts with a type beside them. */
function payloadOf({ type, value }: JsonObject): Json | undefined {
  if (typeof value !== "string") return value as Json | undefined;
  if (type !== "json" && type !== "number") return value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
}

/** Weights are of a thousand. */
function weighted(variants: readonly JsonObject[]): Outcome {
  if (variants.length === 0) return always(true);
  return variants.map((variant) => ({
    variant: asText(variant.name),
    percent: rounded((number(variant.weight) ?? 0) / 10),
  }));
}

function overrides(variants: readonly JsonObject[]): ForeignRule[] {
  return variants.flatMap((variant) =>
    objects(variant.overrides).map(
      (override): ForeignRule => ({
        name: `override of variant ${asText(variant.name)}`,
        when: isOneOf(property(text(override.contextName) ?? ""), list(override.values)),
        outcome: always(asText(variant.name)),
        rest: "off",
      }),
    ),
  );
}

function readStrategy(
  strategy: JsonObject,
  segments: ReadonlyMap<string, JsonObject>,
  note: (reason: string) => void,
): { when: Expression; percent: number } {
  const parameters = object(strategy.parameters);
  const parts: Expression[] = objects(strategy.constraints).map(readConstraint);
  for (const id of list(strategy.segments)) {
    const segment = segments.get(name(id) ?? "");
    parts.push(
      segment === undefined
        ? unknown(`the segment ${JSON.stringify(id)} is not in the file`)
        : { all: objects(segment.constraints).map(readConstraint) },
    );
  }
  let percent = 100;
  const items = (value: Json | undefined) => (text(value) ?? "").split(",").map((item) => item.trim());
  switch (strategy.name) {
    case "default":
      break;
    case "flexibleRollout":
      percent = number(parameters.rollout) ?? 100;
      if (!["default", "userId", undefined].includes(text(parameters.stickiness))) {
        note(`shared out by ${asText(parameters.stickiness)}, here by distinct id`);
      }
      break;
    case "gradualRolloutUserId":
    case "gradualRolloutSessionId":
    case "gradualRolloutRandom":
      percent = number(parameters.percentage) ?? 100;
      if (strategy.name !== "gradualRolloutUserId") note("shared out by chance, here by distinct id");
      break;
    case "userWithId":
      parts.push(isOneOf("distinct_id", items(parameters.userIds).filter(Boolean)));
      break;
    default:
      parts.push(unknown(`the strategy ${asText(strategy.name)} has no counterpart`));
  }
  return { when: { all: parts }, percent };
}

const property = (contextName: string): string => (contextName === "userId" ? "distinct_id" : contextName);

function readConstraint(constraint: JsonObject): Expression {
  const said = readOperator(constraint);
  return constraint.inverted === true ? not(said) : said;
}

function readOperator({
  contextName,
  operator,
  values: given,
  value,
  caseInsensitive,
}: JsonObject): Expression {
  const context = text(contextName) ?? "";
  if (context === "currentTime") return unknown("it is about the present time");
  if (context === "environment") return unknown("it is about the environment");
  const key = property(context);
  const values = list(given);
  const ignoresCase = caseInsensitive === true;
  const single = (value ?? values[0] ?? "") as Json;
  switch (operator) {
    case "IN":
      return isOneOf(key, values);
    case "NOT_IN":
      return not(isOneOf(key, values));
    case "STR_STARTS_WITH":
      return hasText(key, "start", values, ignoresCase);
    case "STR_ENDS_WITH":
      return hasText(key, "end", values, ignoresCase);
    case "STR_CONTAINS":
      return hasText(key, "anywhere", values, ignoresCase);
    case "REGEX":
      return test(key, "regex", asText(single));
    case "NUM_EQ":
      return { all: [compared(key, "gte", single), compared(key, "lte", single)] };
    case "NUM_GT":
      return compared(key, "gt", single);
    case "NUM_GTE":
      return compared(key, "gte", single);
    case "NUM_LT":
      return compared(key, "lt", single);
    case "NUM_LTE":
      return compared(key, "lte", single);
    case "DATE_AFTER":
      return dated(key, "is_date_after", single);
    case "DATE_BEFORE":
      return dated(key, "is_date_before", single);
    case "SEMVER_EQ":
      return test(key, "semver_eq", asText(single));
    case "SEMVER_GT":
      return test(key, "semver_gt", asText(single));
    case "SEMVER_LT":
      return test(key, "semver_lt", asText(single));
    default:
      return unknown(`the operator ${JSON.stringify(operator)} has no counterpart`);
  }
}
