/** A flag that may not be saved as it was sent. */

export type FlagInvalidCode =
  | "invalid_input"
  | "required"
  | "null"
  | "blank"
  | "max_length"
  | "invalid_key"
  | "not_a_dict"
  | "not_a_list"
  | "invalid_date"
  | "invalid_value"
  | "invalid_operator"
  | "cohort_does_not_exist"
  | "behavioral_cohort_found"
  | "reserved_config_version";

/** Thrown by the rules of this folder; the caller answers 400 with these three members. */
export class FlagInvalid extends Error {
  override readonly name = "FlagInvalid";

  constructor(
    readonly code: FlagInvalidCode,
    /** The sentence for people; its wording is part of the contract. */
    readonly detail: string,
    /** The field at fault, or null when it is the flag as a whole. */
    readonly attr: string | null,
  ) {
    super(detail);
  }
}

/** A rule about `filters` was broken; most have no code of their own. */
export function filtersInvalid(detail: string, code: FlagInvalidCode = "invalid_input"): FlagInvalid {
  return new FlagInvalid(code, detail, "filters");
}

/** The name of a JSON value's type as the contract's framework texts call it. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return "NoneType";
  if (Array.isArray(value)) return "list";
  switch (typeof value) {
    case "string":
      return "str";
    case "boolean":
      return "bool";
    case "number":
      return Number.isInteger(value) ? "int" : "float";
    default:
      return "dict";
  }
}
