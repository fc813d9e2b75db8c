/** Conditions in JsonLogic, with the operators that flagd and GO Feature Flag add. A missing attribute is null. Pure. */

import { formatNumber } from "../../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { parseVersion } from "../../../lib/values/versions.ts";
import {
  compared,
  type Expression,
  hasContent,
  isOneOf,
  matchesAll,
  matchesNone,
  not,
  test,
  unknown,
  versioned,
} from "./expression.ts";
import { number, object, stringify, text } from "./values.ts";

const comparisons: Readonly<Record<string, string>> = { ">": "gt", ">=": "gte", "<": "lt", "<=": "lte" };
const turned: Readonly<Record<string, string>> = { ">": "<", ">=": "<=", "<": ">", "<=": ">=" };
const versions: Readonly<Record<string, string>> = {
  "=": "semver_eq",
  "!=": "semver_neq",
  "<": "semver_lt",
  "<=": "semver_lte",
  ">": "semver_gt",
  ">=": "semver_gte",
};

/** Property names of the user's ID in these products. */
const ids = new Set(["targetingKey", "key"]);
/** A property; a name with a dot is a member of another attribute, or a fact about the evaluation. */
export function propertyNamed(written: string): string | undefined {
  if (ids.has(written)) return "distinct_id";
  return written === "" || written.includes(".") ? undefined : written;
}

/** Maximum number of parts of one rule; shared evaluators can refer to each other. */
const partsMax = 5_000;

/** Reads conditions; unsupported parts become `unknown`. */
export class JsonLogicReader {
  private parts = 0;

  /** @param shared conditions that `$ref` names. */
  constructor(private readonly shared: JsonObject = {}) {}

  /** Replaces a reference by what it names; one that does not exist stays. */
  resolve(rule: Json): Json {
    let resolved = rule;
    for (let hops = 0; hops < hopsMax && isJsonObject(resolved); hops++) {
      const name = text(resolved.$ref as Json | undefined);
      if (name === undefined || !Object.hasOwn(this.shared, name)) break;
      resolved = this.shared[name] as Json;
    }
    return resolved;
  }

  /** Whether a rule is true; null and other values without content are not. */
  read(node: Json): Expression {
    this.parts += 1;
    if (this.parts > partsMax) return unknown(`it has more than ${partsMax} parts`);
    const rule = this.resolve(node);
    if (!isJsonObject(rule)) return isTruthy(rule) ? matchesAll : matchesNone;
    const [entry, ...others] = Object.entries(rule);
    if (entry === undefined || others.length > 0)
      return unknown(`${JSON.stringify(rule)} is not a condition`);
    const [operator, operands] = entry as [string, Json];
    const values = (Array.isArray(operands) ? operands : [operands]).map((value) => this.resolve(value));
    return this.readOperator(operator, values);
  }

  /** Whether a rule results in true, false or null, and in no other value. */
  isBoolean(node: Json): boolean {
    const rule = this.resolve(node);
    if (!isJsonObject(rule)) return typeof rule === "boolean";
    const [operator, operands] = operation(rule);
    if (operator === "and" || operator === "or") return operands.every((operand) => this.isBoolean(operand));
    return operator !== "var" && operator !== "if";
  }

  /** Whether a rule may result in null instead of false. */
  mayBeNull(node: Json): boolean {
    const rule = this.resolve(node);
    if (!isJsonObject(rule)) return rule === null;
    const [operator, operands] = operation(rule);
    if (operator === "and" || operator === "or") return operands.some((operand) => this.mayBeNull(operand));
    return !neverNull.has(operator);
  }

  /** The attribute without which a rule of one comparison results in null. */
  nullWithout(node: Json): string | undefined {
    const [operator, [attribute]] = operation(object(this.resolve(node)));
    const path = ["starts_with", "ends_with", "sem_ver"].includes(operator)
      ? object(attribute).var
      : undefined;
    return typeof path === "string" ? propertyNamed(path) : undefined;
  }

