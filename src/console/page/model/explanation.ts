/** Why a flag has its value for a user, as in the API. */

import type { FlagExplanation as Explanation } from "../lib/api-types.ts";
import { messages } from "../messages/index.ts";

export type ExplainedCondition = Explanation["conditions"][number];
export type ExplainedRollout = NonNullable<ExplainedCondition["rollout"]>;

export type { Explanation };

/** The value in one word. */
export function shownValue({ value, status }: Explanation): string {
  if (status === "inactive") return messages.flag.off;
  if (value === null) return messages.flag.tryIt.notComputed;
  return typeof value === "string" ? value : value === true ? messages.flag.on : messages.flag.off;
}
