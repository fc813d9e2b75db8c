/**
 * Flags of Unleash: exports of an environment (`{"features", "featureStrategies", "featureEnvironments", …}`), older
 * exports of all environments, features of its API, and data of its clients (`{"version", "features": [{"strategies"}],
 * "segments"}`).
 *
 * Strategies are joined by OR. Pure.
 */

import { parseExactJson } from "../../../lib/json/exact.ts";
import type { Json, JsonObject } from "../../../lib/json/value.ts";
import {
  compared,
  type Expression,
  equalsNumber,
  hasContent,
  isOneOf,
  matchesNone,
  matching,
  not,
  readEach,
  unknown,
  versioned,
  withValues,
} from "./expression.ts";
import type { FlagItems } from "./flag-items.ts";
import {
  checkedList,
  checkedObject,
  checkedObjects,
  chosenEnvironment,
  list,
  name,
  number,
  object,
  objects,
  type Report,
  stringify,
  text,
} from "./values.ts";
import { always, type Part, type Rollout, rounded, type VendorFlag, type VendorRule } from "./vendor-flag.ts";

/** The property of a field of the context. */
export const toProperty = (contextName: string): string =>
  contextName === "userId" ? "distinct_id" : contextName;

/** Reads a constraint; the opposite of one is true for users without the field. */
export function readConstraint(constraint: JsonObject): Expression {
  const message = readOperator(constraint);
  return constraint.inverted === true ? not(message) : message;
}

function readOperator(constraint: JsonObject): Expression {
  const context = text(constraint.contextName) ?? "";
  const operator = stringify(constraint.operator ?? null);
  // Whatever the field, dates are compared with the current time.
  if (context === "currentTime" || operator.startsWith("DATE_")) return unknown("it uses the current time");
  if (context === "environment") return unknown("it uses the environment");
  // Empty values are ignored.
  return withValues(constraint.values, (sent) =>
    compareField(toProperty(context), operator, {
      values: sent.filter((value) => value !== "" && value !== null).map(trimmed),
      single: trimmed((constraint.value ?? sent[0] ?? "") as Json),
      ignoresCase: constraint.caseInsensitive === true,
    }),
  );
}

const trimmed = (value: Json): Json => (typeof value === "string" ? value.trim() : value);

interface Wanted {
  values: readonly Json[];
  single: Json;
  ignoresCase: boolean;
}

function compareField(key: string, operator: string, { values, single, ignoresCase }: Wanted): Expression {
  switch (operator) {
    case "IN":
      return isOneOf(key, values);
    case "NOT_IN":
      return not(isOneOf(key, values));
    case "STR_STARTS_WITH":
      return hasContent(key, "start", values, ignoresCase);
    case "STR_ENDS_WITH":
      return hasContent(key, "end", values, ignoresCase);
    case "STR_CONTAINS":
      return hasContent(key, "anywhere", values, ignoresCase);
    case "REGEX":
      return matching(key, ignoresCase && typeof single === "string" ? `(?i)${single}` : single);
    case "NUM_EQ":
      return equalsNumber(key, single);
    case "NUM_GT":
      return compared(key, "gt", single);
    case "NUM_GTE":
      return compared(key, "gte", single);
    case "NUM_LT":
      return compared(key, "lt", single);
    case "NUM_LTE":
      return compared(key, "lte", single);
    case "SEMVER_EQ":
      return versioned(key, "semver_eq", single);
    case "SEMVER_GT":
      return versioned(key, "semver_gt", single);
    case "SEMVER_GTE":
      return versioned(key, "semver_gte", single);
    case "SEMVER_LT":
      return versioned(key, "semver_lt", single);
    case "SEMVER_LTE":
      return versioned(key, "semver_lte", single);
    default:
      return unknown(`the operator ${operator} has no counterpart`);
  }
}

/** Whether a file is Unleash's. */
export function isUnleash(root: JsonObject): boolean {
  if (Array.isArray(root.featureStrategies) && Array.isArray(root.features)) return true;
  return objects(root.features).some(
    ({ strategies, environments }) =>
      Array.isArray(strategies) || objects(environments).some((each) => Array.isArray(each.strategies)),
  );
}

