/**
 * `rollout_percentage` beside `filters`: the rollout of a flag's only condition set. Source: decision 10.
 *
 * Pure. A number that says something new is never ignored: it is applied, or refused.
 */

import type { JsonObject } from "../../lib/json.ts";
import { FlagInvalid } from "./flag-invalid.ts";
import { percentageOf, withGroups } from "./stored-filters.ts";
import { groupsOf } from "./types.ts";

/**
 * The filters with the percentage in their only condition set; without one they get one without conditions.
 *
 * @param filters of the right shape.
 * @param given   what of them the same request says.
 * @param percentage an integer from 0 to 100; undefined when the request has none, or the one that reading returns.
 * @throws {FlagInvalid} there are several condition sets, the request says another number in `filters`, or a remote
 *                       configuration is to be off.
 */
export function withRollout(
  filters: JsonObject,
  given: JsonObject,
  { rolloutPercentage: percentage, isRemoteConfiguration }: RolloutRequest,
): JsonObject {
  if (percentage === undefined) return filters;
  if (isRemoteConfiguration && percentage === 0) {
    throw refused("A remote configuration is always on; send `active`: false to switch it off.");
  }
  const groups = groupsOf(withGroups(filters));
  const [only] = groups;
  if (only === undefined) return { ...filters, groups: [{ properties: [], rollout_percentage: percentage }] };
  if (groups.length > 1) {
    throw refused(
      `The flag has ${groups.length} condition sets; send the rollout of each in \`filters.groups\` instead.`,
    );
  }
  const isSaid = Array.isArray(given.groups) && Object.hasOwn(only, "rollout_percentage");
  if (!isSaid) return { ...filters, groups: [{ ...only, rollout_percentage: percentage }] };
  const said = percentageOf(only);
  // A client may send back what it read of fractions, which is rounded.
  if (Math.round(said) === percentage) return filters;
  throw refused(
    `\`filters\` in the same request say ${said}, not ${percentage}; send the rollout in one of the two places, or the same in both.`,
  );
}

interface RolloutRequest {
  rolloutPercentage?: number;
  isRemoteConfiguration: boolean;
}

function refused(detail: string): FlagInvalid {
  return new FlagInvalid("invalid_input", detail, "rollout_percentage");
}
