/** A flag that may not be saved as it was sent. */

import { InvalidField } from "../../lib/errors.ts";

/** Thrown by the rules of this folder; the sentence for people is part of the contract. */
export class FlagInvalid extends InvalidField {
  /** @param field the one at fault, or null when it is the flag as a whole. */
  constructor(code: string, detail: string, field: string | null) {
    super(field, code, detail);
  }
}

/** A rule about the flag as a whole was broken. */
export function flagInvalid(detail: string): FlagInvalid {
  return new FlagInvalid("invalid_input", detail, null);
}

/** A rule about `filters` was broken; most have no code of their own. */
export function filtersInvalid(detail: string, code = "invalid_input"): FlagInvalid {
  return new FlagInvalid(code, detail, "filters");
}
