/** Flags of GO Feature Flag: `KEY: {variations, targeting, defaultRule}`, in YAML or JSON. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import {
  compared,
  type Expression,
  everybody,
  hasText,
  isOneOf,
  not,
  notOfPresent,
  test,
  unknown,
} from "./expression.ts";
import {
  always,
  type FlagItems,
  type ForeignFlag,
  type ForeignRule,
  type Outcome,
  variantsOfValues,
} from "./foreign-flag.ts";
import { propertyNamed, readLogic } from "./json-logic.ts";
import { entries, number, object, objects, text } from "./values.ts";

/** Whether a file is GO Feature Flag's. */
export function isGoFeatureFlag(root: JsonObject): boolean {
  const flags = entries(root);
  return flags.some(
    ([, flag]) => isJsonObject(flag.variations) && ("defaultRule" in flag || "targeting" in flag),
  );
}

export function readGoFeatureFlag(root: JsonObject, items: FlagItems): void {
  for (const [key, flag] of items.flagsIn(root)) items.add(readFlag(key, flag));
}

function readFlag(key: string, flag: JsonObject): ForeignFlag {
  const given = Object.entries(object(flag.variations)) as [string, Json][];
  const isBoolean = given.every(([, value]) => typeof value === "boolean");
  const named = variantsOfValues(given.map(([name, value]) => ({ name, value })));
  const keys = new Map(given.map(([name], index) => [name, named[index]!.key]));
  const notMapped: { part: string; reason: string }[] = [];
  const variantOf = (name: string): string | boolean =>
    isBoolean ? object(flag.variations)[name] === true : (keys.get(name) ?? false);
  const rules = objects(flag.targeting)
    .filter(({ disable }) => disable !== true)
    .map((rule, index): ForeignRule => {
      const label = text(rule.name);
      const part = `rule ${index + 1}${label === undefined ? "" : ` (${label})`}`;
      return {
        name: part,
        when: readQuery(rule.query as Json | undefined),
        outcome: outcomeOf(rule, variantOf, (reason) => notMapped.push({ part, reason })),
        rest: "off",
      };
    });
  const part = "the default rule";
  const note = (reason: string) => notMapped.push({ part, reason });
  if ("scheduledRollout" in flag) notMapped.push({ part: "scheduledRollout", reason: "is left out" });
  if ("experimentation" in flag)
    notMapped.push({ part: "experimentation", reason: "its dates are left out" });
  const bucketing = text(flag.bucketingKey);
  if (bucketing !== undefined && bucketing !== "targetingKey") {
    notMapped.push({ part: "bucketingKey", reason: `shared out by ${bucketing}, here by distinct id` });
  }
  return {
    key,
    name: text(object(flag.metadata).description),
    active: flag.disable !== true,
    variants: isBoolean ? [] : named,
    rules: [
      ...rules,
      {
        ...{ name: part, when: everybody, rest: "off" },
        outcome: outcomeOf(object(flag.defaultRule), variantOf, note),
      },
    ],
    notMapped,
  };
}

function outcomeOf(
  rule: JsonObject,
  variantOf: (name: string) => string | boolean,
  note: (reason: string) => void,
): Outcome {
  const variation = text(rule.variation);
  if (variation !== undefined) return always(variantOf(variation));
  const progressive = object(rule.progressiveRollout);
  const end = object(progressive.end);
  if (Object.keys(progressive).length > 0) {
    note("rolls out over time; here everybody is where it ends");
    const percent = number(end.percentage) ?? 100;
    const initial = text(object(progressive.initial).variation);
    return [
      { variant: variantOf(text(end.variation) ?? ""), percent },
      ...(initial === undefined ? [] : [{ variant: variantOf(initial), percent: 100 - percent }]),
    ];
  }
  return Object.entries(object(rule.percentage)).map(([name, percent]) => ({
    variant: variantOf(name),
    percent: number(percent as Json) ?? 0,
  }));
}