  private readOperator(operator: string, values: readonly Json[]): Expression {
    switch (operator) {
      case "and":
        return { all: values.map((value) => this.read(value)) };
      case "or":
        return { any: values.map((value) => this.read(value)) };
      case "!":
        return not(this.read(values[0] ?? null));
      case "!!":
        return this.read(values[0] ?? null);
      case "if":
        return this.readChoice(values);
      case "var":
        return withAttribute({ var: values as Json[] }, (key) => isPresent(key), isTruthy);
      case "==":
      case "===":
        return equal(values);
      case "!=":
      case "!==":
        return not(equal(values));
      case ">":
      case ">=":
      case "<":
      case "<=":
        return readComparison(operator, values);
      case "in":
        return readIn(values);
      case "starts_with":
      case "ends_with":
        return readAffix(operator, values);
      case "sem_ver":
        return readVersion(values);
      default:
        return unknown(`the operator ${operator} has no counterpart`);
    }
  }

  /** Conditions and results in turn, and a last result. */
  private readChoice(values: readonly Json[]): Expression {
    const parts: Expression[] = [];
    let others: Expression = matchesAll;
    for (let index = 0; index < values.length; index += 2) {
      const isLast = index + 1 === values.length;
      const condition = isLast ? matchesAll : this.read(values[index]!);
      const result = this.read(values[isLast ? index : index + 1]!);
      parts.push({ all: [others, condition, result] });
      others = { all: [others, not(condition)] };
    }
    return { any: parts };
  }
}

const neverNull = new Set(["!", "!!", "==", "===", "!=", "!==", "<", "<=", ">", ">=", "in"]);

function operation(rule: JsonObject): [operator: string, operands: Json[]] {
  const [operator = "", operands = null] = (Object.entries(rule)[0] ?? []) as [string?, Json?];
  return [operator, Array.isArray(operands) ? operands : [operands]];
}

/** Longer chains of references are cycles. */
const hopsMax = 50;

/** Without content: null, false, 0, an empty string, an empty list. */
function isTruthy(value: Json): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** An attribute has content. */
const isPresent = (key: string): Expression => ({
  all: [test(key, "is_set"), test(key, "not_regex", "^(?:false|null|-?0(?:\\.0*)?|\\[\\])?$")],
});

/**
 * A condition on the attribute that a `var` names.
 *
 * @param read       the condition of users with the attribute, or of those without a default.
 * @param ofDefault  whether the default value, which replaces a missing attribute, meets the condition.
 */
function withAttribute(
  rule: Json | undefined,
  read: (key: string) => Expression,
  ofDefault: (value: Json) => boolean | undefined,
): Expression {
  const operand = isJsonObject(rule) ? (rule.var as Json) : null;
  const [written, fallback = null] = Array.isArray(operand) ? operand : [operand];
  const path = typeof written === "number" ? String(written) : text(written as Json);
  const key = path === undefined ? undefined : propertyNamed(path);
  if (key === undefined) return unknown(`${JSON.stringify(rule)} is not an attribute of the user`);
  if (fallback === null) return read(key);
  const isMet = ofDefault(fallback as Json);
  if (isMet === undefined) return unknown(`the default value of ${JSON.stringify(rule)} is not supported`);
  const present: Expression = { all: [test(key, "is_set"), read(key)] };
  return isMet ? { any: [test(key, "is_not_set"), present] } : present;
}

const isAttribute = (value: Json | undefined): value is JsonObject => isJsonObject(value) && "var" in value;
const isPlain = (value: Json | undefined): value is Json => value !== undefined && !isJsonObject(value);
const unsupported = (values: readonly Json[]) =>
  unknown(`${JSON.stringify(values)} does not compare an attribute with a value`);

/** Equal as JavaScript compares them with `==`. */
function isEqual(a: Json, b: Json): boolean | undefined {
  if (formatNumber(a) !== undefined || formatNumber(b) !== undefined) return undefined;
  if (typeof a === "object" || typeof b === "object") return a === null && b === null;
  if (typeof a === typeof b) return a === b;
  return Number(a) === Number(b);
}

