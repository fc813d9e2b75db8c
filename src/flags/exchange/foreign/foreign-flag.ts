/**
 * A flag of another product, and what it becomes here.
 *
 * Elsewhere the first rule that fits decides, also when it says "off" or gives a share of its own. Here the first
 * condition set that fits *and* in whose share somebody is decides. So what a rule switches off is taken out of the rules
 * behind it, and the shares of a rule become sets with growing percentages: somebody's place in them is the same in every
 * set of a flag. Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import type { FlagItem } from "../document.ts";
import { alternatives, type Expression, everybody, NotSayable, not, unknownsIn } from "./expression.ts";
import { asText } from "./values.ts";

/** Something of a file that has no place here. */
export interface NotMapped {
  /** Its key as it is here. */
  flag: string;
  /** Which part of it. */
  part: string;
  reason: string;
}

/** Shares in percent; `variant` null is off, true is on without a variant. */
export type Outcome = readonly { variant: string | boolean; percent: number }[];

export interface ForeignRule {
  /** How the report calls it. */
  name: string;
  when: Expression;
  outcome: Outcome;
  /** Whoever is in none of the shares: off, or on to the next rule. */
  rest: "off" | "next rule";
}

export interface ForeignFlag {
  key: string;
  name?: string;
  active: boolean;
  tags?: readonly string[];
  runtime?: "all" | "client" | "server";
  /** None: the flag is on or off. */
  variants: readonly { key: string; payload?: Json }[];
  /** The payload of a flag without variants. */
  payload?: Json;
  rules: readonly ForeignRule[];
  /** Parts that the reader of the product could not take over. */
  notMapped: readonly { part: string; reason: string }[];
}

export const always = (variant: string | boolean): Outcome => [{ variant, percent: 100 }];

/** The last rule of most products. */
export const otherwise = (outcome: Outcome): ForeignRule => ({
  name: "the default rule",
  when: everybody,
  outcome,
  rest: "off",
});

/** Collects flags under keys that are allowed here. */
export class FlagItems {
  readonly items: FlagItem[] = [];
  readonly notMapped: NotMapped[] = [];
  /** Keys of the flags that would hold for other people than before. */
  readonly switchedOff = new Set<string>();
  private readonly keys = new Map<string, string>();

  /** The key here of a flag there. */
  keyOf(key: string): string {
    const known = this.keys.get(key);
    if (known !== undefined) return known;
    const plain = key.replace(/[^a-zA-Z0-9_-]+/g, "-").slice(0, keyLengthMax) || "flag";
    const taken = new Set(this.keys.values());
    let unique = plain;
    for (let number = 2; taken.has(unique); number++) unique = `${plain}-${number}`;
    this.keys.set(key, unique);
    if (unique !== key) this.note(unique, "its key", `was ${JSON.stringify(key)}: ask for the new one`);
    return unique;
  }

  /** The flags of a map by key; what is not an object is reported. */
  flagsIn(value: Json | undefined): [string, JsonObject][] {
    return Object.entries(isJsonObject(value) ? value : {}).flatMap(([key, flag]): [string, JsonObject][] => {
      if (isJsonObject(flag)) return [[key, flag]];
      this.note(this.keyOf(key), "the flag", "is not an object");
      return [];
    });
  }

  note(flag: string, part: string, reason: string): void {
    this.notMapped.push({ flag, part, reason });
  }

  add(flag: ForeignFlag): void {
    const key = this.keyOf(flag.key);
    for (const { part, reason } of flag.notMapped) this.note(key, part, reason);
    const variants = new VariantKeys(flag.variants.map((variant) => variant.key));
    for (const [before, now] of variants.changed()) this.note(key, `variant ${before}`, `is ${now} here`);
    const distribution = distributionOf(flag);
    const { groups, lost } = this.groupsOf(flag, key, variants, distribution);
    const active = flag.active && !lost;
    if (lost) this.switchedOff.add(key);
    if (lost && flag.active) this.note(key, "the flag", "is switched off until you have looked at it");
    this.items.push({
      key,
      ...(flag.name ? { name: flag.name } : {}),
      active,
      ...(flag.tags?.length ? { tags: [...new Set(flag.tags)] } : {}),
      ...(flag.runtime === undefined || flag.runtime === "all" ? {} : { evaluation_runtime: flag.runtime }),
      filters: {
        groups,
        ...multivariateOf(flag, variants, distribution),
        ...payloadsOf(flag, variants),
      },
    });
  }

