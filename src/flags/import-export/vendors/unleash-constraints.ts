/** Constraints of Unleash's strategies and segments. Pure. */

import type { Json, JsonObject } from "../../../lib/json/value.ts";
import {
  compared,
  type Expression,
  equalsNumber,
  hasContent,
  isOneOf,
  matching,
  not,
  unknown,
  versioned,
  withValues,
} from "./expression.ts";
import { stringify, text } from "./values.ts";

/** The property of a field of the context. */
export const toProperty = (contextName: string): string =>
  contextName === "userId" ? "distinct_id" : contextName;

/** Reads a constraint; the opposite of one is true for users without the field. */
export function readConstraint(constraint: JsonObject): Expression {
  const message = readOperator(constraint);
  return constraint.inverted === true ? not(message) : message;
}

function readOperator(constraint: JsonObject): Expression {
  const context = text(constraint.contextName) ?? "";
  const operator = stringify(constraint.operator ?? null);
  // Whatever the field, dates are compared with the current time.
  if (context === "currentTime" || operator.startsWith("DATE_")) return unknown("it uses the current time");
  if (context === "environment") return unknown("it uses the environment");
  // Empty values are ignored.
  return withValues(constraint.values, (sent) =>
    compareField(toProperty(context), operator, {
      values: sent.filter((value) => value !== "" && value !== null).map(trimmed),
      single: trimmed((constraint.value ?? sent[0] ?? "") as Json),
      ignoresCase: constraint.caseInsensitive === true,
    }),
  );
}

const trimmed = (value: Json): Json => (typeof value === "string" ? value.trim() : value);

interface Wanted {
  values: readonly Json[];
  single: Json;
  ignoresCase: boolean;
}

function compareField(key: string, operator: string, { values, single, ignoresCase }: Wanted): Expression {
  switch (operator) {
    case "IN":
      return isOneOf(key, values);
    case "NOT_IN":
      return not(isOneOf(key, values));
    case "STR_STARTS_WITH":
      return hasContent(key, "start", values, ignoresCase);
    case "STR_ENDS_WITH":
      return hasContent(key, "end", values, ignoresCase);
    case "STR_CONTAINS":
      return hasContent(key, "anywhere", values, ignoresCase);
    case "REGEX":
      return matching(key, ignoresCase && typeof single === "string" ? `(?i)${single}` : single);
    case "NUM_EQ":
      return equalsNumber(key, single);
    case "NUM_GT":
      return compared(key, "gt", single);
    case "NUM_GTE":
      return compared(key, "gte", single);
    case "NUM_LT":
      return compared(key, "lt", single);
    case "NUM_LTE":
      return compared(key, "lte", single);
    case "SEMVER_EQ":
      return versioned(key, "semver_eq", single);
    case "SEMVER_GT":
      return versioned(key, "semver_gt", single);
    case "SEMVER_GTE":
      return versioned(key, "semver_gte", single);
    case "SEMVER_LT":
      return versioned(key, "semver_lt", single);
    case "SEMVER_LTE":
      return versioned(key, "semver_lte", single);
    default:
      return unknown(`the operator ${operator} has no counterpart`);
  }
}
