/**
 * Experience continuity: a person who is identified keeps the values seen before.
 *
 * Decides which overrides are to be stored and which ones count; storing them is the caller's work.
 * Source: contract, flag-evaluation 10.
 */

import type { FlagSet } from "./model.ts";

/** A person found for the distinct id or the former id of a request, with the overrides stored for it. */
export interface PersonOverrides {
  /** Which of the two ids it was found by. */
  distinctId: string;
  /** Hash ids by flag key. */
  overrides: ReadonlyMap<string, string>;
}

interface HashKeyOverride {
  distinctId: string;
  flagKey: string;
  hashKey: string;
}

export interface OverridePlan {
  /** To be inserted; a row that exists meanwhile stays as it is. */
  toStore: HashKeyOverride[];
  /** What counts for this request: pass it on as `hashKeyOverrides`. */
  effective: ReadonlyMap<string, string>;
}

/**
 * Plans the overrides of one request.
 *
 * @param persons        the person of `distinct_id` first, then the person of the former id when it is another one.
 * @param anonDistinctId `$anon_distinct_id` of the request, if any. Without it nothing is stored.
 */
export function planHashKeyOverrides(
  set: FlagSet,
  persons: readonly PersonOverrides[],
  anonDistinctId: string | null | undefined,
): OverridePlan {
  const toStore: HashKeyOverride[] = [];
  const effective = new Map<string, string>();
  for (const { distinctId, overrides } of persons) {
    // The first person to have an override wins: its rows are read before those of the former id.
    for (const [flagKey, hashKey] of overrides) if (!effective.has(flagKey)) effective.set(flagKey, hashKey);
    if (!anonDistinctId) continue;
    for (const flagKey of set.needs.continuityKeys) {
      if (overrides.has(flagKey)) continue;
      toStore.push({ distinctId, flagKey, hashKey: anonDistinctId });
      if (!effective.has(flagKey)) effective.set(flagKey, anonDistinctId);
    }
  }
  return { toStore, effective };
}
