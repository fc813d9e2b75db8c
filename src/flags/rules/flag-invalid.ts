import { InvalidFieldError } from "../../lib/errors.ts";

/** Thrown by the rules of this folder; the message is part of the contract. */
export class FlagInvalid extends InvalidFieldError {
  /** @param field the invalid one, or null for the flag as a whole. */
  constructor(code: string, detail: string, field: string | null) {
    super(field, code, detail);
  }
}

/** A rule about the flag as a whole was broken. */
export function flagInvalid(detail: string): FlagInvalid {
  return new FlagInvalid("invalid_input", detail, null);
}

/** A rule about `filters` was broken; most have no specific code. */
export function filtersInvalid(detail: string, code = "invalid_input"): FlagInvalid {
  return new FlagInvalid(code, detail, "filters");
}
