/** Evaluation counts of flags. */

import { queryString, request } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";

export interface FlagUsage {
  /** Oldest first. */
  days: string[];
  results: {
    id: number;
    last_called_at: string | null;
    total: number;
    values: { value: string; total: number; counts: number[] }[];
  }[];
}

/** Evaluations by value and day. */
export function readUsage(ids: readonly number[], days: number, signal: AbortSignal): Promise<FlagUsage> {
  return request(inProject(`feature_flags/usage/${queryString({ ids: ids.join(","), days })}`), { signal });
}
