/** Flags of Flipt: what `flipt export` writes and its Git storage holds (`features.yaml`). Pure. */

import type { Json, JsonObject } from "../../../lib/json.ts";
import {
  compared,
  dated,
  type Expression,
  hasText,
  isOneOf,
  not,
  notOfPresent,
  test,
  unknown,
} from "./expression.ts";
import {
  always,
  type FlagItems,
  type ForeignFlag,
  type ForeignRule,
  type Outcome,
  otherwise,
} from "./foreign-flag.ts";
import { asText, list, number, object, objects, text } from "./values.ts";

/** Whether a file is Flipt's. */
export function isFlipt(root: JsonObject): boolean {
  const flags = objects(root.flags);
  if (flags.length === 0) return Array.isArray(root.segments) && typeof root.namespace !== "undefined";
  const isOwn = ({ key, type, rules, rollouts, variants, enabled }: JsonObject) =>
    typeof key === "string" &&
    (asText(type ?? "").endsWith("_FLAG_TYPE") ||
      Array.isArray(rules) ||
      Array.isArray(rollouts) ||
      Array.isArray(variants) ||
      typeof enabled === "boolean");
  return flags.every(isOwn) && !("flagkeep_flags" in root);
}

export function readFlipt(root: JsonObject, items: FlagItems): void {
  const segments = new Map(objects(root.segments).map((segment) => [asText(segment.key), segment]));
  for (const flag of objects(root.flags)) {
    items.add(flag.type === "BOOLEAN_FLAG_TYPE" ? readBoolean(flag, segments) : readVariants(flag, segments));
  }
}

type Segments = ReadonlyMap<string, JsonObject>;

/** `enabled` is what those get for whom no rollout decides. */
function readBoolean(flag: JsonObject, segments: Segments): ForeignFlag {
  const rules = objects(flag.rollouts).flatMap((rollout, index): ForeignRule[] => {
    const name = `rollout ${index + 1}`;
    const threshold = object(rollout.threshold);
    if ("percentage" in threshold || "value" in threshold) {
      const percent = number(threshold.percentage) ?? 0;
      return shareOfThreshold(name, percent, threshold.value === true);
    }
    const segment = object(rollout.segment);
    const when = ofSegments(segment, segments);
    return [{ name, when, outcome: always(segment.value === true), rest: "off" }];
  });
  return {
    ...common(flag),
    active: rules.length > 0 || flag.enabled === true,
    variants: [],
    rules: [...rules, otherwise(always(flag.enabled === true))],
  };
}

/** A share that is on leads on to the next rollout; one that is off can only be the last word. */
function shareOfThreshold(name: string, percent: number, isOn: boolean): ForeignRule[] {
  if (isOn) return [{ name, when: { all: [] }, outcome: [{ variant: true, percent }], rest: "next rule" }];
  return [
    {
      name,
      when: unknown(`${percent}% are off, and the others go on to what follows`),
      outcome: [],
      rest: "off",
    },
  ];
}

function readVariants(flag: JsonObject, segments: Segments): ForeignFlag {
  const variants = objects(flag.variants).map((variant) => {
    const attachment = attachmentOf(variant.attachment as Json | undefined);
    return { key: asText(variant.key), ...(attachment === undefined ? {} : { payload: attachment }) };
  });
  const fallback = objects(flag.variants).find((variant) => variant.default === true);
  const rules = objects(flag.rules)
    .toSorted((a, b) => (number(a.rank) ?? 0) - (number(b.rank) ?? 0))
    .map((rule, index): ForeignRule => {
      const outcome: Outcome = objects(rule.distributions).map(({ variant, rollout }) => ({
        variant: asText(variant),
        percent: number(rollout) ?? 0,
      }));
      return { name: `rule ${index + 1}`, when: ofSegments(rule, segments), outcome, rest: "off" };
    });
  const undistributed = rules.filter(({ outcome }) => outcome.length === 0);
  const notMapped = undistributed.map(({ name }) => ({
    part: name,
    reason: "it has no distribution, so that the flag is off for its people",
  }));
  if (rules.length === 0 && fallback === undefined)
    notMapped.push({ part: "the flag", reason: "it has no distribution, so that it is off for everyone" });
  return {
    ...common(flag),
    notMapped,
    active: flag.enabled === true && (rules.length > 0 || fallback !== undefined),
    variants,
    rules: [...rules, ...(fallback === undefined ? [] : [otherwise(always(asText(fallback.key)))])],
  };
}

