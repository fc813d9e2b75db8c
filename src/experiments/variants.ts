/** Variants of an experiment and their part in its results; without statistics, which load later. */

import { getVariants } from "../flags/rules/types.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { Experiment } from "./store.ts";

/** The configured variant, else `control`, else the first. */
export function baselineKey(statsConfig: JsonObject, variants: readonly string[]): string {
  const named = statsConfig.baseline_variant_key;
  if (typeof named === "string" && variants.includes(named)) return named;
  return variants.includes("control") ? "control" : (variants[0] ?? "control");
}

/**
 * The variants that results leave out. Exclusions have no effect once the flag does not have the variant, the variant is
 * the baseline, or nothing is left to compare it with.
 */
export function getExcluded(
  { excludedVariants, statsConfig }: Pick<Experiment, "excludedVariants" | "statsConfig">,
  filters: JsonObject,
): string[] {
  const variants = variantKeys(filters);
  const baseline = baselineKey(statsConfig, variants);
  const excluded = variants.filter((key) => excludedVariants.includes(key) && key !== baseline);
  return excluded.length + 1 < variants.length ? excluded : [];
}

export const variantKeys = (filters: JsonObject): string[] =>
  getVariants(filters).map((variant) => String(variant.key));
