/** What the rollback monitor checks. */

import type { MetadataTx } from "../accounts/db.ts";
import type { Flag } from "../flags/fields.ts";
import type { JsonObject } from "../lib/json/value.ts";

/** Why a flag is rolled back, for its activity log. */
export interface Violation {
  note: string;
  jobType: "guardrail" | "rollback_condition";
  jobId: string;
  payload: JsonObject;
}

/** One condition of one flag. */
export interface Watch {
  /** Identifies the condition; a changed condition has another key. */
  key: string;
  projectId: number;
  flagId: number;
  find(now: Date): Promise<Violation | undefined>;
  /** Whether the condition still applies, in the transaction of the rollback. */
  applies(t: MetadataTx, flag: Flag): boolean;
}
