/**
 * Experience continuity: an identified person keeps the values from before.
 *
 * Plans which overrides are stored and which ones apply; the caller stores them. Source: contract, flag-evaluation 10.
 */

import type { OverriddenId } from "../../persons/person-reader.ts";
import type { FlagSet } from "./model.ts";

interface HashKeyOverride {
  distinctId: string;
  flagKey: string;
  hashKey: string;
}

export interface OverridePlan {
  /** To be inserted; a stored hash key is not replaced. */
  toStore: HashKeyOverride[];
  /** Overrides that apply to this request: pass them as `hashKeyOverrides`. */
  effective: ReadonlyMap<string, string>;
}

/**
 * Plans the overrides of one request.
 *
 * @param ids            `distinct_id` first, then the former ID when it is another person's.
 * @param anonDistinctId `$anon_distinct_id` of the request, if any. Without it nothing is stored.
 */
export function planHashKeyOverrides(
  set: FlagSet,
  ids: readonly OverriddenId[],
  anonDistinctId: string | null | undefined,
): OverridePlan {
  const toStore: HashKeyOverride[] = [];
  const effective = new Map<string, string>();
  for (const { distinctId, hasPerson, isOld, overrides } of ids) {
    // The first ID with an override wins: its rows are read before those of the former ID.
    for (const [flagKey, hashKey] of overrides) if (!effective.has(flagKey)) effective.set(flagKey, hashKey);
    if (!anonDistinctId) continue;
    for (const flagKey of set.needs.continuityKeys) {
      // A former ID without a person is hashed as itself anyway.
      const isItself = !hasPerson && distinctId === anonDistinctId;
      if (!isItself && (isOld || !overrides.has(flagKey)))
        toStore.push({ distinctId, flagKey, hashKey: anonDistinctId });
      // An ID without a person joins the person of the former ID, whose overrides win.
      if (hasPerson && !effective.has(flagKey)) effective.set(flagKey, anonDistinctId);
    }
  }
  if (anonDistinctId && ids.length > 0) {
    for (const flagKey of set.needs.continuityKeys)
      if (!effective.has(flagKey)) effective.set(flagKey, anonDistinctId);
  }
  return { toStore, effective };
}
