/** Flag definitions of flagd: `{"flags": {KEY: {"state", "variants", "defaultVariant", "targeting"}}}`. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import { type Expression, everybody, not, unknown } from "./expression.ts";
import {
  always,
  type FlagItems,
  type ForeignFlag,
  type ForeignRule,
  type Outcome,
  rounded,
  variantsOfValues,
} from "./foreign-flag.ts";
import { readLogic } from "./json-logic.ts";
import { asText, entries, list, number, object, text } from "./values.ts";

/** Whether a file is flagd's. */
export function isFlagd(root: JsonObject): boolean {
  const flags = entries(root.flags);
  return flags.some(([, flag]) => isJsonObject(flag.variants) && "state" in flag);
}

export function readFlagd(root: JsonObject, items: FlagItems): void {
  const shared = object(root.$evaluators);
  for (const [key, flag] of items.flagsIn(root.flags)) items.add(readFlag(key, flag, shared));
}

function readFlag(key: string, flag: JsonObject, shared: JsonObject): ForeignFlag {
  const given = Object.entries(object(flag.variants)) as [string, Json][];
  const isBoolean = given.every(([, value]) => typeof value === "boolean");
  const named = variantsOfValues(given.map(([name, value]) => ({ name, value })));
  // Here a variant is its key: a text value takes the place of its name, other values are payloads.
  const keys = new Map(given.map(([name], index) => [name, named[index]!.key]));
  const variantOf = (name: Json | undefined): string | boolean | undefined => {
    const written = typeof name === "boolean" ? asText(name) : text(name);
    if (written === undefined || !keys.has(written)) return undefined;
    return isBoolean ? object(flag.variants)[written] === true : keys.get(written);
  };
  const fallback = variantOf(flag.defaultVariant as Json | undefined);
  const targeting = withShared((flag.targeting ?? {}) as Json, shared);
  const chain = new Chain(variantOf);
  if (isJsonObject(targeting) && Object.keys(targeting).length > 0) chain.read(targeting, everybody);
  return {
    key,
    name: text(object(flag.metadata).description),
    active: flag.state === "ENABLED",
    variants: isBoolean ? [] : named,
    rules: [
      ...chain.rules,
      {
        ...{ name: "the default variant", when: everybody, rest: "off" },
        outcome: fallback === undefined ? [] : always(fallback),
      },
    ],
    notMapped: [],
  };
}

/** Deeper nesting than anybody writes. */
const depthMax = 50;

/** A copy in which `{"$ref": NAME}` is what `$evaluators` has under that name. */
function withShared(value: Json, shared: JsonObject, depth = 0): Json {
  if (depth > depthMax) return null;
  if (Array.isArray(value)) return value.map((item) => withShared(item, shared, depth + 1));
  if (!isJsonObject(value)) return value;
  const name = text(value.$ref as Json | undefined);
  if (name !== undefined) return withShared((shared[name] ?? null) as Json, shared, depth + 1);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, withShared(member as Json, shared, depth + 1)]),
  );
}

/** The branches of `if`, as rules one after the other. */
class Chain {
  readonly rules: ForeignRule[] = [];

  constructor(private readonly variantOf: (name: Json | undefined) => string | boolean | undefined) {}

  /** @param when who gets here. */
  read(rule: Json, when: Expression): void {
    const operands = isJsonObject(rule) ? rule.if : undefined;
    if (!Array.isArray(operands)) {
      this.end(rule, when);
      return;
    }
    let here = when;
    for (let place = 0; place + 1 < operands.length; place += 2) {
      const condition = readLogic(operands[place]!);
      this.read(operands[place + 1]!, { all: [here, condition] });
      here = { all: [here, not(condition)] };
    }
    if (operands.length % 2 === 1) this.read(operands.at(-1)!, here);
  }

  private end(rule: Json, when: Expression): void {
    const name = `branch ${this.rules.length + 1}`;
    // Null hands over to the default variant.
    if (rule === null) return;
    const fractional = isJsonObject(rule) ? rule.fractional : undefined;
    if (Array.isArray(fractional)) {
      this.rules.push({ name, ...this.shared(fractional, when), rest: "off" });
      return;
    }
    const variant = this.variantOf(rule);
    if (variant !== undefined) this.rules.push({ name, when, outcome: always(variant), rest: "off" });
    else if (typeof rule === "string" || typeof rule === "boolean") {
      this.rules.push({
        name,
        when: unknown(`there is no variant ${asText(rule)}`),
        outcome: [],
        rest: "off",
      });
    } else {
      // A condition by itself answers true or false, which are names of variants.
      this.read({ if: [rule, "true", "false"] }, when);
    }
  }

  private shared(fractional: readonly Json[], when: Expression): { when: Expression; outcome: Outcome } {
    const shares = fractional.filter((each) => Array.isArray(each)).map((share) => list(share));
    const weights = shares.map(([, weight]) => number(weight) ?? 1);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const outcome = shares.map(([variant], index) => ({
      variant: this.variantOf(variant) ?? false,
      percent: total > 0 ? rounded((weights[index]! / total) * 100) : 0,
    }));
    return { when, outcome };
  }
}
