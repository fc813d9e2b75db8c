/**
 * `rollout_percentage` next to `filters`: the rollout of a flag's only condition set. Source: decision 10.
 *
 * Pure. A changed percentage is never ignored: it is applied or rejected.
 */

import type { JsonObject } from "../../lib/json/value.ts";
import { InvalidFlagError } from "./errors.ts";
import { toPercentage, withGroups } from "./stored-filters.ts";
import { getGroups } from "./types.ts";

/**
 * The filters with the percentage in their only condition set; without one, a set without conditions is added.
 *
 * @param filters of the right shape.
 * @param sent   the part of them in the same request.
 * @param percentage an integer from 0 to 100; undefined when absent from the request, or equal to the value that
 *                   reading returns.
 * @throws {InvalidFlagError} there are several condition sets, the request has another percentage in `filters`, or a remote
 * configuration would be off.
 */
export function withRollout(
  filters: JsonObject,
  sent: JsonObject,
  { rolloutPercentage: percentage, isRemoteConfiguration }: RolloutRequest,
): JsonObject {
  if (percentage === undefined) return filters;
  if (isRemoteConfiguration && percentage === 0) {
    throw rejection("A remote configuration is always on. Send `active`: false to disable it.");
  }
  const groups = getGroups(withGroups(filters));
  const [only] = groups;
  if (only === undefined) return { ...filters, groups: [{ properties: [], rollout_percentage: percentage }] };
  if (groups.length > 1) {
    throw rejection(
      `The flag has ${groups.length} condition sets; send the rollout of each in \`filters.groups\` instead.`,
    );
  }
  const isSaid = Array.isArray(sent.groups) && Object.hasOwn(only, "rollout_percentage");
  if (!isSaid) return { ...filters, groups: [{ ...only, rollout_percentage: percentage }] };
  const message = toPercentage(only);
  // A client may send back a rounded fraction that it has read.
  if (Math.round(message) === percentage) return filters;
  throw rejection(
    `\`filters\` in the same request have the rollout ${message}, not ${percentage}. Send the rollout once, or the same value in both.`,
  );
}

interface RolloutRequest {
  rolloutPercentage?: number;
  isRemoteConfiguration: boolean;
}

function rejection(detail: string): InvalidFlagError {
  return new InvalidFlagError("invalid_input", detail, "rollout_percentage");
}
