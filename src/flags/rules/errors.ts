/** Errors of flag rules. */

import { AppError, InvalidFieldError } from "../../lib/errors.ts";

/** Thrown by the rules of this folder; the message is part of the contract. */
export class InvalidFlagError extends InvalidFieldError {
  /** @param field the invalid one, or null for the flag as a whole. */
  constructor(code: string, detail: string, field: string | null) {
    super(field, code, detail);
  }
}

/** A rule about the flag as a whole was broken. */
export function flagInvalid(detail: string): InvalidFlagError {
  return new InvalidFlagError("invalid_input", detail, null);
}

/** A rule about `filters` was broken; most have no specific code. */
export function filtersInvalid(detail: string, code = "invalid_input"): InvalidFlagError {
  return new InvalidFlagError(code, detail, "filters");
}

/** Keys that a message lists. */
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
