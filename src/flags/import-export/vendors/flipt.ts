/** Flags of Flipt: output of `flipt export` and files in its Git storage (`features.yaml`). Pure. */

import { parseExactJson } from "../../../lib/json/exact.ts";
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
import type { FlagItems } from "./flag-items.ts";
import {
  checkedList,
  checkedObject,
  checkedObjects,
  checkedPercent,
  name,
  number,
  object,
  objects,
  type Report,
  stringify,
  text,
} from "./values.ts";
import {
  always,
  otherwise,
  type Part,
  type Rollout,
  rounded,
  type VendorFlag,
  type VendorRule,
} from "./vendor-flag.ts";

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
    const parsed = parseExactJson(stringify(value)) as Json;
    if (Array.isArray(parsed)) return read(parsed);
  } catch {
    // Reported below.
  }
  return unknown(`${JSON.stringify(value)} is not a list`);
}

/** Whether a file is Flipt's. */
export function isFlipt(root: JsonObject): boolean {
  const flags = objects(root.flags);
  if (flags.length === 0) return Array.isArray(root.segments) && typeof root.namespace !== "undefined";
  const isFliptFlag = ({ key, type, rules, rollouts, variants, enabled }: JsonObject) =>
    typeof key === "string" &&
    (stringify(type ?? "").endsWith("_FLAG_TYPE") ||
      Array.isArray(rules) ||
      Array.isArray(rollouts) ||
      Array.isArray(variants) ||
      typeof enabled === "boolean");
  return flags.some(isFliptFlag) && !("flagkeep_flags" in root);
}

export function readFlipt(root: JsonObject, items: FlagItems): void {
  const segments = new Map(objects(root.segments).map((segment) => [stringify(segment.key), segment]));
  items.addList(
    root.flags,
    ({ key }) => key,
    (key, flag) => new FlagReader(key, flag, segments).read(),
  );
}

type Segments = ReadonlyMap<string, JsonObject>;

class FlagReader {
  private readonly obstacles: Part[] = [];
  private readonly notes: Part[] = [];

  constructor(
    private readonly key: string,
    private readonly flag: JsonObject,
    private readonly segments: Segments,
  ) {}

  read(): VendorFlag {
    const type = this.flag.type ?? "VARIANT_FLAG_TYPE";
    if (type !== "VARIANT_FLAG_TYPE" && type !== "BOOLEAN_FLAG_TYPE")
      this.report("its type")(`${stringify(type)} is not supported`);
    const title = text(this.flag.description) ?? text(this.flag.name);
    const read = type === "BOOLEAN_FLAG_TYPE" ? this.readBoolean() : this.readVariants();
    const { obstacles, notes } = this;
    return { key: this.key, ...(title === undefined ? {} : { name: title }), ...read, obstacles, notes };
  }

  private report(part: string): Report {
    return (reason) => void this.obstacles.push({ part, reason });
  }

  private isEnabled(): boolean {
    const { enabled } = this.flag;
    if (enabled !== undefined && enabled !== null && typeof enabled !== "boolean")
      this.report("enabled")(`${stringify(enabled)} is not a boolean`);
    return enabled === true;
  }

  /** `enabled` is the value when no rollout decides. */
  private readBoolean() {
    const isEnabled = this.isEnabled();
    const rollouts = checkedObjects(this.flag.rollouts, "rollouts", this.report("rollouts"));
    const rules = rollouts.map((rollout, index) => this.rollout(rollout, `rule ${index + 1} (rollout)`));
    return {
      active: rules.length > 0 || isEnabled,
      variants: [],
      rules: [...rules, otherwise(always(isEnabled))],
    };
  }

  /** A percentage that is on leads to the next rollout; one that is off cannot be expressed here. */
  private rollout(rollout: JsonObject, name: string): VendorRule {
    const report = this.report(name);
    if (rollout.threshold !== undefined && rollout.threshold !== null) {
      const threshold = checkedObject(rollout.threshold, "threshold", report);
      const percent = checkedPercent(threshold.percentage, "percentage", report);
      const everyone: Expression = { all: [] };
      if (threshold.value === true)
        return { name, when: everyone, rollout: [{ variant: true, percent }], rest: "next rule" };
      const isForAll = percent === 100;
      const why = `${percent}% are off, and the others continue with the next rule`;
      if (percent === 0) return { name, when: { any: [] }, rollout: [], rest: "off" };
      return { name, when: isForAll ? everyone : unknown(why), rollout: [], rest: "off" };
    }
    const segment = checkedObject(rollout.segment, "segment", report);
    const when = this.ofSegments(segment, report);
    return { name, when, rollout: always(segment.value === true), rest: "off" };
  }

