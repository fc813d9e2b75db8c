/** Conditions of GrowthBook's rules, in the query language of MongoDB. Pure. */

import { parseExactJson } from "../../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import {
  compared,
  type Expression,
  isOneOf,
  matchesAll,
  matchesNone,
  matching,
  not,
  test,
  unknown,
  versioned,
} from "./expression.ts";
import { stringify, text } from "./values.ts";

/** Names of the user's ID in GrowthBook. */
export const idAttributes: ReadonlySet<string> = new Set(["id", "userId", "user_id"]);

/** Reads conditions; saved groups are inlined in them. */
export class GrowthBookConditions {
  /** Saved groups may refer to each other, and in cycles. */
  private readonly open = new Set<string>();

  constructor(private readonly saved: JsonObject) {}

  /** Reads the condition of a rule: an object, or in responses of the API its JSON. */
  read(written: Json | undefined): Expression {
    if (written === undefined || written === null || written === "") return matchesAll;
    if (typeof written !== "string") return this.readAll(written);
    try {
      return this.readAll(parseExactJson(written) as Json);
    } catch {
      return unknown("its condition is not valid JSON");
    }
  }

  private readAll(condition: Json): Expression {
    if (!isJsonObject(condition)) return unknown(`${JSON.stringify(condition)} is not a condition`);
    return { all: Object.entries(condition).map(([key, wanted]) => this.readMember(key, wanted as Json)) };
  }

  private readMember(key: string, wanted: Json): Expression {
    switch (key) {
      case "$and":
        return this.readList(key, wanted, (parts) => ({ all: parts }));
      case "$or":
        // Without parts it is true.
        return this.readList(key, wanted, (parts) => (parts.length === 0 ? matchesAll : { any: parts }));
      case "$nor":
        return this.readList(key, wanted, (parts) =>
          parts.length === 0 ? matchesNone : not({ any: parts }),
        );
      case "$not":
        return not(this.readAll(wanted));
      case "$savedGroup":
        return this.savedGroup(wanted);
      default:
        if (key.startsWith("$")) return unknown(`the operator ${key} has no counterpart`);
        if (key.includes(".")) return unknown(`it uses ${key}, a member of another attribute`);
        return this.readValue(idAttributes.has(key) ? "distinct_id" : key, wanted);
    }
  }

  private readList(key: string, wanted: Json, join: (parts: Expression[]) => Expression): Expression {
    if (!Array.isArray(wanted)) return unknown(`${key} is not a list`);
    return join(wanted.map((part) => this.readAll(part)));
  }

  /** A value, or operators that all apply. */
  private readValue(property: string, wanted: Json): Expression {
    if (!isJsonObject(wanted)) return equals(property, wanted);
    const operators = Object.entries(wanted);
    if (operators.length === 0 || !operators.every(([name]) => name.startsWith("$")))
      return unknown(`${JSON.stringify(wanted)} is compared as an object`);
    return {
      all: operators.map(([operator, value]) => this.readOperator(property, operator, value as Json)),
    };
  }

  private readOperator(property: string, operator: string, value: Json): Expression {
    const comparison = comparisons[operator];
    if (comparison !== undefined) return compared(property, comparison, value);
    const version = versions[operator];
    if (version !== undefined) return versioned(property, version, value);
    switch (operator) {
      case "$eq":
        return equals(property, value);
      case "$ne":
        return not(equals(property, value));
      // Lists are compared without regard to case here.
      case "$in":
      case "$ini":
        return isIn(property, operator, value);
      case "$nin":
      case "$nini":
        return not(isIn(property, operator, value));
      case "$inGroup":
        return this.inGroup(property, value);
      case "$notInGroup":
        return not(this.inGroup(property, value));
      case "$exists":
        return test(property, value ? "is_set" : "is_not_set");
      case "$regex":
        return matching(property, value);
      case "$regexi":
        return matching(property, typeof value === "string" ? `(?i)${value}` : value);
      case "$vne":
        return not(versioned(property, "semver_eq", value));
      case "$not":
        return not(this.readValue(property, value));
      default:
        return unknown(`the operator ${operator} has no counterpart`);
    }
  }

  /** A saved group as a list of values of the attribute at hand. */
  private inGroup(property: string, id: Json): Expression {
    const group = this.saved[stringify(id)];
    const values = isJsonObject(group) && group.type === "list" ? group.values : group;
    if (!Array.isArray(values)) return unknown(`the saved group ${stringify(id)} is not in this file`);
    return isIn(property, `saved group ${stringify(id)}`, values);
  }

  /** A saved group with its own attribute or condition. */
  private savedGroup(reference: Json): Expression {
    const { id, attributeKey } = isJsonObject(reference) ? reference : {};
    const name = text(id as Json);
    const group = name === undefined ? undefined : this.saved[name];
    if (name === undefined || !isJsonObject(group))
      return unknown(`the saved group ${stringify(id ?? null)} is not in this file`);
    if (this.open.has(name)) return unknown(`the saved group ${name} references itself`);
    this.open.add(name);
    try {
      if (group.type === "condition") return this.readAll((group.condition ?? null) as Json);
      const attribute = text((attributeKey ?? group.attributeKey) as Json);
      if (group.type !== "list" || attribute === undefined)
        return unknown(`the saved group ${name} is neither a list nor a condition`);
      return this.readMember(attribute, { $in: (group.values ?? null) as Json });
    } finally {
      this.open.delete(name);
    }
  }
}

const comparisons: Readonly<Record<string, string>> = { $gt: "gt", $gte: "gte", $lt: "lt", $lte: "lte" };
const versions: Readonly<Record<string, string>> = {
  $veq: "semver_eq",
  $vgt: "semver_gt",
  $vgte: "semver_gte",
  $vlt: "semver_lt",
  $vlte: "semver_lte",
};

/** A missing attribute is null. */
const equals = (property: string, value: Json): Expression =>
  value === null ? test(property, "is_not_set") : isOneOf(property, [value]);

function isIn(property: string, what: string, values: Json): Expression {
  if (!Array.isArray(values)) return unknown(`${what} is not a list`);
  const present = isOneOf(
    property,
    values.filter((value) => value !== null),
  );
  return values.includes(null) ? { any: [test(property, "is_not_set"), present] } : present;
}

/**
 * Whether a value meets a condition on the value of another feature.
 *
 * @returns undefined for conditions that cannot be computed here.
 */
export function meets(value: Json, wanted: Json | undefined): boolean | undefined {
  if (!isJsonObject(wanted)) return typeof wanted === "object" ? undefined : value === wanted;
  const results = Object.entries(wanted).map(([operator, sent]) =>
    meetsOperator(value, operator, sent as Json),
  );
  if (results.length === 0 || results.includes(undefined)) return undefined;
  return results.every(Boolean);
}

function meetsOperator(value: Json, operator: string, sent: Json): boolean | undefined {
  const isIncluded = Array.isArray(sent) ? sent.includes(value) : undefined;
  switch (operator) {
    case "$eq":
      return meets(value, sent);
    case "$ne":
      return inverted(meets(value, sent));
    case "$in":
      return isIncluded;
    case "$nin":
      return inverted(isIncluded);
    case "$exists":
      return Boolean(sent) === (value !== null);
    case "$not":
      return inverted(meets(value, sent));
    default:
      return undefined;
  }
}

const inverted = (result: boolean | undefined) => (result === undefined ? undefined : !result);