export function readUnleash(root: JsonObject, items: FlagItems, environment?: string): string | undefined {
  const file = new UnleashFile(root, environment);
  for (const feature of list(root.features)) {
    const { name: key, archived, archivedAt } = object(feature);
    if (archived === true || text(archivedAt) !== undefined)
      items.reportObstacle(stringify(key), "is archived");
    else items.add(key, feature, (own, source) => readFeature(own, source, file));
  }
  return file.environment;
}

class UnleashFile {
  readonly environment: string | undefined;
  readonly segments: ReadonlyMap<string, JsonObject>;
  private readonly states: readonly JsonObject[];
  private readonly isExport: boolean;

  constructor(
    private readonly root: JsonObject,
    environment: string | undefined,
  ) {
    this.isExport = Array.isArray(root.featureStrategies);
    this.states = objects(root.featureEnvironments);
    this.segments = new Map(objects(root.segments).map((segment) => [name(segment.id) ?? "", segment]));
    const ofFeatures = objects(root.features).flatMap(({ environments }) => objects(environments));
    this.environment = chosenEnvironment(
      this.isExport
        ? this.states.flatMap((state) => text(state.environment) ?? [])
        : ofFeatures.flatMap((each) => text(each.name) ?? []),
      environment,
    );
  }

  /** What differs between environments: on or off, variants. */
  state(key: string, feature: JsonObject): JsonObject {
    if (this.isExport) {
      const isOf = (each: JsonObject) =>
        each.environment === this.environment && (each.featureName ?? each.name) === key;
      return this.states.find(isOf) ?? {};
    }
    const inEnvironment = objects(feature.environments).find((each) => each.name === this.environment);
    return Array.isArray(feature.strategies) ? feature : (inEnvironment ?? {});
  }

  strategies(key: string, state: JsonObject, report: Report): JsonObject[] {
    if (!this.isExport) return checkedObjects(state.strategies, "strategies", report);
    const isOf = ({ featureName, environment }: JsonObject) =>
      featureName === key && (environment === undefined || environment === this.environment);
    return objects(this.root.featureStrategies)
      .filter(isOf)
      .toSorted((a, b) => (number(a.sortOrder) ?? 0) - (number(b.sortOrder) ?? 0));
  }

  /** The ids of a strategy's segments: its own, and those that an export lists separately. */
  getSegments(strategy: JsonObject, report: Report): Json[] {
    const listed = objects(this.root.featureStrategySegments).filter(
      ({ featureStrategyId }) => featureStrategyId !== undefined && featureStrategyId === strategy.id,
    );
    return [
      ...checkedList(strategy.segments, "segments", report),
      ...listed.map(({ segmentId }) => segmentId ?? null),
    ];
  }

  tags(key: string, feature: JsonObject): string[] {
    const separate = objects(this.root.featureTags).filter(({ featureName }) => featureName === key);
    return [...separate, ...objects(feature.tags)].flatMap(
      ({ tagValue, value }) => text(tagValue) ?? text(value) ?? [],
    );
  }

  /** The features that a feature depends on: of an export, in both of its forms, or of the feature itself. */
  dependencies(key: string, feature: JsonObject): Expression[] {
    const read = (each: JsonObject) => this.dependency(each);
    const separate = list(this.root.dependencies).filter((each) => {
      const { feature: child, child: other, featureName } = object(each);
      return (child ?? other ?? featureName) === key;
    });
    const inForms = objects(separate).flatMap((each) =>
      "dependencies" in each ? readEach(each.dependencies, "dependencies", read) : [read(each)],
    );
    return [...inForms, ...readEach(feature.dependencies, "dependencies", read)];
  }

  /** Some or all variants of a parent, or that it is on, or off. Parents have no parents themselves. */
  private dependency(each: JsonObject): Expression {
    const flag = text(each.parent) ?? text(each.feature);
    if (flag === undefined) return unknown("a dependency does not name its parent flag");
    if (this.hasParents(flag)) return unknown(`the parent flag ${flag} depends on another flag itself`);
    if (each.enabled === false) return { flag, value: false };
    const variants = each.variants ?? [];
    if (!Array.isArray(variants) || variants.some((variant) => text(variant) === undefined))
      return unknown(`the variants ${JSON.stringify(variants)} of the parent flag ${flag} are not names`);
    if (variants.length === 0) return { flag, value: true };
    return { any: variants.map((variant) => ({ flag, value: stringify(variant) })) };
  }

