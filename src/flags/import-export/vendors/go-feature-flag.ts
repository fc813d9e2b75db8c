/** Flags of GO Feature Flag: `KEY: {variations, targeting, defaultRule}`, in YAML or JSON. Pure. */

import { parseExactJson } from "../../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { nestingMax } from "../document.ts";
import {
  compared,
  type Expression,
  equalsNumber,
  hasContent,
  isOneOf,
  matchesAll,
  not,
  notOfPresent,
  test,
  unknown,
  versioned,
} from "./expression.ts";
import type { FlagItems } from "./flag-items.ts";
import { JsonLogicReader, propertyNamed } from "./json-logic.ts";
import {
  checkedObject,
  checkedObjects,
  entries,
  number,
  object,
  type Report,
  stringify,
  text,
} from "./values.ts";
import {
  always,
  type Part,
  type Rollout,
  rounded,
  type VendorFlag,
  type VendorRule,
  variantsOfNames,
} from "./vendor-flag.ts";

/** Reads a query; an empty one is for everyone. */
export function readQuery(query: Json | undefined): Expression {
  if (query === undefined || query === null) return unknown("it has no query");
  if (typeof query === "string" && query.trim() === "") return matchesAll;
  if (isJsonObject(query)) return new JsonLogicReader().read(query);
  if (typeof query !== "string") return unknown(`its query ${stringify(query)} is not a string`);
  if (query.trimStart().startsWith("{")) {
    try {
      return new JsonLogicReader().read(parseExactJson(query) as Json);
    } catch {
      return unknown("its query is not valid JSON");
    }
  }
  try {
    return new QueryReader(query).read();
  } catch (error) {
    if (!(error instanceof UnreadableRuleError)) throw error;
    return unknown(`its query is invalid: ${error.message}`);
  }
}

class UnreadableRuleError extends Error {}

interface Value {
  value: Json;
  /** `1.2.3` without quotation marks. */
  isVersion: boolean;
}

/** A name, a value, an operator, a bracket. */
const token = /\s*(?:"((?:[^"\\]|\\.)*)"|([()[\],])|([^\s()[\],"]+))/y;

/** `A and (B or not (C))`, `path op value`, `path in [1, 2]`, `path pr`. */
class QueryReader {
  private readonly tokens: { text: string; isQuoted: boolean }[] = [];
  private position = 0;

  constructor(query: string) {
    token.lastIndex = 0;
    while (token.lastIndex < query.trimEnd().length) {
      const found = token.exec(query);
      if (found === null) throw new UnreadableRuleError("a quotation mark is missing");
      const quoted = found[1];
      this.tokens.push({
        text: quoted?.replace(/\\(.)/g, "$1") ?? found[2] ?? found[3] ?? "",
        isQuoted: quoted !== undefined,
      });
    }
  }

  read(): Expression {
    const expression = this.choice(0);
    if (this.position < this.tokens.length)
      throw new UnreadableRuleError(`unexpected ${this.tokens[this.position]!.text}`);
    return expression;
  }

  /** Both words bind equally, from left to right; without brackets most readers expect otherwise. */
  private choice(depth: number): Expression {
    const parts = [this.one(depth)];
    let joined: "and" | "or" | undefined;
    for (;;) {
      const word = this.takes("and") ? "and" : this.takes("or") ? "or" : undefined;
      if (word === undefined) break;
      if (joined !== undefined && joined !== word)
        throw new UnreadableRuleError("`and` and `or` are mixed without brackets");
      joined = word;
      parts.push(this.one(depth));
    }
    if (parts.length === 1) return parts[0]!;
    return joined === "or" ? { any: parts } : { all: parts };
  }

  private one(depth: number): Expression {
    if (depth > nestingMax) throw new UnreadableRuleError("it is nested too deeply");
    const isNegated = this.takes("not");
    if (this.takes("(")) {
      const inner = this.choice(depth + 1);
      if (!this.takes(")")) throw new UnreadableRuleError("a bracket is missing");
      return isNegated ? not(inner) : inner;
    }
    if (isNegated) throw new UnreadableRuleError("`not` is not followed by a bracket");
    const name = this.next().text;
    const property = propertyNamed(name);
    const comparison = this.comparison(property ?? name, this.next().text.toLowerCase());
    return property === undefined ? unknown(`it uses ${name}, a member of another attribute`) : comparison;
  }

  private comparison(property: string, operator: string): Expression {
    if (operator === "pr") return test(property, "is_set");
    if (operator === "in") return isOneOf(property, this.values());
    const value = this.value();
    switch (operator) {
      case "eq":
      case "==":
        return equals(property, value);
      case "ne":
      case "!=":
        if (value.value === null) return test(property, "is_set");
        return notOfPresent(property, equals(property, value));
      case "lt":
      case "<":
        return ordered(property, "lt", value);
      case "le":
      case "<=":
        return ordered(property, "lte", value);
      case "gt":
      case ">":
        return ordered(property, "gt", value);
      case "ge":
      case ">=":
        return ordered(property, "gte", value);
      case "co":
        return ofText(property, "anywhere", value);
      case "sw":
        return ofText(property, "start", value);
      case "ew":
        return ofText(property, "end", value);
      default:
        throw new UnreadableRuleError(`unknown operator ${operator}`);
    }
  }

  private values(): Json[] {
    if (!this.takes("[")) throw new UnreadableRuleError("a list is missing");
    const values: Json[] = [];
    while (!this.takes("]")) {
      values.push(this.value().value);
      this.takes(",");
    }
    return values;
  }