  private readVariants() {
    const isEnabled = this.isEnabled();
    const written = checkedObjects(this.flag.variants, "variants", this.report("variants"));
    const variants = written.map((variant) => {
      const payload = getAttachment(variant.attachment as Json | undefined);
      return { key: stringify(variant.key), ...(payload === undefined ? {} : { payload }) };
    });
    const fallback = name(written.find((variant) => variant.default === true)?.key);
    if (!isEnabled && fallback !== undefined)
      this.notes.push({
        part: "default variant",
        reason: `everyone was served ${fallback}; here a disabled flag has no value`,
      });
    const rules = checkedObjects(this.flag.rules, "rules", this.report("rules"))
      .toSorted((a, b) => (number(a.rank) ?? 0) - (number(b.rank) ?? 0))
      .map((rule, index) => this.rule(rule, `rule ${index + 1}`, fallback));
    if (rules.length === 0 && fallback === undefined)
      this.notes.push({ part: "the flag", reason: "it has no distribution, so it is off for everyone" });
    return {
      active: isEnabled && (rules.length > 0 || fallback !== undefined),
      variants,
      rules: [...rules, ...(fallback === undefined ? [] : [otherwise(always(fallback))])],
    };
  }

  /** @param fallback the default variant, for users in none of the distributions. */
  private rule(rule: JsonObject, name: string, fallback: string | undefined): VendorRule {
    const report = this.report(name);
    const distributions = checkedObjects(rule.distributions, "distributions", report);
    const split = distributions.map(({ variant, rollout }) => ({
      variant: stringify(variant ?? null),
      percent: checkedPercent(rollout, "rollout", report),
    }));
    const total = rounded(split.reduce((sum, { percent }) => sum + percent, 0));
    if (total > 100.1) report(`its distributions add up to ${total}%`);
    const isComplete = total > 99.9;
    if (!isComplete && fallback === undefined) {
      const reason = total === 0 ? "it has no distribution" : `its distributions add up to ${total}%`;
      const others = total === 0 ? "matching users" : "the other matching users";
      this.notes.push({ part: name, reason: `${reason}, so the flag is off for ${others}` });
    }
    const rest: Rollout =
      isComplete || fallback === undefined ? [] : [{ variant: fallback, percent: rounded(100 - total) }];
    return { name, when: this.ofSegments(rule, report), rollout: [...split, ...rest], rest: "off" };
  }

  /** `segment: KEY`, `segment: {key}`, `segment: {keys, operator}`, `segments: […]`. */
  private ofSegments(rule: JsonObject, report: Report): Expression {
    const sent = typeof rule.segment === "string" ? { key: rule.segment } : object(rule.segment);
    const holder: JsonObject = Object.keys(sent).length > 0 ? sent : rule;
    const single = text(holder.key) ?? text(holder.segmentKey);
    const keys = [
      ...(single === undefined ? [] : [single]),
      ...["keys", "segments", "segmentKeys"]
        .flatMap((member) => checkedList(holder[member], member, report))
        .map(stringify),
    ];
    if (keys.length === 0) return unknown("it names no segment");
    const parts = keys.map((key): Expression => {
      const segment = this.segments.get(key);
      return segment === undefined ? unknown(`the segment ${key} is not in the file`) : readSegment(segment);
    });
    const operator = holder.operator ?? holder.segmentOperator ?? rule.operator ?? "OR_SEGMENT_OPERATOR";
    if (operator === "AND_SEGMENT_OPERATOR") return { all: parts };
    if (operator !== "OR_SEGMENT_OPERATOR")
      return unknown(`the operator ${stringify(operator)} is not supported`);
    return { any: parts };
  }
}

/** Attachments are JSON, in older files as a string. */
function getAttachment(value: Json | undefined): Json | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") return value;
  try {
    return parseExactJson(value) as Json;
  } catch {
    return value;
  }
}
