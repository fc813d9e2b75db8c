/** Clauses and segments of LaunchDarkly's rules. Pure. */

import type { Json, JsonObject } from "../../../lib/json/value.ts";
import {
  compared,
  dated,
  type Expression,
  hasContent,
  isOneOf,
  matchesAll,
  matchesNone,
  matching,
  not,
  notOfPresent,
  readEach,
  unknown,
  versioned,
  withValues,
} from "./expression.ts";
import { number, object, stringify, text } from "./values.ts";

export const ofAnotherKind = (kind: string): Expression => unknown(`it uses contexts of kind ${kind}`);

/** Reads a clause. One that cannot be expressed stays `unknown` when it is negated. */
export function readClause(clause: JsonObject, segments: LaunchDarklySegments): Expression {
  const isNegated = clause.negate === true;
  if (clause.op === "segmentMatch") {
    const isIn = withValues(clause.values, (keys) => ({
      any: keys.map((key) => segments.read(stringify(key))),
    }));
    return isNegated ? not(isIn) : isIn;
  }
  const kind = text(clause.contextKind);
  if (kind !== undefined && kind !== "user") return ofAnotherKind(kind);
  const property = getProperty(clause);
  if (typeof property !== "string") return property;
  const message = withValues(clause.values, (values) => readOperator(clause.op as Json, property, values));
  return isNegated ? notOfPresent(property, message) : message;
}

/** A name, or a reference with slashes: `/name`, `/object/member`. */
function getProperty({ attribute }: JsonObject): string | Expression {
  const written = text(attribute) ?? "";
  if (written === "kind") return unknown("it uses the kind of the context");
  if (!written.startsWith("/")) return written === "key" ? "distinct_id" : written;
  const name = written.slice(1);
  if (name.includes("/")) return unknown(`it uses ${written}, a member of another attribute`);
  return name === "key" ? "distinct_id" : name.replaceAll("~1", "/").replaceAll("~0", "~");
}

function readOperator(op: Json, property: string, values: readonly Json[]): Expression {
  const any = (make: (value: Json) => Expression): Expression => ({ any: values.map(make) });
  switch (op) {
    case "in":
      return isOneOf(property, values);
    case "startsWith":
      return hasContent(property, "start", values);
    case "endsWith":
      return hasContent(property, "end", values);
    case "contains":
      return hasContent(property, "anywhere", values);
    case "matches":
      return any((value) => matching(property, value));
    case "lessThan":
      return any((value) => compared(property, "lt", value));
    case "lessThanOrEqual":
      return any((value) => compared(property, "lte", value));
    case "greaterThan":
      return any((value) => compared(property, "gt", value));
    case "greaterThanOrEqual":
      return any((value) => compared(property, "gte", value));
    case "before":
      return any((value) => dated(property, "is_date_before", value));
    case "after":
      return any((value) => dated(property, "is_date_after", value));
    case "semVerEqual":
      return any((value) => versioned(property, "semver_eq", value));
    case "semVerLessThan":
      return any((value) => versioned(property, "semver_lt", value));
    case "semVerGreaterThan":
      return any((value) => versioned(property, "semver_gt", value));
    default:
      return unknown(`the operator ${JSON.stringify(op ?? null)} has no counterpart`);
  }
}

/** Segments are inlined in the rules that use them. */
export class LaunchDarklySegments {
  private readonly segments: ReadonlyMap<string, JsonObject>;
  /** Segments may refer to each other, and in cycles. */
  private readonly open = new Set<string>();

  constructor(segments: readonly [string, JsonObject][]) {
    this.segments = new Map(segments);
  }

  read(key: string): Expression {
    const segment = this.segments.get(key);
    if (segment === undefined) return unknown(`the segment ${key} is not in the file`);
    if (segment.deleted === true) return unknown(`the segment ${key} is deleted`);
    if (segment.unbounded === true)
      return unknown(`the segment ${key} is a big segment, whose members are not in the file`);
    if (this.open.has(key)) return unknown(`the segment ${key} references itself`);
    this.open.add(key);
    const rules = readEach(segment.rules, `rules of segment ${key}`, (rule) => this.readRule(key, rule));
    this.open.delete(key);
    const excluded = members(key, segment.excluded, segment.excludedContexts);
    return {
      any: [
        members(key, segment.included, segment.includedContexts),
        { all: [excluded === matchesNone ? matchesAll : not(excluded), { any: rules }] },
      ],
    };
  }

  private readRule(key: string, rule: JsonObject): Expression {
    const { weight } = rule;
    const isWhole = weight === undefined || weight === null || (number(weight) ?? 0) >= 100_000;
    if (!isWhole) return unknown(`the segment ${key} has a percentage rollout`);
    return { all: readEach(rule.clauses, `clauses of segment ${key}`, (clause) => readClause(clause, this)) };
  }
}

/** The users that a segment lists, and those of the lists by context kind. */
function members(key: string, users: Json | undefined, contexts: Json | undefined): Expression {
  const ofUsers = withValues(users, (values) => isOneOf("distinct_id", values));
  const ofKinds = readEach(contexts, `contexts of segment ${key}`, (target) => {
    const kind = text(target.contextKind) ?? "user";
    return kind === "user"
      ? withValues(object(target).values as Json, (values) => isOneOf("distinct_id", values))
      : ofAnotherKind(kind);
  });
  return ofKinds.length === 0 ? ofUsers : { any: [ofUsers, ...ofKinds] };
}
