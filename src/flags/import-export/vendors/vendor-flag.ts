/** A flag of another product, in the form that readers produce. Pure. */

import type { Json, JsonObject } from "../../../lib/json/value.ts";
import { type Expression, matchesAll, UnsupportedRuleError } from "./expression.ts";
import { stringify } from "./values.ts";

/** A part of a flag, and why it is not the same here. */
export interface Part {
  part: string;
  reason: string;
}

/** Distribution in percent; `variant` false is off, true is on without a variant. */
export type Rollout = readonly { variant: string | boolean; percent: number }[];

export interface VendorRule {
  /** Its name in the report. */
  name: string;
  when: Expression;
  rollout: Rollout;
  /** For users in none of the percentages: off, or continue with the next rule. */
  rest: "off" | "next rule";
  /** Rules with the same one have the same position of a user. */
  seed?: string;
}

export interface VendorFlag {
  key: string;
  name?: string;
  active: boolean;
  tags?: readonly string[];
  runtime?: "all" | "client" | "server";
  /** Empty: the flag is boolean. */
  variants: readonly { key: string; payload?: Json }[];
  /** The payload of a flag without variants. */
  payload?: Json;
  rules: readonly VendorRule[];
  /** Parts that cannot be converted: the flag would match other users, and is imported switched off. */
  obstacles: readonly Part[];
  /** Differences that are reported, and leave the users of the flag the same. */
  notes?: readonly Part[];
}

export const always = (variant: string | boolean): Rollout => [{ variant, percent: 100 }];

/** The last rule of most products. */
export const otherwise = (rollout: Rollout): VendorRule => ({
  name: "the default rule",
  when: matchesAll,
  rollout,
  rest: "off",
});

/** Percentages with at most six decimal places. */
export const rounded = (percent: number): number => Math.round(percent * 1e6) / 1e6;

/**
 * Named values of a flag as variants.
 * @returns `keys`: the key of each name; `isBoolean`: all values are booleans, which need no variants
 */
export function variantsOfNames(values: JsonObject) {
  const named = Object.entries(values) as [string, Json][];
  const isBoolean = named.every(([, value]) => typeof value === "boolean");
  const variants = variantsOfValues(named.map(([name, value]) => ({ name, value })));
  const keys = new Map(named.map(([name], index) => [name, variants[index]!.key]));
  return { variants: isBoolean ? [] : variants, keys, isBoolean };
}

/** Values of a flag as variants: strings that are valid keys stay keys; others are named and become payloads. */
export function variantsOfValues(
  values: readonly { value: Json; name?: string }[],
): { key: string; payload?: Json }[] {
  const used = new Set<string>();
  return values.map(({ value, name }, index) => {
    const isKey = typeof value === "string" && /^[a-zA-Z0-9_./-]{1,400}$/.test(value);
    const wanted = isKey
      ? value
      : name || (typeof value === "number" ? stringify(value) : `variant-${index + 1}`);
    const key = uniqueKey(wanted, used);
    used.add(key);
    return isKey && key === value ? { key } : { key, payload: value };
  });
}

/** Maximum length of a variant's key, and of a flag's. */
export const keyLengthMax = 400;

/** Variant keys allow only some characters. */
export class VariantKeys {
  private readonly byOriginal = new Map<string, string>();

  constructor(originals: readonly string[]) {
    for (const original of originals) {
      const plain = original.replace(/[^a-zA-Z0-9_./-]+/g, "-").slice(0, keyLengthMax) || "variant";
      const unique = uniqueKey(plain, new Set(this.byOriginal.values()));
      this.byOriginal.set(original, unique);
    }
  }

  get isEmpty(): boolean {
    return this.byOriginal.size === 0;
  }

  all(): string[] {
    return [...this.byOriginal.values()];
  }

  has(original: string): boolean {
    return this.byOriginal.has(original);
  }

  /** @throws {UnsupportedRuleError} the flag has no such variant. */
  getKey(original: string): string {
    const key = this.byOriginal.get(original);
    if (key === undefined)
      throw new UnsupportedRuleError(`variant ${JSON.stringify(original)} does not exist`);
    return key;
  }

  changed(): [string, string][] {
    return [...this.byOriginal].filter(([before, now]) => before !== now);
  }
}

/** A key that is not taken: with a number if necessary. */
export function uniqueKey(key: string, used: ReadonlySet<string>): string {
  let unique = key;
  for (let number = 2; used.has(unique); number++) {
    const suffix = `-${number}`;
    unique = key.slice(0, keyLengthMax - suffix.length) + suffix;
  }
  return unique;
}
