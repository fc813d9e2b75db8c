/**
 * Flags of GrowthBook: data of its SDKs (`{"features": {KEY: {"defaultValue", "rules"}}}`) and responses of its API
 * (`GET /api/v1/features`). Users outside the coverage of a rule continue to the next one. Pure.
 */

import { parseExactJson } from "../../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { type Expression, matchesAll, matchesNone, not, unknown } from "./expression.ts";
import type { FlagItems } from "./flag-items.ts";
import { GrowthBookConditions, idAttributes, meets } from "./growthbook-conditions.ts";
import {
  checkedList,
  checkedObjects,
  chosenEnvironment,
  entries,
  list,
  number,
  object,
  objects,
  type Report,
  stringify,
  text,
} from "./values.ts";
import {
  always,
  otherwise,
  type Part,
  type Rollout,
  rounded,
  type VendorFlag,
  type VendorRule,
  variantsOfValues,
} from "./vendor-flag.ts";

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
    const features = new Map(ofSdk.map(([key, feature]) => [key, new Values(feature, feature)]));
    items.addMap(root.features, (key, feature) =>
      new FeatureReader(features, saved).read({ key, feature, state: feature, active: true }),
    );
    return undefined;
  }
  const listed = objects(root.features);
  const chosen = chosenEnvironment(
    listed.flatMap(({ environments }) => Object.keys(object(environments))),
    environment,
  );
  const getState = (feature: JsonObject) => object(object(feature.environments)[chosen ?? ""]);
  const features = new Map(
    listed.map((feature) => [stringify(feature.id), new Values(feature, getState(feature))]),
  );
  for (const each of list(root.features)) {
    const { id, archived } = object(each);
    if (archived === true) items.reportObstacle(stringify(id), "is archived");
    else
      items.add(id, each, (key, feature) => {
        const state = getState(feature);
        const active = state.enabled === true;
        return new FeatureReader(features, saved).read({ key, feature, state, active });
      });
  }
  return chosen;
}

/** The values of a feature, and their variants here. */
class Values {
  readonly isBoolean: boolean;
  readonly all: readonly Json[];
  readonly variants: { key: string; payload?: Json }[];
  readonly fallback: Json;
  private readonly type: string | undefined;
  private readonly keys: ReadonlyMap<string, string>;

  constructor(feature: JsonObject, state: JsonObject) {
    this.type = text(feature.valueType);
    this.fallback = this.typed((state.defaultValue ?? feature.defaultValue ?? null) as Json);
    const rules = objects(state.rules).filter(({ enabled }) => enabled !== false);
    const values = [
      this.fallback,
      ...rules.flatMap((rule) => getValues(rule).map((value) => this.typed(value))),
    ];
    const known = new Map<string, Json>(values.map((value) => [JSON.stringify(value), value]));
    this.all = [...known.values()];
    this.isBoolean = this.all.every((value) => typeof value === "boolean");
    this.variants = this.isBoolean ? [] : variantsOfValues(this.all.map((value) => ({ value })));
    this.keys = new Map([...known.keys()].map((json, index) => [json, this.variants[index]?.key ?? ""]));
  }

  /** The variant of a value, or whether the flag is on. */
  getValue(value: Json): string | boolean {
    return this.isBoolean ? this.typed(value) === true : this.keys.get(JSON.stringify(this.typed(value)))!;
  }

  /** The API writes values as strings, with a separate type. */
  private typed(value: Json): Json {
    if (typeof value !== "string" || this.type === undefined || this.type === "string") return value;
    try {
      return parseExactJson(value) as Json;
    } catch {
      return value;
    }
  }
}

/** The variations of an experiment, which some versions of the API write as a list of values. */
function getVariations(rule: JsonObject): readonly Json[] | undefined {
  if (Array.isArray(rule.variations)) return rule.variations;
  return Array.isArray(rule.values) ? rule.values : undefined;
}

function getValues(rule: JsonObject): Json[] {
  const variations = getVariations(rule);
  if ("force" in rule) return [(rule.force ?? null) as Json];
  if (variations !== undefined)
    return variations.map((each) => (isJsonObject(each) && "value" in each ? (each.value as Json) : each));
  return "value" in rule ? [(rule.value ?? null) as Json] : [];
}

