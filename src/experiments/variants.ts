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

/** The variants of an experiment's flag that its results contain. */
export const analyzedVariants = (
  { excludedVariants }: Pick<Experiment, "excludedVariants">,
  filters: JsonObject,
): string[] => variantKeys(filters).filter((key) => !excludedVariants.includes(key));

export const variantKeys = (filters: JsonObject): string[] =>
  getVariants(filters).map((variant) => String(variant.key));
