/** Why a flag has its value for a user, as in the API. */

import { words } from "../messages/index.ts";

export interface ExplainedRollout {
  percentage: number;
  hashed: string;
  place: number;
  is_in: boolean;
}

export interface ExplainedCondition {
  index: number;
  outcome: string;
  identity: { kind: string; id: string } | null;
  filters: {
    type: string;
    key: string | null;
    operator: string;
    value: unknown;
    found: unknown;
    source: string;
    result: string;
    note: string | null;
  }[];
  rollout: ExplainedRollout | null;
}

export interface Explanation {
  flag_key: string;
  flag_id: number | null;
  distinct_id: string;
  person: { uuid: string } | null;
  status: string;
  value: unknown;
  payload: string | null;
  reason: { code: string; condition_index: number | null; description: string } | null;
  failed: boolean;
  dependencies: { id: number | null; key: string | null; value: unknown }[];
  super_condition: ExplainedCondition | null;
  holdouts: { variant: string; rollout: ExplainedRollout }[];
  conditions: ExplainedCondition[];
  variant: {
    chosen: string | null;
    is_forced: boolean;
    hashed: string;
    place: number;
    shares: { key: string; from: number; below: number }[];
  } | null;
}

/** The value in one word. */
export function shownValue({ value, status }: Explanation): string {
  if (status === "inactive") return words.flag.off;
  if (value === null) return words.flag.tryIt.notComputed;
  return typeof value === "string" ? value : value === true ? words.flag.on : words.flag.off;
}
