/**
 * Changes of an experiment's flag in a PATCH of the experiment: `feature_flag`, or PostHog's older
 * `parameters.feature_flag_variants` (contract: experiments 1.2).
 */

import type { Flag } from "../flags/fields.ts";
import { getVariants } from "../flags/rules/types.ts";
import { withoutDisplayNames } from "../flags/store/flag-conflicts.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import type { EditInput } from "./fields.ts";
import { assertVariants, changeFlag, type ExperimentActor, readVariants } from "./flag-changes.ts";
import type { Experiment } from "./store.ts";

/** What clients configure through an experiment; other members of the filters are those that they read. */
const filterNames = ["groups", "multivariate", "payloads"] as const;

/**
 * Changes the flag as the request says; sending back what was read changes nothing.
 *
 * @throws {InvalidFieldError} `experiment_running`: a launched experiment keeps its variants, and its percentages change
 * only with `update_feature_flag_params`.
 */
export function changeFlagConfig(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  experiment: Experiment,
  flag: Flag,
  input: EditInput,
): void {
  const field = input.parameters?.feature_flag_variants === undefined ? "feature_flag" : "parameters";
  const filters = changedFilters(flag, input);
  const continuity = input.feature_flag?.ensure_experience_continuity ?? flag.ensureExperienceContinuity;
  const isContinuityChanged = continuity !== flag.ensureExperienceContinuity;
  if (Object.keys(filters).length === 0 && !isContinuityChanged) return;
  const variants = getVariants({ ...flag.filters, ...filters });
  const isLaunched = experiment.startDate !== null;
  if (isLaunched && !input.update_feature_flag_params)
    throw new InvalidFieldError(
      field,
      "experiment_running",
      "Variants of a launched experiment cannot change here; change the percentages of its feature flag.",
    );
  if (isLaunched && !Bun.deepEquals(getKeys(variants), getKeys(getVariants(flag.filters))))
    throw new InvalidFieldError(
      field,
      "experiment_running",
      "Variants of a launched experiment cannot be added, removed or renamed.",
    );
  assertVariants(variants, field);
  changeFlag(deps, actor, experiment, {
    ...(Object.keys(filters).length === 0 ? {} : { filters }),
    ...(isContinuityChanged ? { ensure_experience_continuity: continuity } : {}),
  });
}

const getKeys = (variants: readonly JsonObject[]) => variants.map(({ key }) => String(key)).sort();

/** The parts of the filters that a request changes. */
function changedFilters({ filters }: Flag, { parameters, feature_flag: sentFlag }: EditInput): JsonObject {
  const multivariate = isJsonObject(filters.multivariate) ? filters.multivariate : {};
  const variants = parameters?.feature_flag_variants;
  const sent: JsonObject = {
    ...(isJsonObject(sentFlag?.filters) ? sentFlag.filters : {}),
    ...(variants === undefined
      ? {}
      : { multivariate: { ...multivariate, variants: readVariants(variants) } }),
  };
  return Object.fromEntries(
    filterNames.flatMap((name): [string, Json][] => {
      const value = sent[name];
      if (value === undefined || Bun.deepEquals(withoutDisplayNames(value), filters[name] ?? null)) return [];
      return [[name, value]];
    }),
  );
}