  private hasParents(key: string): boolean {
    const own = objects(this.root.features).find((feature) => feature.name === key);
    const separate = objects(this.root.dependencies);
    return (
      list(own?.dependencies).length > 0 ||
      separate.some((each) => (each.feature ?? each.child ?? each.featureName) === key)
    );
  }
}

function readFeature(key: string, feature: JsonObject, file: UnleashFile): VendorFlag {
  const obstacles: Part[] = [];
  const notes: Part[] = [];
  const report = (part: string) => (reason: string) => void obstacles.push({ part, reason });
  const state = file.state(key, feature);
  const ofState = checkedObjects(state.variants, "variants", report("variants"));
  const ofFeature =
    ofState.length > 0 ? ofState : checkedObjects(feature.variants, "variants", report("variants"));
  const strategies = file.strategies(key, state, report("strategies"));
  const needed = file.dependencies(key, feature);
  const guard: VendorRule[] =
    needed.length === 0
      ? []
      : [{ name: "parent flags", when: not({ all: needed }), rollout: [], rest: "off" }];
  const enabled = strategies.filter(({ disabled }) => disabled !== true);
  if (strategies.length > 0 && enabled.length === 0)
    notes.push({ part: "strategies", reason: "all are disabled, so the flag is off for everyone" });
  const rules = enabled.flatMap((strategy, index) => {
    const part = `rule ${index + 1} (strategy ${stringify(strategy.name ?? strategy.strategyName)})`;
    const isNew = (reason: string) => void notes.push({ part, reason });
    const reader = new StrategyReader(file, strategy, { report: report(part), note: isNew });
    return reader.rules(part, ofFeature);
  });
  // A feature without strategies is on for everyone.
  if (strategies.length === 0)
    rules.push(
      ...withVariants(
        { name: "the default rule", when: { all: [] }, percent: 100 },
        ofFeature,
        report("variants"),
      ),
    );
  const ofStrategies = enabled.flatMap(({ variants }) => objects(variants));
  return {
    key,
    name: text(feature.description),
    active: (state.enabled ?? feature.enabled) === true,
    tags: file.tags(key, feature),
    variants: uniqueVariants([...ofStrategies, ...ofFeature]),
    rules: [...guard, ...rules],
    obstacles,
    notes,
  };
}

function uniqueVariants(all: readonly JsonObject[]): { key: string; payload?: Json }[] {
  const byKey = new Map<string, { key: string; payload?: Json }>();
  for (const variant of all) {
    const key = stringify(variant.name);
    if (byKey.has(key)) continue;
    const payload = getPayload(object(variant.payload));
    byKey.set(key, payload === undefined ? { key } : { key, payload });
  }
  return [...byKey.values()];
}

/** Payloads are strings with a separate type. */
function getPayload({ type, value }: JsonObject): Json | undefined {
  if (typeof value !== "string") return value as Json | undefined;
  if (type !== "json" && type !== "number") return value;
  try {
    return parseExactJson(value) as Json;
  } catch {
    return value;
  }
}

/** The user is bucketed by the distinct id in both. */
const isOfUser = (stickiness: Json | undefined) =>
  ["default", "userId", undefined].includes(text(stickiness));

/** Weights relative to their sum. */
function weighted(variants: readonly JsonObject[], report: Report): Rollout {
  const weights = variants.map(({ weight }) => number(weight) ?? 0);
  if (weights.some((weight) => weight < 0)) report("the weights of its variants are invalid");
  const total = weights.reduce((sum, weight) => sum + Math.max(0, weight), 0);
  if (total <= 0) return always(true);
  const [first] = variants;
  if (weights.filter((weight) => weight > 0).length > 1 && !isOfUser(first?.stickiness))
    report(`its variants are bucketed by ${stringify(first?.stickiness)}; here by distinct id`);
  return variants.map((variant, index) => ({
    variant: stringify(variant.name),
    percent: rounded((100 * Math.max(0, weights[index]!)) / total),
  }));
}

interface Enabled {
  name: string;
  when: Expression;
  percent: number;
  seed?: string;
}