/** Conditions are JsonLogic, or in the small language of `nikunjy/rules`. */
function readQuery(query: Json | undefined): Expression {
  if (isJsonObject(query)) return readLogic(query);
  const written = text(query);
  if (written === undefined) return everybody;
  if (written.trimStart().startsWith("{")) {
    try {
      return readLogic(JSON.parse(written) as Json);
    } catch {
      return unknown("its query is no JSON");
    }
  }
  try {
    return new QueryReader(written).read();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return unknown(`its query cannot be read: ${error.message}`);
  }
}

class Unreadable extends Error {}

/** A name, a value, an operator, a bracket. */
const token = /\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([()[\],])|([^\s()[\],"']+))/y;
const nestingMax = 100;

/** `A and (B or not C)`, `path op value`, `path in [1, 2]`, `path pr`. */
class QueryReader {
  private readonly tokens: { text: string; isQuoted: boolean }[] = [];
  private place = 0;

  constructor(query: string) {
    token.lastIndex = 0;
    while (token.lastIndex < query.trimEnd().length) {
      const found = token.exec(query);
      if (found === null) throw new Unreadable("a quotation mark is missing");
      const quoted = found[1] ?? found[2];
      this.tokens.push({
        text: quoted?.replace(/\\(.)/g, "$1") ?? found[3] ?? found[4] ?? "",
        isQuoted: quoted !== undefined,
      });
    }
  }

  read(): Expression {
    const expression = this.choice(0);
    if (this.place < this.tokens.length) throw new Unreadable(`unexpected ${this.tokens[this.place]!.text}`);
    return expression;
  }

  private choice(depth: number): Expression {
    const parts = [this.both(depth)];
    while (this.takes("or") || this.takes("||")) parts.push(this.both(depth));
    return parts.length === 1 ? parts[0]! : { any: parts };
  }

  private both(depth: number): Expression {
    const parts = [this.one(depth)];
    while (this.takes("and") || this.takes("&&")) parts.push(this.one(depth));
    return parts.length === 1 ? parts[0]! : { all: parts };
  }

  private one(depth: number): Expression {
    if (depth > nestingMax) throw new Unreadable("it is nested too deeply");
    if (this.takes("not") || this.takes("!")) return not(this.one(depth + 1));
    if (this.takes("(")) {
      const inner = this.choice(depth + 1);
      if (!this.takes(")")) throw new Unreadable("a bracket is missing");
      return inner;
    }
    const property = propertyNamed(this.next().text);
    return this.comparison(property, this.next().text.toLowerCase());
  }

  private comparison(property: string, operator: string): Expression {
    if (operator === "pr") return test(property, "is_set");
    if (operator === "in") return isOneOf(property, this.values());
    const value = this.value();
    switch (operator) {
      case "eq":
      case "==":
        return isOneOf(property, [value]);
      case "ne":
      case "!=":
        return notOfPresent(property, isOneOf(property, [value]));
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
        return hasText(property, "anywhere", [value]);
      case "sw":
        return hasText(property, "start", [value]);
      case "ew":
        return hasText(property, "end", [value]);
      default:
        throw new Unreadable(`the operator ${operator} is not known`);
    }
  }

  private values(): Json[] {
    if (!this.takes("[")) throw new Unreadable("a list is missing");
    const values: Json[] = [];
    while (!this.takes("]")) {
      values.push(this.value());
      this.takes(",");
    }
    return values;
  }

  private value(): Json {
    const { text: written, isQuoted } = this.next();
    if (isQuoted) return written;
    if (written === "true" || written === "false") return written === "true";
    return number(written) ?? written;
  }

  private next(): { text: string; isQuoted: boolean } {
    const found = this.tokens[this.place++];
    if (found === undefined) throw new Unreadable("it ends too early");
    return found;
  }

  private takes(word: string): boolean {
    const found = this.tokens[this.place];
    if (found === undefined || found.isQuoted || found.text.toLowerCase() !== word) return false;
    this.place += 1;
    return true;
  }
}

/** Numbers by size; `1.2.3` is a version. */
function ordered(property: string, operator: string, value: Json): Expression {
  return typeof value === "string" && /^v?\d+\.\d+\.\d+/.test(value)
    ? test(property, `semver_${operator}`, value)
    : compared(property, operator, value);
}
