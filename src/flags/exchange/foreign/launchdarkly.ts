/**
 * Flags of LaunchDarkly: answers of its API (`GET /api/v2/flags/PROJECT?summary=0`), and the flag data that its SDKs,
 * Relay and development server read (`{"flags": {…}, "segments": {…}}`). Pure.
 */

import type { Json, JsonObject } from "../../../lib/json.ts";
import {
  compared,
  dated,
  type Expression,
  everybody,
  hasText,
  isOneOf,
  nobody,
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
  rounded,
  variantsOfValues,
} from "./foreign-flag.ts";
import { asText, chosenEnvironment, entries, list, number, object, objects, text } from "./values.ts";

/** Whether a file is LaunchDarkly's. */
export function isLaunchDarkly(root: JsonObject): boolean {
  const [first] = objects(root.items);
  if (first !== undefined) return Array.isArray(first.variations) && typeof first.key === "string";
  const [flag] = entries(root.flags).map(([, each]) => each);
  if (flag === undefined) return entries(root.flagValues).length > 0;
  return Array.isArray(flag.variations) && ("fallthrough" in flag || "on" in flag);
}

export function readLaunchDarkly(
  root: JsonObject,
  items: FlagItems,
  environment?: string,
): string | undefined {
  const fromApi = objects(root.items);
  if (fromApi.length === 0) {
    const flags = items.flagsIn(root.flags).map(([key, flag]): JsonObject => ({ ...flag, key }));
    const known = new Known(flags, entries(root.segments));
    for (const flag of flags) items.add(readFlag(flag, flag, known));
    for (const [key, value] of Object.entries(object(root.flagValues))) items.add(fixedFlag(key, value));
    return undefined;
  }
  const chosen = chosenEnvironment(
    fromApi.flatMap(({ environments }) => Object.keys(object(environments))),
    environment,
  );
  const known = new Known(fromApi, []);
  for (const flag of fromApi) {
    const state = object(object(flag.environments)[chosen ?? ""]);
    if (flag.archived === true) items.note(items.keyOf(asText(flag.key)), "the flag", "is archived");
    else items.add(readFlag(flag, state, known));
  }
  return chosen;
}

/** `flagValues`: one value for everybody. */
function fixedFlag(key: string, value: Json): ForeignFlag {
  const variations = variationsOf({ variations: [value] });
  return {
    ...{ key, active: true, variants: variations.variants, notMapped: [] },
    rules: [otherwise(always(variations.at(0)))],
  };
}

interface Variations {
  variants: { key: string; payload?: Json }[];
  /** The value here of a variation, by its place. */
  at(index: Json | undefined): string | boolean;
}

function variationsOf(flag: JsonObject): Variations {
  const variations = list(flag.variations).map((each) => {
    // The API wraps values and names them, flag data has the bare values.
    const isWrapped = typeof each === "object" && each !== null && "value" in each && "_id" in each;
    const wrapped = isWrapped ? object(each) : { value: each };
    return { value: wrapped.value as Json, name: text(wrapped.name) };
  });
  const isBoolean = variations.every(({ value }) => typeof value === "boolean");
  const variants = isBoolean ? [] : variantsOfValues(variations);
  return {
    variants,
    at(index) {
      const place = number(index) ?? -1;
      return isBoolean ? variations[place]?.value === true : (variants[place]?.key ?? false);
    },
  };
}

/** @param state what differs between environments: rules, targets, on or off. */
function readFlag(flag: JsonObject, state: JsonObject, known: Known): ForeignFlag {
  const variations = known.variations(asText(flag.key))!;
  const notMapped: { part: string; reason: string }[] = [];
  const off = variations.at(state.offVariation);
  if (off !== false && number(state.offVariation) !== undefined) {
    notMapped.push({ part: "off variation", reason: `served ${off}; here a flag that is off has no value` });
  }
  return {
    key: asText(flag.key),
    name: text(flag.description) ?? text(flag.name),
    active: state.on === true,
    tags: list(flag.tags).flatMap((tag) => text(tag) ?? []),
    variants: variations.variants,
    rules: new Rules(variations, known, notMapped).read(state),
    notMapped,
  };
}

class Rules {
  constructor(
    private readonly variations: Variations,
    private readonly known: Known,
    private readonly notMapped: { part: string; reason: string }[],
  ) {}

  read(state: JsonObject): ForeignRule[] {
    const needed = objects(state.prerequisites).map((each) => this.prerequisite(each));
    const guard: ForeignRule[] =
      needed.length === 0
        ? []
        : [{ name: "prerequisites", when: not({ all: needed }), outcome: [], rest: "off" }];
    return [
      ...guard,
      ...this.targets(state),
      ...objects(state.rules).map((rule, index) => this.rule(rule, index)),
      otherwise(this.outcome(object(state.fallthrough), "the default rule")),
    ];
  }

  private prerequisite({ key, variation }: JsonObject): Expression {
    const flag = asText(key);
    const value = this.known.variations(flag)?.at(variation);
    return value === undefined ? unknown(`the flag ${flag} is not in the file`) : { flag, value };
  }

