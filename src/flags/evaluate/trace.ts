/**
 * What happened while one flag was computed, for people who ask why.
 *
 * Evaluation fills a trace only when it is given one; with a trace it looks at every filter of a condition instead
 * of stopping at the first mismatch, and comes to the same result.
 */

import type { Json } from "../../lib/json.ts";
import type { PropertySource } from "./person-view.ts";
import type { ReasonCode } from "./reasons.ts";
import type { Identity } from "./request.ts";

export interface FilterTrace {
  type: string;
  key: string | null;
  operator: string;
  /** The filter's value. */
  wanted: Json;
  /** The property's value, the cohort membership or the other flag's value; undefined when there is none. */
  found: Json | undefined;
  source: PropertySource | "cohort" | "flag";
  /** `error`: the two cannot be compared. `failed`: the whole flag cannot be computed. */
  result: "match" | "mismatch" | "error" | "failed";
  note?: string;
}

export interface RolloutTrace {
  percentage: number;
  /** The text that was hashed. */
  hashed: string;
  /** Its place from 0 to 1; in the rollout up to percentage / 100. */
  place: number;
  isIn: boolean;
}

export interface ConditionTrace {
  index: number;
  /** Whom the condition was computed for; null when the request does not name such a group or device. */
  identity: Identity | null;
  filters: FilterTrace[];
  rollout: RolloutTrace | null;
  outcome: ReasonCode | "failed";
}

export interface VariantTrace {
  chosen: string | null;
  /** True when the condition names the variant, so that no hash decided. */
  isForced: boolean;
  hashed: string;
  place: number;
  shares: { key: string; from: number; below: number }[];
}

export interface HoldoutTrace {
  variant: string;
  rollout: RolloutTrace;
}

export interface FlagTrace {
  enrollment: { key: string; found: Json | undefined; isDecisive: boolean } | null;
  superCondition: ConditionTrace | null;
  holdouts: HoldoutTrace[];
  conditions: ConditionTrace[];
  variant: VariantTrace | null;
}

export function emptyTrace(): FlagTrace {
  return { enrollment: null, superCondition: null, holdouts: [], conditions: [], variant: null };
}
