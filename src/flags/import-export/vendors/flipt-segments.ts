/** Segments of Flipt and their constraints. Pure. */

import type { Json, JsonObject } from "../../../lib/json/value.ts";
import {
  compared,
  dated,
  type Expression,
  equalsNumber,
  hasContent,
  isOneOf,
  not,
  notOfPresent,
  readEach,
  test,
  unknown,
} from "./expression.ts";
import { stringify, text } from "./values.ts";

/** Without constraints every user is in a segment. */
export function readSegment(segment: JsonObject): Expression {
  const parts = readEach(segment.constraints, "constraints", readConstraint);
  const type = segment.match_type ?? segment.matchType ?? "ALL_MATCH_TYPE";
  if (type !== "ANY_MATCH_TYPE" && type !== "ALL_MATCH_TYPE")
    return unknown(`the match type ${stringify(type)} of a segment is not supported`);
  return type === "ANY_MATCH_TYPE" && parts.length > 0 ? { any: parts } : { all: parts };
}

/** Except for those about presence, a constraint is false for users without the property. */
function readConstraint({ type, property, operator, value }: JsonObject): Expression {
  const key = type === "ENTITY_ID_COMPARISON_TYPE" ? "distinct_id" : (text(property) ?? "");
  const sent = (value ?? "") as Json;
  switch (type) {
    case "STRING_COMPARISON_TYPE":
    case "ENTITY_ID_COMPARISON_TYPE":
      return ofPresence(key, operator) ?? ofText(key, operator as Json, sent);
    case "NUMBER_COMPARISON_TYPE":
      return ofPresence(key, operator) ?? ofNumber(key, operator as Json, sent);
    case "BOOLEAN_COMPARISON_TYPE":
      return ofPresence(key, operator) ?? ofBoolean(key, operator as Json);
    case "DATETIME_COMPARISON_TYPE":
      return ofPresence(key, operator) ?? ofDate(key, operator as Json, sent);
    default:
      return unknown(`constraints of the type ${stringify(type ?? null)} are not supported`);
  }
}

/** A blank value counts as missing. */
function ofPresence(key: string, operator: Json | undefined): Expression | undefined {
  switch (operator) {
    case "present":
      return test(key, "is_set");
    case "notpresent":
      return test(key, "is_not_set");
    case "notempty":
      return test(key, "regex", "\\S");
    case "empty":
      return not(test(key, "regex", "\\S"));
    default:
      return undefined;
  }
}

const unsupported = (operator: Json, type: string) =>
  unknown(`the operator ${JSON.stringify(operator ?? null)} has no counterpart for ${type}`);

function ofText(key: string, operator: Json, value: Json): Expression {
  switch (operator) {
    case "eq":
      return isOneOf(key, [value]);
    case "neq":
      return notOfPresent(key, isOneOf(key, [value]));
    case "prefix":
      return hasContent(key, "start", [value]);
    case "suffix":
      return hasContent(key, "end", [value]);
    case "contains":
      return hasContent(key, "anywhere", [value]);
    case "notcontains":
      return notOfPresent(key, hasContent(key, "anywhere", [value]));
    case "isoneof":
      return ofList(value, (values) => isOneOf(key, values));
    case "isnotoneof":
      return ofList(value, (values) => notOfPresent(key, isOneOf(key, values)));
    default:
      return unsupported(operator, "text");
  }
}

function ofNumber(key: string, operator: Json, value: Json): Expression {
  switch (operator) {
    case "eq":
      return equalsNumber(key, value);
    case "neq":
      return { any: [compared(key, "lt", value), compared(key, "gt", value)] };
    case "lt":
    case "lte":
    case "gt":
    case "gte":
      return compared(key, operator, value);
    case "isoneof":
      return ofList(value, (values) => ({ any: values.map((each) => equalsNumber(key, each)) }));
    case "isnotoneof":
      return ofList(value, (values) =>
        notOfPresent(key, { any: values.map((each) => equalsNumber(key, each)) }),
      );
    default:
      return unsupported(operator, "numbers");
  }
}

/** Booleans in the spellings of Go. */
function ofBoolean(key: string, operator: Json): Expression {
  switch (operator) {
    case "true":
      return test(key, "regex", "^(?:true|True|TRUE|t|T|1)$");
    case "false":
      return test(key, "regex", "^(?:false|False|FALSE|f|F|0)$");
    default:
      return unsupported(operator, "booleans");
  }
}

function ofDate(key: string, operator: Json, value: Json): Expression {
  const before = dated(key, "is_date_before", value);
  const after = dated(key, "is_date_after", value);
  const same = dated(key, "is_date_exact", value);
  switch (operator) {
    case "eq":
      return same;
    case "neq":
      return { any: [before, after] };
    case "lt":
      return before;
    case "lte":
      return { any: [before, same] };
    case "gt":
      return after;
    case "gte":
      return { any: [after, same] };
    default:
      return unsupported(operator, "dates");
  }
}

/** Lists are JSON in a string. */
function ofList(value: Json, read: (values: readonly Json[]) => Expression): Expression {
  if (Array.isArray(value)) return read(value);
  try {
    const parsed = JSON.parse(stringify(value)) as Json;
    if (Array.isArray(parsed)) return read(parsed);
  } catch {
    // Reported below.
  }
  return unknown(`${JSON.stringify(value)} is not a list`);
}
