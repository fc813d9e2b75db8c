/** The members of a record while it is mapped: each one is used, kept or reported (contract, import L1). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { getId, toJsonString, toList } from "./lenient-json.ts";

/** Whether a member has no value: null, an empty string, list or object. Such members do not count as lost. */
export function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.length === 0;
  return Object.getPrototypeOf(value) === Object.prototype && Object.keys(value).length === 0;
}

/** Whether a member has no value, or is an empty object or list as a JSON string, as tables have it. */
export function isBlank(value: Json | undefined): boolean {
  return isEmpty(value) || (typeof value === "string" && /^\s*(?:\{\s*\}|\[\s*\])\s*$/.test(value));
}

/** Whether a member has a value, or an object or a list has one inside: Parquet writes each struct in every row. */
function hasContent(value: Json | undefined): boolean {
  if (isEmpty(value)) return false;
  if (Array.isArray(value)) return value.some(hasContent);
  return !isJsonObject(value) || Object.values(value).some(hasContent);
}

/** Members that were not used yet. Those without a value are skipped from the start. */
export class Members {
  private readonly unused: Map<string, Json>;

  constructor(object: Readonly<JsonObject>) {
    this.unused = new Map(Object.entries(object).filter(([, value]) => hasContent(value)));
  }

  has(name: string): boolean {
    return this.unused.has(name);
  }

  /** The value, which stays unused. */
  peek(name: string): Json | undefined {
    return this.unused.get(name);
  }

  /** The value, which counts as used from now on. */
  take(name: string): Json | undefined {
    const value = this.unused.get(name);
    this.unused.delete(name);
    return value;
  }

  /** The first of these members that has a value; the others stay unused. */
  takeFirst(...names: string[]): Json | undefined {
    const name = names.find((each) => this.unused.has(each));
    return name === undefined ? undefined : this.take(name);
  }

  /** A member that is an ID, in any notation. */
  takeId(name: string): string | undefined {
    const id = getId(this.unused.get(name));
    if (id !== undefined) this.unused.delete(name);
    return id;
  }

  /** The members of an object. A value that is not an object stays unused. */
  takeMembers(name: string): Members {
    const value = this.unused.get(name);
    const object = value === undefined ? undefined : toJsonString(value);
    // An object whose members are all empty is used, too.
    if (isJsonObject(object) || isBlank(value)) this.unused.delete(name);
    return new Members(isJsonObject(object) ? object : {});
  }

  /** The elements of a list. A value that is not a list stays unused. */
  takeList(name: string): Json[] {
    const value = this.unused.get(name);
    const list = toList(value);
    if (list.length > 0 || isBlank(value)) this.unused.delete(name);
    return list;
  }

  /** The names of the unused members. */
  names(): string[] {
    return [...this.unused.keys()];
  }

  /** The unused members; they stay unused. */
  entries(): [name: string, value: Json][] {
    return [...this.unused];
  }

  /** The unused members, which count as used from now on. */
  *takeRest(): Generator<[name: string, value: Json]> {
    for (const entry of this.entries()) {
      this.unused.delete(entry[0]);
      yield entry;
    }
  }
}

/** The names of the members that have a value, other than these. */
export function getRest(record: Readonly<JsonObject>, used: readonly string[]): string[] {
  return Object.keys(record).filter((name) => !used.includes(name) && hasContent(record[name]));
}

/** A boolean in the notation of any source. */
export function isTrue(value: Json | undefined): boolean {
  return value === true || value === 1 || (typeof value === "string" && /^(true|1|t|yes)$/i.test(value));
}