interface Feature {
  key: string;
  feature: JsonObject;
  /** Differs between environments. */
  state: JsonObject;
  active: boolean;
}

class FeatureReader {
  private readonly obstacles: Part[] = [];
  private readonly conditions: GrowthBookConditions;

  constructor(
    private readonly features: ReadonlyMap<string, Values>,
    saved: JsonObject,
  ) {
    this.conditions = new GrowthBookConditions(saved);
  }

  read({ key, feature, state, active }: Feature): VendorFlag {
    const values = new Values(feature, state);
    const rules = checkedObjects(state.rules, "rules", this.report("rules"));
    const needed = checkedList(feature.prerequisites, "prerequisites", this.report("prerequisites"));
    return {
      key,
      name: text(feature.description),
      active,
      tags: list(feature.tags).flatMap((tag) => text(tag) ?? []),
      variants: values.variants,
      rules: [
        ...needed.map((each) => this.gate("prerequisites", isJsonObject(each) ? each : { id: each })),
        ...rules
          .filter(({ enabled }) => enabled !== false)
          .flatMap((rule, index) => this.rule(rule, { key, index, values })),
        otherwise(always(values.getValue(values.fallback))),
      ],
      obstacles: this.obstacles,
    };
  }

  private report(part: string): Report {
    return (reason) => void this.obstacles.push({ part, reason });
  }

  /** Users who do not meet a parent's condition get no value. */
  private gate(name: string, parent: JsonObject): VendorRule {
    return { name, when: not(this.parent(parent)), rollout: [], rest: "off" };
  }

  private rule(
    rule: JsonObject,
    { key, index, values: known }: { key: string; index: number; values: Values },
  ): VendorRule[] {
    const label = text(rule.description) ?? text(rule.id) ?? text(rule.key);
    const name = `rule ${index + 1}${label === undefined ? "" : ` (${label})`}`;
    const report = this.report(name);
    const parents = [
      ...checkedObjects(rule.parentConditions, "parentConditions", report),
      ...checkedObjects(rule.prerequisites, "prerequisites", report),
    ];
    const gates = parents.filter(({ gate }) => gate === true).map((parent) => this.gate(name, parent));
    const values = getValues(rule);
    // A rule may consist of a gate alone.
    if (gates.length > 0 && values.length === 0 && text(rule.type) === undefined) return gates;
    checkUnsupported(rule, values, report);
    const conditions = [
      this.conditions.read(rule.condition as Json | undefined),
      ...parents.filter(({ gate }) => gate !== true).map((parent) => this.parent(parent)),
    ];
    const isExperiment = !("force" in rule) && getVariations(rule) !== undefined;
    const { shares, seed } = isExperiment ? getShares(rule, key, report) : rollout(rule, key, report);
    const weighted: Rollout = shares.map((percent, position) => ({
      variant: known.getValue(values[position] ?? null),
      percent,
    }));
    checkBucketing(rule, weighted, report);
    // An experiment with one variation includes no one.
    const isInvalid = isExperiment && values.length < 2 && text(rule.type) === undefined;
    const when: Expression = isInvalid ? matchesNone : { all: conditions };
    return [...gates, { name, when, rollout: weighted, rest: "next rule", seed }];
  }

  /** Another feature has a certain value: the condition is computed for each of its values. */
  private parent({ id, parentId, condition }: JsonObject): Expression {
    const flag = stringify((id ?? parentId ?? null) as Json);
    const parent = this.features.get(flag);
    if (parent === undefined) return unknown(`the feature ${flag} is not in the file`);
    const wanted = toCondition(condition as Json | undefined);
    const members = Object.keys(wanted ?? {});
    if (wanted !== undefined && members.length === 0) return matchesAll;
    const results = parent.all.map((value) => ({
      value,
      isMet: meets(value, wanted?.value as Json | undefined),
    }));
    if (members.join() !== "value" || results.some(({ isMet }) => isMet === undefined))
      return unknown(`its condition on the feature ${flag} is not supported`);
    const met = results.filter(({ isMet }) => isMet);
    return { any: met.map(({ value }) => ({ flag, value: parent.getValue(value) })) };
  }
}