  private groupsOf(
    flag: ForeignFlag,
    key: string,
    variants: VariantKeys,
    distribution: ReadonlyMap<string, number>,
  ): { groups: JsonObject[]; lost: boolean } {
    const groups: JsonObject[] = [];
    const takenOut: Expression[] = [];
    let lost = false;
    for (const rule of flag.rules) {
      const shares = sharesOf(rule.outcome);
      try {
        const unknowns = unknownsIn(rule.when);
        if (unknowns.length > 0) {
          for (const why of unknowns) this.note(key, rule.name, why);
          lost = true;
          continue;
        }
        const when: Expression = { all: [this.withKeys(rule.when), ...takenOut.map(not)] };
        if (shares.length > 0) {
          for (const properties of alternatives(when)) {
            groups.push(...setsOf(properties, shares, variants, distribution));
          }
        }
        if (endsOff(rule, shares)) {
          // What cannot be said as an opposite must be known now, not at the rule that needs it.
          alternatives(not(this.withKeys(rule.when)));
          takenOut.push(this.withKeys(rule.when));
        }
      } catch (error) {
        if (!(error instanceof NotSayable)) throw error;
        this.note(key, rule.name, error.message);
        lost = true;
      }
    }
    return { groups, lost };
  }

  private withKeys(expression: Expression): Expression {
    if ("flag" in expression) return { ...expression, flag: this.keyOf(expression.flag) };
    if ("not" in expression) return not(this.withKeys(expression.not));
    if ("all" in expression) return { all: expression.all.map((part) => this.withKeys(part)) };
    if ("any" in expression) return { any: expression.any.map((part) => this.withKeys(part)) };
    return expression;
  }
}

const keyLengthMax = 400;

/**
 * Whether somebody whom the rule fits may end there without the flag.
 *
 * @throws {NotSayable} some end there, and others of those who have no share go on.
 */
function endsOff({ outcome, rest }: ForeignRule, shares: readonly Share[]): boolean {
  const on = shares.at(-1)?.upTo ?? 0;
  if (on >= 100) return false;
  if (rest === "off") return true;
  const off = outcome.reduce((sum, { variant, percent }) => sum + (variant === false ? percent : 0), 0);
  if (off === 0) return false;
  if (on + off >= 99.999) return true;
  throw new NotSayable("some get nothing while others go on to the next rule");
}

interface Share {
  variant: string | true;
  percent: number;
  /** The sum of the percentages up to this one. */
  upTo: number;
}

/** The shares in which the flag is on; whoever is off stands behind them. */
function sharesOf(outcome: Outcome): Share[] {
  let upTo = 0;
  return outcome.flatMap(({ variant, percent }) => {
    if (variant === false || !(percent > 0)) return [];
    upTo = Math.min(100, rounded(upTo + percent));
    return [{ variant, percent, upTo }];
  });
}

function setsOf(
  properties: JsonObject[],
  shares: readonly Share[],
  variants: VariantKeys,
  distribution: ReadonlyMap<string, number>,
): JsonObject[] {
  const [first] = shares;
  if (first?.variant === true || isDistribution(shares, distribution)) {
    return [{ properties, rollout_percentage: shares.at(-1)!.upTo }];
  }
  return shares.map(({ variant, upTo }) => ({
    properties,
    rollout_percentage: upTo,
    variant: variants.of(variant as string),
  }));
}