/** Who is enabled, and with which variants: overrides choose a variant only for enabled users. */
function withVariants(enabled: Enabled, variants: readonly JsonObject[], report: Report): VendorRule[] {
  const { name: part, when, percent, seed } = enabled;
  const rule = (name: string, condition: Expression, rollout: Rollout): VendorRule => ({
    name,
    when: condition,
    rest: "next rule",
    ...(seed === undefined ? {} : { seed }),
    rollout: rollout.map((share) => ({ ...share, percent: rounded((share.percent * percent) / 100) })),
  });
  const overrides = variants.flatMap((variant) =>
    checkedObjects(variant.overrides, "overrides", report).map(({ contextName, values }) => {
      const property = toProperty(text(contextName) ?? "");
      const isNamed = isOneOf(property, checkedList(values, "overrides", report));
      const key = stringify(variant.name);
      return rule(`${part}, override of variant ${key}`, { all: [when, isNamed] }, always(key));
    }),
  );
  return [...overrides, rule(part, when, weighted(variants, report))];
}

interface Reports {
  /** The strategy would match other users. */
  report: Report;
  note: Report;
}

class StrategyReader {
  constructor(
    private readonly file: UnleashFile,
    private readonly strategy: JsonObject,
    private readonly reports: Reports,
  ) {}

  rules(part: string, ofFeature: readonly JsonObject[]): VendorRule[] {
    const { strategy } = this;
    const { report } = this.reports;
    const own = checkedObjects(strategy.variants, "variants", report);
    const segments = this.file.getSegments(strategy, report).map((id) => this.segment(id));
    const constraints = readEach(strategy.constraints, "constraints", readConstraint);
    const { when, percent, seed } = this.kind();
    const all: Expression = { all: [...constraints, ...segments, when] };
    const enabled = { name: part, when: all, percent, ...(seed === undefined ? {} : { seed }) };
    return withVariants(enabled, own.length > 0 ? own : ofFeature, report);
  }

  private segment(id: Json): Expression {
    const segment = this.file.segments.get(name(id) ?? "");
    if (segment === undefined) return unknown(`the segment ${JSON.stringify(id)} is not in the file`);
    // Exports contain the names of segments only.
    if (segment.constraints === undefined)
      return unknown(
        `the constraints of the segment ${name(segment.name) ?? stringify(id)} are not in the file`,
      );
    return { all: readEach(segment.constraints, "constraints of a segment", readConstraint) };
  }

  private kind(): { when: Expression; percent: number; seed?: string } {
    const { strategy } = this;
    const everyone: Expression = { all: [] };
    const parameters = checkedObject(strategy.parameters, "parameters", this.reports.report);
    switch (strategy.name ?? strategy.strategyName) {
      case "default":
        return { when: everyone, percent: 100 };
      case "flexibleRollout":
        return this.rollout(parameters.rollout, text(parameters.stickiness), parameters);
      case "gradualRolloutUserId":
        return this.rollout(parameters.percentage, "userId", parameters);
      case "gradualRolloutSessionId":
        return this.rollout(parameters.percentage, "sessionId", parameters);
      case "gradualRolloutRandom":
        return this.rollout(parameters.percentage, "random", parameters);
      case "userWithId": {
        const ids = (text(parameters.userIds) ?? "").split(",").map((id) => id.trim());
        return { when: isOneOf("distinct_id", ids.filter(Boolean)), percent: 100 };
      }
      default:
        return {
          when: unknown(
            `the strategy ${stringify(strategy.name ?? strategy.strategyName ?? null)} has no counterpart`,
          ),
          percent: 0,
        };
    }
  }

  private rollout(written: Json | undefined, stickiness: string | undefined, parameters: JsonObject) {
    const { report, note } = this.reports;
    const percent = number(written);
    if (written === undefined || written === null || written === "") {
      note("its percentage is missing, so it matches no one");
      return { when: matchesNone, percent: 0 };
    }
    if (percent === undefined) report(`the percentage ${stringify(written)} is not a number`);
    const share = Math.min(100, Math.max(0, percent ?? 0));
    if (share > 0 && share < 100 && !isOfUser(stickiness))
      report(`it is bucketed by ${stickiness}; here by distinct id`);
    const seed = text(parameters.groupId);
    return { when: { all: [] } as Expression, percent: share, ...(seed === undefined ? {} : { seed }) };
  }
}
