/**
 * Rules of another product as condition sets. Pure.
 *
 * Elsewhere the first matching rule decides, even if it is "off"; here the first matching condition set whose rollout
 * includes the user. So users that a rule switches off are excluded from later rules, and percentages of a rule become
 * sets with growing percentages: a user's position is the same in every set of a flag.
 */

import type { Json, JsonObject } from "../../../lib/json/value.ts";
import { alternatives, type Expression, not, UnsupportedRuleError, unknownsIn } from "./expression.ts";
import {
  type Part,
  type Rollout,
  rounded,
  type VariantKeys,
  type VendorFlag,
  type VendorRule,
} from "./vendor-flag.ts";

/** The filters of a flag, and the parts of its rules that they cannot express. */
export function toFilters(
  flag: VendorFlag,
  variants: VariantKeys,
): { filters: JsonObject; obstacles: Part[] } {
  const distribution = getDistribution(flag, variants);
  const obstacles: Part[] = [];
  const groups = new ConditionSets(variants, distribution, obstacles).build(flag.rules);
  return {
    filters: { groups, ...getMultivariate(flag, variants, distribution), ...getPayloads(flag, variants) },
    obstacles,
  };
}

/** Maximum number of condition sets of one flag. */
const setsMax = 500;

class ConditionSets {
  private readonly groups: JsonObject[] = [];
  /** Conditions of users that an earlier rule has switched off. */
  private readonly removed: Expression[] = [];
  /** Rules with a percentage, after which the others continue. */
  private readonly partial: VendorRule[] = [];

  constructor(
    private readonly variants: VariantKeys,
    private readonly distribution: ReadonlyMap<string, number>,
    private readonly obstacles: Part[],
  ) {}

  build(rules: readonly VendorRule[]): JsonObject[] {
    const lastOn = rules.findLastIndex(({ rollout }) => getShares(rollout).length > 0);
    for (const [index, rule] of rules.entries()) {
      const unknowns = unknownsIn(rule.when);
      for (const reason of unknowns) this.obstacles.push({ part: rule.name, reason });
      if (unknowns.length > 0) continue;
      try {
        this.add(rule, index < lastOn);
      } catch (error) {
        if (!(error instanceof UnsupportedRuleError)) throw error;
        this.obstacles.push({ part: rule.name, reason: error.message });
      }
    }
    return this.groups;
  }

  /** @param isFollowed whether a later rule has users; otherwise it does not matter who ends at this one. */
  private add(rule: VendorRule, isFollowed: boolean): void {
    const shares = getShares(rule.rollout);
    const isOff = isFollowed && endsOff(rule, shares);
    this.checkSeed(rule, shares);
    if (shares.length > 0) {
      const when: Expression = { all: [rule.when, ...this.removed.map(not)] };
      const sets = alternatives(when).flatMap((properties) => this.setsFor(properties, shares));
      if (this.groups.length + sets.length > setsMax)
        throw new UnsupportedRuleError(`the flag requires more than ${setsMax} condition sets`);
      this.groups.push(...sets);
    }
    if (!isOff) return;
    // A rule whose negation cannot be expressed must fail here, not at the later rule that needs it.
    alternatives(not(rule.when));
    this.removed.push(rule.when);
  }

  /** Here a user has one position in all rules of a flag, so the rules' percentages overlap. */
  private checkSeed(rule: VendorRule, shares: readonly Share[]): void {
    const on = shares.at(-1)?.upTo ?? 0;
    if (on <= 0 || on >= 100) return;
    const other = this.partial.find(({ seed }) => seed !== rule.seed);
    if (other !== undefined)
      throw new UnsupportedRuleError(`its percentage is bucketed independently of ${other.name}`);
    if (rule.rest === "next rule") this.partial.push(rule);
  }

  private setsFor(properties: JsonObject[], shares: readonly Share[]): JsonObject[] {
    const total = shares.at(-1)!.upTo;
    if (shares.some(({ variant }) => variant === true)) {
      if (shares.every(({ variant }) => variant === true) && this.variants.isEmpty)
        return [{ properties, rollout_percentage: total }];
      // A name is one that does not exist.
      for (const { variant } of shares) if (variant !== true) this.variants.getKey(variant);
      throw new UnsupportedRuleError("some users get the flag without a variant, and others with one");
    }
    // Checked in any case: a distribution may name a variant that does not exist.
    const keys = shares.map(({ variant }) => this.variants.getKey(variant as string));
    if (isDistribution(shares, this.distribution)) return [{ properties, rollout_percentage: total }];
    return shares.map(({ upTo }, index) => ({
      properties,
      rollout_percentage: upTo,
      variant: keys[index]!,
    }));
  }
}

/**
 * Whether a user who matches the rule may end there without the flag.
 *
 * @throws {UnsupportedRuleError} some users without a percentage end there, and others continue.
 */
function endsOff({ rollout, rest }: VendorRule, shares: readonly Share[]): boolean {
  const on = shares.at(-1)?.upTo ?? 0;
  if (on >= 100) return false;
  if (rest === "off") return true;
  const off = rollout.reduce((sum, { variant, percent }) => sum + (variant === false ? percent : 0), 0);
  if (off === 0) return false;
  if (on + off >= 99.999) return true;
  throw new UnsupportedRuleError("some users get no value while others continue with the next rule");
}

interface Share {
  variant: string | true;
  percent: number;
  /** The sum of the percentages up to this one. */
  upTo: number;
}

/** The ranges in which the flag is on; users for whom it is off are positioned after them. */
function getShares(rollout: Rollout): Share[] {
  let upTo = 0;
  return rollout.flatMap(({ variant, percent }) => {
    if (variant === false || !(percent > 0)) return [];
    const sum = upTo + percent;
    // Parts of 100, such as thirds, are rounded.
    upTo = sum > 99.999 ? 100 : rounded(sum);
    return [{ variant, percent, upTo }];
  });
}

/** The distribution of the variants in the whole flag: that of the last rule with a distribution. */
function getDistribution(flag: VendorFlag, variants: VariantKeys): ReadonlyMap<string, number> {
  const isKnown = ({ variant }: Share) => typeof variant === "string" && variants.has(variant);
  const rollouts = flag.rules
    .map(({ rollout }) => getShares(rollout).filter(isKnown))
    .filter((shares) => shares.length > 0);
  const shares = rollouts.findLast((each) => each.length > 1) ?? rollouts.at(-1) ?? [];
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
  // However the parts are rounded, they must add up to 100 percent.
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

function getMultivariate(
  flag: VendorFlag,
  keys: VariantKeys,
  distribution: ReadonlyMap<string, number>,
): JsonObject {
  if (flag.variants.length === 0) return {};
  const variants = flag.variants.map(({ key }) => ({
    key: keys.getKey(key),
    rollout_percentage: distribution.get(key) ?? 0,
  }));
  return { multivariate: { variants } };
}

function getPayloads(flag: VendorFlag, keys: VariantKeys): JsonObject {
  const payloads = [
    ...flag.variants.flatMap(({ key, payload }) =>
      payload === undefined ? [] : [[keys.getKey(key), payload]],
    ),
    ...(flag.payload === undefined || flag.variants.length > 0 ? [] : [["true", flag.payload]]),
  ] as [string, Json][];
  if (payloads.length === 0) return {};
  return { payloads: Object.fromEntries(payloads.map(([key, value]) => [key, JSON.stringify(value)])) };
}
