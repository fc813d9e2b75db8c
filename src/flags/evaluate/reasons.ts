/** Evaluation reasons: codes, their rank and their messages. Source: contract, flag-evaluation 8. */

export type ReasonCode =
  | "super_condition_value"
  | "holdout_condition_value"
  | "condition_match"
  | "out_of_rollout_bound"
  | "no_condition_match"
  | "no_group_type"
  | "flag_disabled"
  | "missing_dependency";

export type FailureCode =
  | "dependency_not_found_cohort"
  | "dependency_not_found_flag"
  | "dependency_cycle_cohort"
  | "cohort_filters_parsing_error"
  /** Stored properties could not be read; set by the reader. */
  | "database_error";

export interface Reason {
  code: ReasonCode | FailureCode;
  /** Zero-based index of the condition set, or null when none decided. */
  conditionIndex: number | null;
  description: string;
}

/** A flag could not be computed. A value, not an exception: it can occur in every request. */
export class Failure {
  constructor(
    readonly code: FailureCode,
    readonly description: string,
  ) {}
}

/** How informative a reason is; a flag that matches nothing has its most informative one. */
export const reasonScores: Record<ReasonCode, number> = {
  super_condition_value: 6,
  holdout_condition_value: 5,
  condition_match: 4,
  out_of_rollout_bound: 3,
  no_condition_match: 2,
  no_group_type: 1,
  flag_disabled: 0,
  missing_dependency: -1,
};

const sentences: Record<Exclude<ReasonCode, "condition_match">, string> = {
  super_condition_value: "Super condition value",
  holdout_condition_value: "Holdout condition value",
  out_of_rollout_bound: "Out of rollout bound",
  no_condition_match: "No matching condition set",
  no_group_type: "No group type",
  flag_disabled: "Feature flag is disabled",
  missing_dependency: "Flag cannot be evaluated due to missing dependency",
};

/** Reasons are reused: a response for a hundred flags contains a hundred, of a dozen kinds. */
const built = new Map<ReasonCode, Reason[]>();
const cachedIndexMax = 100;

/**
 * The reason of a computed flag; equal ones are usually the same object.
 *
 * @param hasSkippedGroups some condition was about a group that the request did not name; only relevant when nothing
 *                         matched.
 */
export function getReason(code: ReasonCode, conditionIndex: number | null, hasSkippedGroups = false): Reason {
  // Even indexes for those without skipped groups; null comes before index 0.
  const index = ((conditionIndex ?? -1) + 1) * 2 + (hasSkippedGroups ? 1 : 0);
  if (index > cachedIndexMax * 2) return makeReason(code, conditionIndex, hasSkippedGroups);
  let known = built.get(code);
  if (known === undefined) {
    known = [];
    built.set(code, known);
  }
  known[index] ??= Object.freeze(makeReason(code, conditionIndex, hasSkippedGroups));
  return known[index];
}

function makeReason(code: ReasonCode, conditionIndex: number | null, hasSkippedGroups: boolean): Reason {
  if (code === "condition_match") {
    return { code, conditionIndex, description: `Matched condition set ${(conditionIndex ?? 0) + 1}` };
  }
  const description =
    code === "no_condition_match" && hasSkippedGroups
      ? `${sentences[code]} (group conditions were not evaluated because no group type was provided)`
      : sentences[code];
  return { code, conditionIndex, description };
}
