/** Evaluated flags in the management API. Source: contract, management-api 5.14 and 5.16. */

import type { JsonObject } from "../../lib/json/value.ts";
import { renderDefinition } from "../definitions/local-evaluation.ts";
import { clientValue, type Evaluation } from "../evaluate/evaluate.ts";
import type { FlagSet } from "../evaluate/model.ts";
import { type FlagDefinition, surveyFlagPrefix } from "../rules/types.ts";

/** `evaluation_reasons`: every evaluated flag, and every inactive flag with the reason `disabled`. */
export function renderEvaluationReasons(
  set: FlagSet,
  evaluation: Evaluation,
  flagKeys?: readonly string[],
): JsonObject {
  const evaluated = [...evaluation.results.values()].map((result): [string, JsonObject] => {
    const { code, conditionIndex, description } = result.reason;
    const reason = { reason: code, condition_index: conditionIndex, description };
    return [result.key, { value: clientValue(result), evaluation: reason }];
  });
  const isRequested = (key: string) =>
    flagKeys === undefined || flagKeys.length === 0 || flagKeys.includes(key);
  const disabled = set.inactive
    .filter(({ key }) => isRequested(key))
    .map(({ key }): [string, JsonObject] => {
      const reason = { reason: "disabled", condition_index: null, description: "Feature flag is disabled" };
      return [key, { value: false, evaluation: reason }];
    });
  return Object.fromEntries([...evaluated, ...disabled]);
}

/**
 * `my_flags`: all flags with the caller's values, newest first. Flags without a value, such as inactive ones, are off.
 *
 * @param projectId shown as `team_id`.
 */
export function renderMyFlags(
  flags: Iterable<FlagDefinition>,
  evaluation: Evaluation,
  projectId: number,
): { feature_flag: JsonObject; value: boolean | string }[] {
  return [...flags]
    .filter(({ deleted, key }) => !deleted && !key.startsWith(surveyFlagPrefix))
    .sort((a, b) => b.id - a.id)
    .map((flag) => {
      const result = evaluation.results.get(flag.key);
      return {
        feature_flag: renderDefinition(flag, projectId),
        value: result === undefined ? false : clientValue(result),
      };
    });
}
