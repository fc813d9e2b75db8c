/**
 * Flags of LaunchDarkly: responses of its API (`GET /api/v2/flags/PROJECT?summary=0`), and the flag data of its SDKs,
 * Relay and development server (`{"flags": {…}, "segments": {…}}`). Pure.
 */

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
import type { FlagItems } from "./flag-items.ts";
import {
  checkedList,
  checkedObject,
  checkedObjects,
  chosenEnvironment,
  entries,
  list,
  number,
  object,
  objects,
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
  variantsOfValues,
} from "./vendor-flag.ts";

const ofAnotherKind = (kind: string): Expression => unknown(`it uses contexts of kind ${kind}`);

/** Reads a clause. One that cannot be expressed stays `unknown` when it is negated. */
function readClause(clause: JsonObject, segments: LaunchDarklySegments): Expression {
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
class LaunchDarklySegments {
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

/** Whether a file is LaunchDarkly's. */
export function isLaunchDarkly(root: JsonObject): boolean {
  const ofApi = objects(root.items);
  if (ofApi.length > 0)
    return ofApi.some((each) => Array.isArray(each.variations) && typeof each.key === "string");
  const flags = entries(root.flags).map(([, each]) => each);
  if (flags.length === 0) return Object.keys(object(root.flagValues)).length > 0;
  return flags.some((flag) => Array.isArray(flag.variations) && ("fallthrough" in flag || "on" in flag));
}

export function readLaunchDarkly(
  root: JsonObject,
  items: FlagItems,
  environment?: string,
): string | undefined {
  const fromApi = objects(root.items);
  if (fromApi.length === 0) {
    const known = new Known(entries(root.flags), entries(root.flags), entries(root.segments));
    const values = object(root.flagValues);
    for (const [key, flag] of Object.entries(object(root.flags))) {
      // `flagValues` replaces the rules of a flag.
      if (Object.hasOwn(values, key)) continue;
      if (object(flag).deleted === true) items.reportObstacle(key, "is deleted");
      else items.add(key, flag as Json, (own, source) => readFlag(own, source, source, known));
    }
    for (const [key, value] of Object.entries(values)) items.add(key, { value }, () => fixedFlag(key, value));
    return undefined;
  }
  const chosen = chosenEnvironment(
    fromApi.flatMap(({ environments }) => Object.keys(object(environments))),
    environment,
  );
  const getState = (flag: JsonObject) => object(object(flag.environments)[chosen ?? ""]);
  const named = fromApi.map((flag): [string, JsonObject] => [stringify(flag.key), flag]);
  const states = named.map(([key, flag]): [string, JsonObject] => [key, getState(flag)]);
  const known = new Known(named, states, []);
  for (const flag of list(root.items)) {
    const { key, archived, deleted } = object(flag);
    if (archived === true || deleted === true)
      items.reportObstacle(stringify(key), archived === true ? "is archived" : "is deleted");
    else items.add(key, flag, (own, source) => readFlag(own, source, getState(source), known));
  }
  return chosen;
}

/** `flagValues`: one value for every user. */
function fixedFlag(key: string, value: Json): VendorFlag {
  const variations = getVariations({ variations: [value] });
  return {
    key,
    active: true,
    variants: variations.variants,
    obstacles: [],
    rules: [otherwise(always(variations.at(0)))],
  };
}

interface Variations {
  variants: { key: string; payload?: Json }[];
  /** The value of a variation, by its index; an unused name if it does not exist. */
  at(index: Json | undefined): string | boolean;
}

function getVariations(flag: JsonObject): Variations {
  // The API wraps and names values, flag data has plain values.
  const isOfApi = "environments" in flag;
  const variations = list(flag.variations).map((each) => {
    const isWrapped =
      typeof each === "object" && each !== null && "value" in each && (isOfApi || "_id" in each);
    const wrapped = isWrapped ? object(each) : { value: each };
    return { value: wrapped.value as Json, name: text(wrapped.name) };
  });
  const isBoolean = variations.every(({ value }) => typeof value === "boolean");
  const variants = isBoolean ? [] : variantsOfValues(variations);
  return {
    variants,
    at(index) {
      const variation = typeof index === "number" ? variations[index] : undefined;
      if (variation === undefined) return `variation ${stringify(index ?? null)}`;
      return isBoolean ? variation.value === true : variants[index as number]!.key;
    },
  };
}

/** @param state differs between environments: rules, targets, on or off. */
function readFlag(key: string, flag: JsonObject, state: JsonObject, known: Known): VendorFlag {
  const variations = getVariations(flag);
  const obstacles: Part[] = [];
  const off = state.offVariation === undefined || state.offVariation === null ? [] : [state.offVariation];
  const [served = false] = off.map((index) => variations.at(index));
  const isServedToAll = state.on !== true && served !== false;
  return {
    key,
    name: text(flag.description) ?? text(flag.name),
    active: state.on === true,
    tags: list(flag.tags).flatMap((tag) => text(tag) ?? []),
    variants: variations.variants,
    rules: new Rules(variations, known, obstacles).read(state, served),
    obstacles,
    ...(isServedToAll
      ? {
          notes: [
            {
              part: "off variation",
              reason: `everyone was served ${served}; here a disabled flag has no value`,
            },
          ],
        }
      : {}),
  };
}

class Rules {
  constructor(
    private readonly variations: Variations,
    private readonly known: Known,
    private readonly obstacles: Part[],
  ) {}

  /** @param off the value of users who do not meet the prerequisites. */
  read(state: JsonObject, off: string | boolean): VendorRule[] {
    const needed = readEach(state.prerequisites, "prerequisites", (each) => this.prerequisite(each));
    const guard: VendorRule[] =
      needed.length === 0
        ? []
        : [{ name: "prerequisites", when: not({ all: needed }), rollout: always(off), rest: "off" }];
    const rules = checkedObjects(state.rules, "rules", this.report("rules"));
    const last = checkedObject(state.fallthrough, "fallthrough", this.report("the default rule"));
    return [
      ...guard,
      ...this.targets(state),
      ...rules.map((rule, index) => this.rule(rule, index)),
      otherwise(this.rollout(last, "the default rule")),
    ];
  }

  private readonly report = (part: string) => (reason: string) => {
    this.obstacles.push({ part, reason });
  };

  private prerequisite({ key, variation }: JsonObject): Expression {
    const flag = stringify(key);
    const value = this.known.variations(flag)?.at(variation);
    if (value === undefined) return unknown(`the flag ${flag} is not in the file`);
    // A flag that is off never meets a prerequisite, whatever its off variation is.
    return this.known.isOn(flag) ? { flag, value } : matchesNone;
  }

  private targets(state: JsonObject): VendorRule[] {
    const read = (member: "targets" | "contextTargets") =>
      checkedObjects(state[member], member, this.report("targets"));
    return [...read("targets"), ...read("contextTargets")].flatMap((target): VendorRule[] => {
      const value = this.variations.at(target.variation);
      const name = `targets of ${value}`;
      const values = checkedList(target.values, "values", this.report(name));
      if (values.length === 0) return [];
      const kind = text(target.contextKind) ?? "user";
      const when = kind === "user" ? isOneOf("distinct_id", values) : ofAnotherKind(kind);
      return [{ name, when, rollout: always(value), rest: "off" }];
    });
  }

  private rule(rule: JsonObject, index: number): VendorRule {
    const label = text(rule.description) ?? text(rule.id) ?? text(rule._id);
    const named = `rule ${index + 1}${label === undefined ? "" : ` (${label})`}`;
    const when: Expression = {
      all: readEach(rule.clauses, "clauses", (clause) => readClause(clause, this.known.segments)),
    };
    return { name: named, when, rollout: this.rollout(rule, named), rest: "off" };
  }

  private rollout(rule: JsonObject, part: string): Rollout {
    if (rule.variation !== undefined && rule.variation !== null) {
      return always(this.variations.at(rule.variation));
    }
    const report = this.report(part);
    const rollout = checkedObject(rule.rollout, "rollout", report);
    const shares = checkedObjects(rollout.variations, "rollout", report).map(({ variation, weight }) => {
      if (number(weight) === undefined) report(`the weight ${stringify(weight ?? null)} is not a number`);
      const percent = rounded(Math.max(0, number(weight) ?? 0) / 1_000);
      return { variant: this.variations.at(variation), percent };
    });
    if (shares.length === 0) report("it has neither a variation nor a rollout in this file");
    if (new Set(shares.filter(({ percent }) => percent > 0).map(({ variant }) => variant)).size > 1)
      this.checkBucketing(rollout, report);
    // The last variation gets what the weights leave.
    const sum = shares.reduce((total, { percent }) => total + percent, 0);
    return shares.map((share, index) =>
      index === shares.length - 1
        ? { ...share, percent: rounded(share.percent + Math.max(0, 100 - sum)) }
        : share,
    );
  }

  private checkBucketing(rollout: JsonObject, report: (reason: string) => void): void {
    const bucketBy = text(rollout.bucketBy);
    if (bucketBy !== undefined && bucketBy !== "key" && bucketBy !== "/key")
      report(`it is bucketed by ${bucketBy}; here by distinct id`);
    const kind = text(rollout.contextKind) ?? "user";
    if (kind !== "user") report(`it is bucketed by contexts of kind ${kind}`);
  }
}

/** Items that flags refer to. */
class Known {
  readonly segments: LaunchDarklySegments;
  private readonly flags: ReadonlyMap<string, Variations>;
  private readonly on: ReadonlySet<string>;

  constructor(
    flags: readonly [string, JsonObject][],
    states: readonly [string, JsonObject][],
    segments: readonly [string, JsonObject][],
  ) {
    const present = flags.filter(([, { archived, deleted }]) => archived !== true && deleted !== true);
    this.flags = new Map(present.map(([key, flag]) => [key, getVariations(flag)]));
    this.on = new Set(states.filter(([, { on }]) => on === true).map(([key]) => key));
    this.segments = new LaunchDarklySegments(segments);
  }

  variations(flag: string): Variations | undefined {
    return this.flags.get(flag);
  }

  isOn(flag: string): boolean {
    return this.on.has(flag);
  }
}
