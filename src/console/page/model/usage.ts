/** Evaluation counts of flags. */

import { queryString, request } from "../lib/api.ts";
import type { FlagUsage } from "../lib/api-types.ts";
import { inProject } from "../lib/session.ts";

export type { FlagUsage };

/** Evaluations by value and day. */
export function readUsage(ids: readonly number[], days: number, signal: AbortSignal): Promise<FlagUsage> {
  return request(inProject(`feature_flags/usage/${queryString({ ids: ids.join(","), days })}`), { signal });
}
