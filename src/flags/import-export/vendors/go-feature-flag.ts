/** Flags of GO Feature Flag: `KEY: {variations, targeting, defaultRule}`, in YAML or JSON. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { matchesAll } from "./expression.ts";
import type { FlagItems } from "./flag-items.ts";
import { readQuery } from "./go-feature-flag-query.ts";
import { checkedObject, checkedObjects, entries, number, object, type Report, text } from "./values.ts";
import {
  always,
  type Part,
  type Rollout,
  rounded,
  type VendorFlag,
  type VendorRule,
  variantsOfNames,
} from "./vendor-flag.ts";

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
