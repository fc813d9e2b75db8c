/** Flag definitions of flagd: `{"flags": {KEY: {"state", "variants", "defaultVariant", "targeting"}}}`. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { type Expression, matchesAll, not, test, unknown } from "./expression.ts";
import type { FlagItems } from "./flag-items.ts";
import { JsonLogicReader, propertyNamed } from "./json-logic.ts";
import { checkedObject, entries, number, object, type Report, stringify, text } from "./values.ts";
import {
  always,
  type Part,
  type Rollout,
  rounded,
  type VendorFlag,
  type VendorRule,
  variantsOfNames,
} from "./vendor-flag.ts";

/** Whether a file is flagd's. */
export function isFlagd(root: JsonObject): boolean {
  const flags = entries(root.flags);
  return flags.some(([, flag]) => isJsonObject(flag.variants) && "state" in flag);
}

export function readFlagd(root: JsonObject, items: FlagItems): void {
  const shared = object(root.$evaluators);
  items.addMap(root.flags, (key, flag) => readFlag(key, flag, shared));
}

/** The variant of a name, or whether the flag is on; an unused name if it does not exist. */
type VariantOf = (name: Json | undefined) => string | boolean | undefined;

function readFlag(key: string, flag: JsonObject, shared: JsonObject): VendorFlag {
  const obstacles: Part[] = [];
  const report = (part: string) => (reason: string) => void obstacles.push({ part, reason });
  // Here a variant is its key: a string value becomes the key, other values become payloads.
  const { variants, keys, isBoolean } = variantsOfNames(
    checkedObject(flag.variants, "variants", report("variants")),
  );
  const getVariant: VariantOf = (name) => {
    const written = typeof name === "boolean" || typeof name === "number" ? stringify(name) : text(name);
    if (written === undefined || !keys.has(written)) return undefined;
    return isBoolean ? object(flag.variants)[written] === true : keys.get(written);
  };
  if (flag.state !== "ENABLED" && flag.state !== "DISABLED")
    report("its state")(`${JSON.stringify(flag.state ?? null)} is neither ENABLED nor DISABLED`);
  const byDefault = (flag.defaultVariant ?? null) as Json;
  const fallback = getVariant(byDefault);
  if (fallback === undefined && byDefault !== null && byDefault !== "")
    report("the default variant")(`variant ${stringify(byDefault)} does not exist`);
  const chain = new Chain(new JsonLogicReader(shared), getVariant, byDefault, report);
  const targeting = checkedObject(flag.targeting, "targeting", report("its targeting"));
  if (Object.keys(targeting).length > 0) chain.read(targeting, matchesAll);
  return {
    key,
    name: text(object(flag.metadata).description),
    active: flag.state === "ENABLED",
    variants,
    rules: [
      ...chain.rules,
      {
        name: "the default variant",
        when: matchesAll,
        rest: "off",
        rollout: fallback === undefined ? [] : always(fallback),
      },
    ],
    obstacles,
  };
}

/** Maximum number of branches of one flag; shared evaluators can refer to each other. */
const branchesMax = 500;

/** The branches of `if`, as successive rules. */
class Chain {
  readonly rules: VendorRule[] = [];
  private branches = 0;

  constructor(
    private readonly logic: JsonLogicReader,
    private readonly variantOf: VariantOf,
    /** The name of the default variant. */
    private readonly fallback: Json,
    private readonly report: (part: string) => Report,
  ) {}

  /** @param when condition for reaching this rule. */
  read(node: Json, when: Expression): void {
    this.branches += 1;
    const rule =
      this.branches > branchesMax
        ? { [`more than ${branchesMax} branches`]: null }
        : this.logic.resolve(node);
    const operands = isJsonObject(rule) ? rule.if : undefined;
    if (!Array.isArray(operands)) {
      this.end(rule, when);
      return;
    }
    let here = when;
    for (let position = 0; position + 1 < operands.length; position += 2) {
      const condition = this.logic.read(operands[position]!);
      this.read(operands[position + 1]!, { all: [here, condition] });
      here = { all: [here, not(condition)] };
    }
    if (operands.length % 2 === 1) this.read(operands.at(-1)!, here);
  }

  private get name(): string {
    return `rule ${this.rules.length + 1}`;
  }

  private add(when: Expression, rollout: Rollout): void {
    this.rules.push({ name: this.name, when, rollout, rest: "off" });
  }

  private end(rule: Json, when: Expression): void {
    // Null falls back to the default variant.
    if (rule === null) return;
    if (!isJsonObject(rule)) this.result(rule, when);
    else if ("fractional" in rule) this.fractional(rule.fractional as Json, when);
    else if (this.logic.isBoolean(rule)) this.boolean(rule, when);
    else this.add(unknown(`the value of ${JSON.stringify(rule)} is the name of a variant`), []);
  }

  private result(name: Json, when: Expression): void {
    const variant = this.variantOf(name);
    if (variant === undefined) this.add(unknown(`variant ${stringify(name)} does not exist`), []);
    else this.add(when, always(variant));
  }

  /** A plain condition returns true or false, which are names of variants, or null. */
  private boolean(rule: JsonObject, when: Expression): void {
    const condition = this.logic.read(rule);
    this.result(true, { all: [when, condition] });
    const attribute = this.logic.nullWithout(rule);
    if (!this.logic.mayBeNull(rule)) this.result(false, { all: [when, not(condition)] });
    // With this default, null and false have the same result.
    else if (this.fallback === "false") return;
    else if (attribute !== undefined)
      this.result(false, { all: [when, test(attribute, "is_set"), not(condition)] });
    else
      this.add(
        unknown(`${JSON.stringify(rule)} is neither true nor false for users without an attribute`),
        [],
      );
  }

  /** Buckets by their weights, after what users are bucketed by. */
  private fractional(operands: Json, when: Expression): void {
    const report = this.report(this.name);
    const [first, ...others] = Array.isArray(operands) ? operands : [];
    const isBucketed = !Array.isArray(first);
    const shares = (isBucketed ? others : [first, ...others]).filter((share) => Array.isArray(share));
    const weights = shares.map(([, weight = 1]) => Math.max(0, number(weight) ?? Number.NaN));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const isComplete = shares.length > 0 && shares.length === others.length + (isBucketed ? 0 : 1);
    if (!isComplete || !weights.every(Number.isInteger)) {
      report("its fractional shares are not lists of a variant and a whole number");
      return;
    }
    if (isBucketed && weights.filter((weight) => weight > 0).length > 1)
      this.checkBucketing(first ?? null, report);
    // Without weights the default variant is used.
    if (total === 0) return;
    const rollout = shares.map(([name = null], index) => ({
      variant: this.variantOf(name) ?? stringify(name),
      percent: rounded((weights[index]! / total) * 100),
    }));
    this.add(when, rollout);
  }

  /** By default, and in the form that the documentation names, users are bucketed by the targeting key. */
  private checkBucketing(by: Json, report: Report): void {
    const parts = isJsonObject(by) && Array.isArray(by.cat) ? by.cat : [by];
    const names = parts.map((part) => (isJsonObject(part) ? text(part.var as Json) : undefined));
    const varied = names.filter((name) => name !== "$flagd.flagKey");
    const isOfUser = varied.length === 1 && propertyNamed(varied[0] ?? "") === "distinct_id";
    if (!isOfUser) report(`it is bucketed by ${JSON.stringify(by)}; here by distinct id`);
  }
}