function equal(values: readonly Json[]): Expression {
  const [first, second] = values;
  const [attribute, value] = isAttribute(first) ? [first, second] : [second, first];
  if (!isAttribute(attribute) || !isPlain(value)) return unsupported(values);
  return withAttribute(
    attribute,
    (key) => (value === null ? test(key, "is_not_set") : isOneOf(key, [value])),
    (fallback) => isEqual(fallback, value),
  );
}

function readComparison(operator: string, values: readonly Json[]): Expression {
  const [first, second, third] = values;
  if (third !== undefined) {
    // `10 <= x < 20` in one condition.
    return { all: [readComparison(operator, [first!, second!]), readComparison(operator, [second!, third])] };
  }
  const isTurned = !isAttribute(first);
  const [attribute, limit] = isTurned ? [second, first] : [first, second];
  if (!isAttribute(attribute) || !isPlain(limit)) return unsupported(values);
  return limited(attribute, isTurned ? turned[operator]! : operator, limit);
}

/** A missing attribute counts as 0. */
function limited(attribute: Json, operator: string, limit: Json): Expression {
  const bound = number(limit);
  const holds = (value: Json): boolean | undefined => {
    const node = number(value);
    if (node === undefined || bound === undefined) return undefined;
    return operator.startsWith(">")
      ? node > bound || (operator === ">=" && node === bound)
      : node < bound || (operator === "<=" && node === bound);
  };
  return withAttribute(
    attribute,
    (key) => {
      const present = compared(key, comparisons[operator]!, limit);
      return holds(0) === true && key !== "distinct_id"
        ? { any: [test(key, "is_not_set"), present] }
        : present;
    },
    holds,
  );
}

/** A substring, or one of several values. */
function readIn(values: readonly Json[]): Expression {
  const [needle, hay] = values;
  if (isAttribute(needle) && Array.isArray(hay)) {
    const present = hay.filter((value) => value !== null);
    const orMissing = (key: string, expression: Expression): Expression =>
      present.length < hay.length ? { any: [test(key, "is_not_set"), expression] } : expression;
    return withAttribute(
      needle,
      (key) => orMissing(key, isOneOf(key, present)),
      (fallback) => hay.includes(fallback),
    );
  }
  if (isAttribute(hay) && isPlain(needle) && needle !== null)
    return withAttribute(
      hay,
      (key) => hasContent(key, "anywhere", [needle]),
      (fallback) => (typeof fallback === "string" ? fallback.includes(stringify(needle)) : undefined),
    );
  return unsupported(values);
}

function readAffix(operator: "starts_with" | "ends_with", values: readonly Json[]): Expression {
  const [attribute, affix, ...others] = values;
  if (!isAttribute(attribute) || typeof affix !== "string" || others.length > 0) return unsupported(values);
  const isStart = operator === "starts_with";
  return withAttribute(
    attribute,
    (key) => hasContent(key, isStart ? "start" : "end", [affix]),
    (fallback) =>
      typeof fallback === "string" && (isStart ? fallback.startsWith(affix) : fallback.endsWith(affix)),
  );
}

function readVersion(values: readonly Json[]): Expression {
  const [attribute, written, version] = values;
  const operator = stringify(written ?? null);
  if (!isAttribute(attribute) || values.length !== 3 || typeof version !== "string")
    return unsupported(values);
  return withAttribute(
    attribute,
    (key) => compareVersion(key, operator, version),
    () => undefined,
  );
}

/** `^` is the same major version, `~` the same minor version, earlier ones included. */
function compareVersion(key: string, operator: string, version: string): Expression {
  const known = versions[operator];
  if (known !== undefined) return versioned(key, known, version);
  const [major, minor] = parseVersion(version)?.main ?? [];
  if (typeof major !== "number" || typeof minor !== "number" || (operator !== "^" && operator !== "~"))
    return unknown(`${JSON.stringify([operator, version])} does not compare versions`);
  const [from, below] =
    operator === "^"
      ? [`${major}.0.0-0`, `${major + 1}.0.0-0`]
      : [`${major}.${minor}.0-0`, `${major}.${minor + 1}.0-0`];
  return { all: [versioned(key, "semver_gte", from), versioned(key, "semver_lt", below)] };
}
