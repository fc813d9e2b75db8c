/** The error of commands that change protected flags without confirmation. */

import { AppError } from "../../lib/errors.ts";

const namesMax = 5;

/** A change needs approval, and the command was not confirmed (contract: management-api 5.19). */
export class ApprovalRequiredError extends AppError {
  readonly code = "approval_required";
  override readonly hint =
    "Create a change request in the console or with POST …/change_requests/, or add --confirm to apply the change without one.";
  /** @param keys of the protected flags, at least one. */
  constructor(readonly keys: readonly string[]) {
    super(`Changes of these flags need approval (approval_required): ${getNames(keys)}.`);
  }
}

/** Keys for a message; of many, the first and the number of the others. */
export function getNames(keys: readonly string[]): string {
  const names = keys.slice(0, namesMax).map((key) => `"${key}"`);
  if (keys.length > namesMax) names.push(`${keys.length - namesMax} more`);
  return names.join(", ");
}