  private targets(state: JsonObject): ForeignRule[] {
    const users = objects(state.targets).map((target) => ({ kind: "user", ...target }) as JsonObject);
    return [...users, ...objects(state.contextTargets)].flatMap((target): ForeignRule[] => {
      const values = list(target.values);
      if (values.length === 0) return [];
      const kind = text(target.contextKind) ?? "user";
      return [
        {
          name: `targets of ${asText(this.variations.at(target.variation))}`,
          when: kind === "user" ? isOneOf("distinct_id", values) : ofAnotherKind(kind),
          outcome: always(this.variations.at(target.variation)),
          rest: "off",
        },
      ];
    });
  }

  private rule(rule: JsonObject, index: number): ForeignRule {
    const label = text(rule.description) ?? text(rule.id) ?? text(rule._id);
    const named = `rule ${index + 1}${label === undefined ? "" : ` (${label})`}`;
    const when: Expression = {
      all: objects(rule.clauses).map((clause) => readClause(clause, this.known)),
    };
    return { name: named, when, outcome: this.outcome(rule, named), rest: "off" };
  }

  private outcome(rule: JsonObject, part: string): Outcome {
    if (rule.variation !== undefined && rule.variation !== null) {
      return always(this.variations.at(rule.variation));
    }
    const rollout = object(rule.rollout);
    const bucketBy = text(rollout.bucketBy);
    if (bucketBy !== undefined && bucketBy !== "key") {
      this.notMapped.push({ part, reason: `shared out by ${bucketBy}, here by distinct id` });
    }
    return objects(rollout.variations).map(({ variation, weight }) => ({
      variant: this.variations.at(variation),
      percent: rounded((number(weight) ?? 0) / 1_000),
    }));
  }
}

const ofAnotherKind = (kind: string) => unknown(`it is about contexts of the kind ${kind}`);

/** Built-in attributes under the names that they have here. */
const attributes: Readonly<Record<string, string>> = { key: "distinct_id", "/key": "distinct_id" };

function readClause(clause: JsonObject, known: Known): Expression {
  const kind = text(clause.contextKind) ?? "user";
  const said = kind === "user" ? readOperator(clause, known) : ofAnotherKind(kind);
  if (clause.negate !== true) return said;
  return clause.op === "segmentMatch" ? not(said) : notOfPresent(propertyOf(clause), said);
}

function propertyOf({ attribute }: JsonObject): string {
  const written = text(attribute) ?? "key";
  return attributes[written] ?? written.replace(/^\//, "");
}

function readOperator(clause: JsonObject, known: Known): Expression {
  const { op } = clause;
  const values = list(clause.values);
  const property = propertyOf(clause);
  const any = (make: (value: Json) => Expression): Expression => ({ any: values.map(make) });
  switch (op) {
    case "in":
      return isOneOf(property, values);
    case "startsWith":
      return hasText(property, "start", values);
    case "endsWith":
      return hasText(property, "end", values);
    case "contains":
      return hasText(property, "anywhere", values);
    case "matches":
      return any((value) => test(property, "regex", asText(value)));
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
      return any((value) => test(property, "semver_eq", asText(value)));
    case "semVerLessThan":
      return any((value) => test(property, "semver_lt", asText(value)));
    case "semVerGreaterThan":
      return any((value) => test(property, "semver_gt", asText(value)));
    case "segmentMatch":
      return any((value) => known.segment(asText(value)));
    default:
      return unknown(`the operator ${JSON.stringify(op)} has no counterpart`);
  }
}

/** What flags refer to. Segments are written into the rules that use them. */
class Known {
  private readonly flags: ReadonlyMap<string, Variations>;
  private readonly segments: ReadonlyMap<string, JsonObject>;
  /** Segments may lead to each other, and in a circle. */
  private readonly open = new Set<string>();

  constructor(flags: readonly JsonObject[], segments: readonly [string, JsonObject][]) {
    this.flags = new Map(flags.map((flag) => [asText(flag.key), variationsOf(flag)]));
    this.segments = new Map(segments);
  }

  variations(flag: string): Variations | undefined {
    return this.flags.get(flag);
  }

  segment(key: string): Expression {
    const segment = this.segments.get(key);
    if (segment === undefined) return unknown(`the segment ${key} is not in the file`);
    if (this.open.has(key)) return unknown(`the segment ${key} leads to itself`);
    this.open.add(key);
    const rules = objects(segment.rules).map((rule): Expression => {
      const weight = number(rule.weight);
      if (weight !== undefined && weight < 100_000) {
        return unknown(`the segment ${key} takes a share of its persons only`);
      }
      return { all: objects(rule.clauses).map((clause) => readClause(clause, this)) };
    });
    this.open.delete(key);
    const excluded = list(segment.excluded);
    return {
      any: [
        isOneOf("distinct_id", list(segment.included)),
        {
          all: [
            excluded.length === 0 ? everybody : not(isOneOf("distinct_id", excluded)),
            rules.length === 0 ? nobody : { any: rules },
          ],
        },
      ],
    };
  }
}