/** @returns undefined for a condition that is not one. */
function toCondition(written: Json | undefined): JsonObject | undefined {
  // Without a condition the parent must be on.
  if (written === undefined || written === null || written === "") return { value: true };
  if (isJsonObject(written)) return written;
  if (typeof written !== "string") return undefined;
  try {
    const parsed = parseExactJson(written) as Json;
    return isJsonObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Members that restrict who a rule is for, and have no equivalent. */
function checkUnsupported(rule: JsonObject, values: readonly Json[], report: Report): void {
  const type = text(rule.type);
  const isPresent = (value: Json | undefined) =>
    value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
  if (values.length === 0 || type === "experiment-ref" || type === "safe-rollout")
    report(`a rule of the type ${type ?? "without a value"} has no values in this file`);
  for (const name of ["filters", "namespace", "scheduleRules", "contextualVariations", "contextualBanditRef"])
    if (isPresent(rule[name] as Json | undefined) && object(rule[name] as Json).enabled !== false)
      report(`its ${name} is not supported`);
  for (const targeting of list(rule.savedGroupTargeting as Json | undefined))
    report(`saved groups (${JSON.stringify(targeting)}) are not in this file`);
  if (objects(rule.meta as Json | undefined).some(({ passthrough }) => passthrough === true))
    report("a variation of it passes users on to the next rule");
}

function checkBucketing(rule: JsonObject, rollout: Rollout, report: Report): void {
  const isShared = rollout.length > 1 || rollout.some(({ percent }) => percent > 0 && percent < 100);
  if (!isShared) return;
  const attribute = text(rule.hashAttribute as Json | undefined);
  if (attribute !== undefined && !idAttributes.has(attribute))
    report(`it is bucketed by ${attribute}; here by distinct id`);
  const version = rule.hashVersion ?? 1;
  if (version !== 1 && version !== 2)
    report(`its hashVersion ${stringify(version as Json)} is not supported`);
}

interface Bucketing {
  /** Percentages of the values. */
  shares: number[];
  seed: string;
}

/** A value for all users, or for a percentage of them. */
function rollout(rule: JsonObject, key: string, report: Report): Bucketing {
  const seed = text(rule.seed as Json | undefined) ?? key;
  const ranges = rule.range === undefined ? undefined : getRanges([rule.range as Json], report);
  return { shares: ranges ?? [rounded(100 * getCoverage(rule, report))], seed };
}

/** The variations of an experiment. */
function getShares(rule: JsonObject, key: string, report: Report): Bucketing {
  const variations = getVariations(rule) ?? [];
  const own = text((rule.seed ?? rule.key ?? rule.trackingKey) as Json | undefined) ?? key;
  // Each variation has its range of positions, so percentages of other rules with the same seed do not overlap.
  const seed = `experiment ${own}`;
  if (Array.isArray(rule.ranges)) return { shares: getRanges(rule.ranges, report), seed };
  const written = Array.isArray(rule.weights)
    ? list(rule.weights)
    : variations.map((each) => (isJsonObject(each) ? ((each.weight ?? null) as Json) : null));
  const weights = written.map((weight) => number(weight) ?? 0);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  // Weights that do not add up to 1 are ignored.
  const isUsable = weights.length === variations.length && sum >= 0.99 && sum <= 1.01;
  const coverage = getCoverage(rule, report);
  return {
    shares: variations.map((_, position) =>
      rounded(100 * coverage * (isUsable ? weights[position]! : 1 / variations.length)),
    ),
    seed,
  };
}

function getCoverage(rule: JsonObject, report: Report): number {
  if (rule.coverage === undefined || rule.coverage === null) return 1;
  const coverage = number(rule.coverage as Json);
  if (coverage === undefined) report(`the coverage ${stringify(rule.coverage as Json)} is not a number`);
  return Math.min(1, Math.max(0, coverage ?? 0));
}

/** The percentages of ranges that follow each other from 0: others do not keep the users of different rules apart. */
function getRanges(ranges: readonly Json[], report: Report): number[] {
  let end = 0;
  return ranges.map((range) => {
    const [from, to] = list(range).map((bound) => number(bound));
    const isNext =
      from !== undefined && to !== undefined && Math.abs(from - end) < 1e-6 && to >= from && to <= 1;
    if (!isNext) report(`its range ${JSON.stringify(range)} does not start at ${rounded(end)}`);
    end = to ?? end;
    return isNext ? rounded(100 * (to - from)) : 0;
  });
}
