/** Collects the flags of another product's file, each independently, and converts them to items of a document. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { type FlagItem, nestingIssue } from "../document.ts";
import { toFilters } from "./condition-sets.ts";
import { type Expression, flagsIn, matchesNone, unknown } from "./expression.ts";
import { name as toName } from "./values.ts";
import {
  keyLengthMax,
  type Part,
  uniqueKey,
  VariantKeys,
  type VendorFlag,
  type VendorRule,
} from "./vendor-flag.ts";

/** A part of a file that cannot be converted. */
export interface NotMapped extends Part {
  /** Its key here. */
  flag: string;
}

/** The flags of a file as items of a document. */
export interface ConvertedFlags {
  items: FlagItem[];
  notMapped: NotMapped[];
  /** Keys of the flags that would match other users than before. */
  switchedOff: Set<string>;
  /** Number of flags that could not be read. */
  unread: number;
}

/** The part of an obstacle about a flag that is not imported at all. */
const wholeFlag = "the flag";

interface Entry {
  key: string;
  /** Absent: the flag is not imported. */
  flag?: VendorFlag;
  parts: Part[];
}

export class FlagItems {
  private readonly entries: Entry[] = [];
  private readonly seen = new Set<string>();
  private unread = 0;

  /**
   * Adds a flag; one that cannot be read is reported, and never affects the others.
   *
   * @param key    its key in the product.
   * @param source its part of the file.
   */
  add(key: Json | undefined, source: Json, read: (key: string, source: JsonObject) => VendorFlag): void {
    const known = toName(key);
    const problem = this.problem(known, source);
    if (known === undefined || problem !== undefined) {
      this.unread += 1;
      this.reportObstacle(known ?? `${this.entries.length + 1} of the file`, problem ?? "");
      return;
    }
    this.seen.add(known);
    try {
      this.entries.push({ key: known, flag: read(known, source as JsonObject), parts: [] });
    } catch (error) {
      this.unread += 1;
      this.reportObstacle(known, `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private problem(key: string | undefined, source: Json): string | undefined {
    if (!isJsonObject(source)) return "is not an object";
    if (key === undefined) return "has no key";
    if (this.seen.has(key)) return "is in the file twice; the first is imported";
    return nestingIssue(source);
  }

  /** Adds the flags of a map by key. */
  addMap(value: Json | undefined, read: (key: string, source: JsonObject) => VendorFlag): void {
    for (const [key, source] of Object.entries(isJsonObject(value) ? value : {})) this.add(key, source, read);
  }

  /** Adds the flags of a list. */
  addList(
    value: Json | undefined,
    getKey: (source: JsonObject) => Json | undefined,
    read: (key: string, source: JsonObject) => VendorFlag,
  ): void {
    for (const source of Array.isArray(value) ? value : [])
      this.add(isJsonObject(source) ? getKey(source) : undefined, source, read);
  }

  /** Reports a flag that is not imported on purpose. */
  reportObstacle(key: string, reason: string): void {
    this.entries.push({ key, parts: [{ part: wholeFlag, reason }] });
  }

  /** Converts all flags; one that depends on a flag with obstacles has one itself. */
  convert(): ConvertedFlags {
    const flags = this.entries.flatMap(({ flag }) => (flag === undefined ? [] : [flag]));
    const keys = getKeys(flags.map(({ key }) => key));
    const variants = new Map(
      flags.map((flag) => [flag.key, new VariantKeys(flag.variants.map(({ key }) => key))]),
    );
    const references = new References(flags, keys, variants);
    const converted = new Map(
      flags.map((flag) => {
        const rules = flag.rules.map((rule) => ({ ...rule, when: references.resolve(rule.when) }));
        const { filters, obstacles } = toFilters({ ...flag, rules }, variants.get(flag.key)!);
        return [flag.key, { flag, filters, obstacles: distinct([...flag.obstacles, ...obstacles]) }];
      }),
    );
    recordDependents([...converted.values()]);
    const result: ConvertedFlags = { items: [], notMapped: [], switchedOff: new Set(), unread: this.unread };
    for (const { key: original, flag, parts } of this.entries) {
      const key = flag === undefined ? original : keys.get(original)!;
      const addNote = (part: Part) => result.notMapped.push({ flag: key, ...part });
      for (const part of parts) addNote(part);
      if (flag === undefined) continue;
      const { filters, obstacles } = converted.get(original)!;
      for (const part of [...getNotes(flag, key, variants.get(original)!), ...obstacles]) addNote(part);
      if (obstacles.length > 0) result.switchedOff.add(key);
      result.items.push({ ...toItem(flag, key), filters });
    }
    return result;
  }
}

/** Without the filters. */
function toItem({ name, active, tags, runtime }: VendorFlag, key: string): JsonObject & { key: string } {
  return {
    key,
    ...(name ? { name } : {}),
    active,
    ...(tags?.length ? { tags: [...new Set(tags)] } : {}),
    ...(runtime === undefined || runtime === "all" ? {} : { evaluation_runtime: runtime }),
  };
}

function getNotes(flag: VendorFlag, key: string, variants: VariantKeys): Part[] {
  const renamed =
    key === flag.key
      ? []
      : [{ part: "its key", reason: `was ${JSON.stringify(flag.key)}: use the new key in your code` }];
  const changed = variants
    .changed()
    .map(([before, now]) => ({ part: `variant ${before}`, reason: `is ${now} here` }));
  return [...renamed, ...changed, ...(flag.notes ?? [])];
}

/** The keys here by the keys of the product; a key that is valid is never given to another flag. */
function getKeys(originals: readonly string[]): Map<string, string> {
  const valid = originals.filter((key) => /^[a-zA-Z0-9_-]{1,400}$/.test(key));
  const keys = new Map(valid.map((key) => [key, key]));
  const used = new Set(valid);
  for (const original of originals) {
    if (keys.has(original)) continue;
    const plain = original.replace(/[^a-zA-Z0-9_-]+/g, "-").slice(0, keyLengthMax) || "flag";
    const key = uniqueKey(plain, used);
    used.add(key);
    keys.set(original, key);
  }
  return keys;
}

/** Conditions about other flags, in the product's keys and variants. */
class References {
  private readonly active: ReadonlyMap<string, boolean>;

  constructor(
    flags: readonly VendorFlag[],
    private readonly keys: ReadonlyMap<string, string>,
    private readonly variants: ReadonlyMap<string, VariantKeys>,
  ) {
    this.active = new Map(flags.map(({ key, active }) => [key, active]));
  }

  resolve(expression: Expression): Expression {
    if ("flag" in expression) return this.resolveFlag(expression.flag, expression.value);
    if ("not" in expression) return { not: this.resolve(expression.not) };
    if ("all" in expression) return { all: expression.all.map((part) => this.resolve(part)) };
    if ("any" in expression) return { any: expression.any.map((part) => this.resolve(part)) };
    return expression;
  }

  private resolveFlag(original: string, value: boolean | string): Expression {
    const variants = this.variants.get(original);
    const flag = this.keys.get(original);
    if (variants === undefined || flag === undefined)
      return unknown(`the flag ${original} is not in the file`);
    // A disabled flag has no value, and flags cannot depend on it here.
    if (this.active.get(original) !== true) return value === false ? { all: [] } : matchesNone;
    if (typeof value === "boolean") return { flag, value };
    if (!variants.has(value)) return unknown(`the flag ${original} has no variant ${JSON.stringify(value)}`);
    const own = variants.getKey(value);
    return { flag, value: own, others: variants.all().filter((other) => other !== own) };
  }
}

interface Converted {
  flag: VendorFlag;
  obstacles: Part[];
}

/** A flag that is switched off has no value, so flags that depend on it would match other users. */
function recordDependents(flags: readonly Converted[]): void {
  const isLost = ({ flag, obstacles }: Converted) => flag.active && obstacles.length > 0;
  const lost = new Set(flags.filter(isLost).map(({ flag }) => flag.key));
  for (let isChanged = true; isChanged; ) {
    isChanged = false;
    for (const converted of flags) {
      const { flag, obstacles } = converted;
      for (const rule of flag.rules)
        for (const key of flagsIn(rule.when)) {
          if (!lost.has(key) || key === flag.key || isNoted(obstacles, rule, key)) continue;
          obstacles.push({ part: rule.name, reason: dependsOn(key) });
          isChanged = true;
        }
      if (isLost(converted)) lost.add(flag.key);
    }
  }
}

const dependsOn = (key: string) => `it depends on the flag ${key}, which is imported turned off`;
const isNoted = (obstacles: readonly Part[], rule: VendorRule, key: string) =>
  obstacles.some(({ part, reason }) => part === rule.name && reason === dependsOn(key));

function distinct(parts: readonly Part[]): Part[] {
  return [...new Map(parts.map((part) => [JSON.stringify([part.part, part.reason]), part])).values()];
}