/** The shares of the variants that the whole flag has: those of the last rule that shares out. */
function distributionOf(flag: ForeignFlag): ReadonlyMap<string, number> {
  const outcomes = flag.rules.map(({ outcome }) => sharesOf(outcome)).filter((shares) => shares.length > 0);
  const shares = outcomes.findLast((each) => each.length > 1) ?? outcomes.at(-1) ?? [];
  const total = shares.reduce((sum, { percent }) => sum + percent, 0);
  const known = new Map(
    shares.flatMap(({ variant, percent }) =>
      typeof variant === "string"
        ? [[variant, total > 0 ? rounded((percent / total) * 100) : 0] as const]
        : [],
    ),
  );
  const [first] = flag.variants;
  if (known.size === 0 && first !== undefined) known.set(first.key, 100);
  // However the parts are rounded, together they are everybody.
  const [largest] = [...known].sort(([, a], [, b]) => b - a);
  const sum = [...known.values()].reduce((all, percent) => all + percent, 0);
  if (largest !== undefined) known.set(largest[0], rounded(largest[1] + 100 - sum));
  return known;
}

function isDistribution(shares: readonly Share[], distribution: ReadonlyMap<string, number>): boolean {
  const total = shares.at(-1)?.upTo ?? 0;
  if (shares.length < 2 || shares.length !== [...distribution.values()].filter((part) => part > 0).length) {
    return false;
  }
  return shares.every(
    ({ variant, percent }) =>
      typeof variant === "string" &&
      Math.abs((distribution.get(variant) ?? -1) - (percent / total) * 100) < 0.001,
  );
}

function multivariateOf(
  flag: ForeignFlag,
  keys: VariantKeys,
  distribution: ReadonlyMap<string, number>,
): JsonObject {
  if (flag.variants.length === 0) return {};
  const variants = flag.variants.map(({ key }) => ({
    key: keys.of(key),
    rollout_percentage: distribution.get(key) ?? 0,
  }));
  return { multivariate: { variants } };
}

function payloadsOf(flag: ForeignFlag, keys: VariantKeys): JsonObject {
  const payloads = [
    ...flag.variants.flatMap(({ key, payload }) => (payload === undefined ? [] : [[keys.of(key), payload]])),
    ...(flag.payload === undefined || flag.variants.length > 0 ? [] : [["true", flag.payload]]),
  ] as [string, Json][];
  if (payloads.length === 0) return {};
  return { payloads: Object.fromEntries(payloads.map(([key, value]) => [key, JSON.stringify(value)])) };
}

/** Keys of variants may not have every character. */
class VariantKeys {
  private readonly byOriginal = new Map<string, string>();

  constructor(originals: readonly string[]) {
    for (const original of originals) {
      const plain = original.replace(/[^a-zA-Z0-9_./-]+/g, "-").slice(0, keyLengthMax) || "variant";
      const taken = new Set(this.byOriginal.values());
      let unique = plain;
      for (let number = 2; taken.has(unique); number++) unique = `${plain}-${number}`;
      this.byOriginal.set(original, unique);
    }
  }

  of(original: string): string {
    const key = this.byOriginal.get(original);
    if (key === undefined) throw new NotSayable(`there is no variant ${JSON.stringify(original)}`);
    return key;
  }

  changed(): [string, string][] {
    return [...this.byOriginal].filter(([before, now]) => before !== now);
  }
}

/** Percentages with at most six digits behind the point. */
export const rounded = (percent: number): number => Math.round(percent * 1e6) / 1e6;

/** Values of a flag as variants: texts that may be keys are their own; others are named and become payloads. */
export function variantsOfValues(
  values: readonly { value: Json; name?: string }[],
): { key: string; payload?: Json }[] {
  const taken = new Set<string>();
  return values.map(({ value, name }, index) => {
    const isKey = typeof value === "string" && /^[a-zA-Z0-9_./-]{1,400}$/.test(value);
    const wanted = isKey
      ? value
      : name || (typeof value === "number" ? asText(value) : `variant-${index + 1}`);
    let key = wanted;
    for (let number = 2; taken.has(key); number++) key = `${wanted}-${number}`;
    taken.add(key);
    return isKey && key === value ? { key } : { key, payload: value };
  });
}
