/** How often flags were asked for. */

import { ask, queryText } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";

export interface FlagUsage {
  /** The oldest first. */
  days: string[];
  results: {
    id: number;
    last_called_at: string | null;
    total: number;
    values: { value: string; total: number; counts: number[] }[];
  }[];
}

/** Calls by value and day. */
export function readUsage(ids: readonly number[], days: number, signal: AbortSignal): Promise<FlagUsage> {
  return ask(inProject(`feature_flags/usage/${queryText({ ids: ids.join(","), days })}`), { signal });
}
