/** Why a flag has its value for a user, as in the API. */

import type { FlagExplanation as Explanation } from "../lib/api-types.ts";
import { messages } from "../messages/index.ts";

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

export type { Explanation };

/** The value in one word. */
export function shownValue({ value, status }: Explanation): string {
  if (status === "inactive") return messages.flag.off;
  if (value === null) return messages.flag.tryIt.notComputed;
  return typeof value === "string" ? value : value === true ? messages.flag.on : messages.flag.off;
}