function common(flag: JsonObject) {
  const name = text(flag.description) ?? text(flag.name);
  return { key: asText(flag.key), ...(name === undefined ? {} : { name }), notMapped: [] };
}

/** Attachments are JSON, in older files as text. */
function attachmentOf(value: Json | undefined): Json | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
}

/** `segment: KEY`, `segment: {key}`, `segment: {keys, operator}`, `segments: […]`. */
function ofSegments(rule: JsonObject, segments: Segments): Expression {
  const given = typeof rule.segment === "string" ? { key: rule.segment } : object(rule.segment);
  const holder = Object.keys(given).length > 0 ? given : rule;
  const keys = [
    ...(text(holder.key) === undefined ? [] : [text(holder.key)!]),
    ...[...list(holder.keys), ...list(holder.segments)].map(asText),
  ];
  const parts = keys.map((key): Expression => {
    const segment = segments.get(key);
    return segment === undefined ? unknown(`the segment ${key} is not in the file`) : readSegment(segment);
  });
  const operator = holder.operator ?? rule.operator;
  return operator === "AND_SEGMENT_OPERATOR" ? { all: parts } : { any: parts };
}

function readSegment(segment: JsonObject): Expression {
  const parts = objects(segment.constraints).map(readConstraint);
  // Without constraints everybody is in it.
  return segment.match_type === "ANY_MATCH_TYPE" && parts.length > 0 ? { any: parts } : { all: parts };
}

function readConstraint({ type, property, operator, value }: JsonObject): Expression {
  const isId = type === "ENTITY_ID_COMPARISON_TYPE";
  const key = isId ? "distinct_id" : asText(property);
  const given = (value ?? "") as Json;
  if (type === "DATETIME_COMPARISON_TYPE") return readDate(key, asText(operator), given);
  const isNumber = type === "NUMBER_COMPARISON_TYPE";
  switch (operator) {
    case "eq":
      return isNumber ? isOneOf(key, [numeric(given)]) : isOneOf(key, [given]);
    case "neq":
      return notOfPresent(key, isOneOf(key, [isNumber ? numeric(given) : given]));
    case "empty":
      return { any: [test(key, "is_not_set"), isOneOf(key, [""])] };
    case "notempty":
      return { all: [test(key, "is_set"), not(isOneOf(key, [""]))] };
    case "prefix":
      return hasText(key, "start", [given]);
    case "suffix":
      return hasText(key, "end", [given]);
    case "contains":
      return hasText(key, "anywhere", [given]);
    case "notcontains":
      return notOfPresent(key, hasText(key, "anywhere", [given]));
    case "isoneof":
      return isOneOf(key, listed(given));
    case "isnotoneof":
      return notOfPresent(key, isOneOf(key, listed(given)));
    case "lt":
    case "lte":
    case "gt":
    case "gte":
      return compared(key, operator, given);
    case "true":
      return isOneOf(key, [true]);
    case "false":
      return isOneOf(key, [false]);
    case "present":
      return test(key, "is_set");
    case "notpresent":
      return test(key, "is_not_set");
    default:
      return unknown(`the operator ${JSON.stringify(operator)} has no counterpart`);
  }
}

function readDate(key: string, operator: string, value: Json): Expression {
  switch (operator) {
    case "lt":
    case "lte":
      return dated(key, "is_date_before", value);
    case "gt":
    case "gte":
      return dated(key, "is_date_after", value);
    case "present":
      return test(key, "is_set");
    case "notpresent":
      return test(key, "is_not_set");
    default:
      return unknown(`the operator ${operator} has no counterpart for dates`);
  }
}

const numeric = (value: Json): Json => number(value) ?? value;

/** Lists are JSON in a text. */
function listed(value: Json): Json[] {
  if (Array.isArray(value)) return value;
  try {
    const read = JSON.parse(asText(value)) as Json;
    return Array.isArray(read) ? read : [read];
  } catch {
    return [value];
  }
}