  private value(): Value {
    const { text: written, isQuoted } = this.next();
    if (isQuoted) return { value: written, isVersion: false };
    if (written === "null") return { value: null, isVersion: false };
    if (written === "true" || written === "false") return { value: written === "true", isVersion: false };
    const isVersion = /^\d+\.\d+\.\d+/.test(written);
    const value = isVersion ? written : number(written);
    if (value === undefined) throw new UnreadableRuleError(`the value ${written} is not in quotation marks`);
    return { value, isVersion };
  }

  private next(): { text: string; isQuoted: boolean } {
    const found = this.tokens[this.position++];
    if (found === undefined) throw new UnreadableRuleError("it is incomplete");
    return found;
  }

  private takes(word: string): boolean {
    const found = this.tokens[this.position];
    if (found === undefined || found.isQuoted || found.text.toLowerCase() !== word) return false;
    this.position += 1;
    return true;
  }
}

/** Text is compared without regard to case. */
function ofText(property: string, where: "anywhere" | "start" | "end", { value }: Value): Expression {
  if (typeof value !== "string") return unknown(`${JSON.stringify(value)} is not text`);
  return hasContent(property, where, [value], true);
}

/** Numbers and versions by value, text as written; a missing attribute is null. */
function equals(property: string, { value, isVersion }: Value): Expression {
  if (value === null) return test(property, "is_not_set");
  if (isVersion) return versioned(property, "semver_eq", value);
  return typeof value === "number" ? equalsNumber(property, value) : isOneOf(property, [value]);
}

/** Quoted values are compared as text, which has no equivalent. */
function ordered(property: string, operator: string, { value, isVersion }: Value): Expression {
  if (isVersion) return versioned(property, `semver_${operator}`, value);
  return typeof value === "number"
    ? compared(property, operator, value)
    : unknown(`${JSON.stringify(value)} is compared as text`);
}

/** Whether a file is GO Feature Flag's. */
export function isGoFeatureFlag(root: JsonObject): boolean {
  const flags = entries(root);
  return flags.some(
    ([, flag]) => isJsonObject(flag.variations) && ("defaultRule" in flag || "targeting" in flag),
  );
}

export function readGoFeatureFlag(root: JsonObject, items: FlagItems): void {
  const { $schema: _, ...flags } = root;
  items.addMap(flags, readFlag);
}

/** Members that change a flag at certain times; flags here do not change by themselves. */
const timed = ["scheduledRollout", "experimentation"];

function readFlag(key: string, flag: JsonObject): VendorFlag {
  const obstacles: Part[] = [];
  const report = (part: string) => (reason: string) => void obstacles.push({ part, reason });
  const { variants, keys, isBoolean } = variantsOfNames(
    checkedObject(flag.variations, "variations", report("variations")),
  );
  const getVariant = (name: string): string | boolean =>
    isBoolean && keys.has(name) ? object(flag.variations)[name] === true : (keys.get(name) ?? name);
  const bucketing = text(flag.bucketingKey);
  const reader: RolloutReader = {
    variantOf: getVariant,
    bucketing: bucketing === "targetingKey" ? undefined : bucketing,
  };
  const rules = checkedObjects(flag.targeting, "targeting", report("rules"))
    .map((rule, index): VendorRule & { isDisabled: boolean } => {
      const label = text(rule.name);
      const name = `rule ${index + 1}${label === undefined ? "" : ` (${label})`}`;
      const isDisabled = rule.disable === true;
      const rollout = isDisabled ? [] : getRollout(rule, reader, report(name));
      return { name, when: readQuery(rule.query as Json | undefined), rollout, rest: "off", isDisabled };
    })
    .filter(({ isDisabled }) => !isDisabled)
    .map(({ isDisabled: _, ...rule }) => rule);
  for (const member of timed)
    if (flag[member] !== undefined && flag[member] !== null)
      report(member)("it changes the flag at certain times, which is not supported");
  const last = checkedObject(flag.defaultRule, "defaultRule", report("the default rule"));
  return {
    key,
    name: text(object(flag.metadata).description),
    active: flag.disable !== true,
    variants,
    rules: [
      ...rules,
      {
        name: "the default rule",
        when: matchesAll,
        rest: "off",
        rollout: getRollout(last, reader, report("the default rule")),
      },
    ],
    obstacles,
  };
}

interface RolloutReader {
  variantOf: (name: string) => string | boolean;
  /** The attribute that users are bucketed by; absent: their key. */
  bucketing: string | undefined;
}

function getRollout(
  rule: JsonObject,
  { variantOf: getVariant, bucketing }: RolloutReader,
  report: Report,
): Rollout {
  if (rule.progressiveRollout !== undefined && rule.progressiveRollout !== null) {
    report("its progressive rollout changes with time, which is not supported");
    return [];
  }
  const shares = Object.entries(checkedObject(rule.percentage as Json | undefined, "percentage", report));
  if (shares.length === 0) {
    const variation = text(rule.variation as Json | undefined);
    if (variation !== undefined) return always(getVariant(variation));
    report("it has neither a variation nor percentages");
    return [];
  }
  const weights = shares.map(([name, weight]) => ({ name, weight: number(weight as Json) }));
  if (weights.some(({ weight }) => weight === undefined || weight < 0))
    report("its percentages are not numbers");
  // Relative to their sum.
  const total = weights.reduce((sum, { weight = 0 }) => sum + Math.max(0, weight), 0);
  if (total === 0) report("its percentages add up to 0");
  const rollout = weights.map(({ name, weight = 0 }) => ({
    variant: getVariant(name),
    percent: total === 0 ? 0 : rounded((100 * Math.max(0, weight)) / total),
  }));
  if (bucketing !== undefined && rollout.filter(({ percent }) => percent > 0).length > 1)
    report(`it is bucketed by ${bucketing}; here by distinct id`);
  return rollout;
}
