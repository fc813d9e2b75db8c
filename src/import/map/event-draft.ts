/** An event while its record is mapped: the customer's values take precedence, and nothing is lost unseen. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import { deriveFromAddresses } from "./common-fields.ts";
import type { Members } from "./members.ts";
import { isEmpty } from "./members.ts";

/** Members of a record and the properties that they become. */
export type FieldNames = Readonly<Record<string, string>>;

export class EventDraft {
  private readonly properties: Map<string, Json>;
  private readonly personSet = new Map<string, Json>();
  private readonly personSetOnce = new Map<string, Json>();
  private readonly groupKeys = new Map<string, Json>();
  /** Members that no event carries. */
  readonly notTaken: Set<string>;

  /**
   * @param format prefixes names that are in use.
   * @param own    the source's property bag: derived values only fill its gaps (contract, import P1).
   */
  constructor(
    private readonly format: string,
    own: Readonly<JsonObject> | Iterable<readonly [string, Json]> = {},
    notTaken: Iterable<string> = [],
  ) {
    const entries = Symbol.iterator in own ? own : Object.entries(own as JsonObject);
    this.properties = new Map(entries as Iterable<readonly [string, Json]>);
    this.notTaken = new Set(notTaken);
  }

  get(name: string): Json | undefined {
    return this.properties.get(name);
  }

  /** Adds a property unless it has a value already. @returns whether the property has this value now. */
  fill(name: string, value: Json | undefined): boolean {
    if (value === undefined || isEmpty(value)) return true;
    const present = this.properties.get(name);
    if (!isEmpty(present)) return isEqual(present!, value);
    this.properties.set(name, value);
    return true;
  }

  /**
   * Uses members under other names. A value whose property is in use by another value is kept under its own name.
   *
   * @param label of a nested member, under which it is kept: `context_os_name`.
   */
  fillFrom(members: Members, names: FieldNames, label = (name: string) => name): void {
    for (const [name, property] of Object.entries(names)) {
      const value = members.take(name);
      if (!this.fill(property, value)) this.keep(label(name), value!);
    }
  }

  /** Adds a property under this name, else under `<format>_<name>` (contract, import L1). */
  keep(name: string, value: Json): void {
    if (this.fill(name, value)) return;
    const prefixed = `${this.format.replaceAll("-", "_")}_${name}`;
    if (!this.fill(prefixed, value)) this.notTaken.add(name);
  }

  /** Keeps every unused member. */
  keepRest(members: Members, label = (name: string) => name): void {
    for (const [name, value] of members.takeRest()) this.keep(label(name), value);
  }

  /** Members that the event does not carry: they are reported. */
  omit(members: Members, names: Iterable<string>, label = (name: string) => name): void {
    for (const name of names) {
      if (members.take(name) !== undefined) this.notTaken.add(label(name));
    }
  }

  /** Person properties of the record; the first value of a name stays. */
  set(values: Iterable<readonly [string, Json]> | Readonly<JsonObject>): void {
    addMissing(this.personSet, values);
  }

  /** Makes `$set` present, even if it is empty: the event is about the person. */
  ensureSet(): void {
    if (isEmpty(this.properties.get("$set"))) this.properties.set("$set", {});
  }

  /** Person properties that do not replace a value; the first value of a name stays. */
  setOnce(values: Iterable<readonly [string, Json]> | Readonly<JsonObject>): void {
    addMissing(this.personSetOnce, values);
  }

  group(type: string, key: Json): void {
    if (!this.groupKeys.has(type)) this.groupKeys.set(type, key);
  }

  /** The properties with everything that addresses and screens supply. */
  toProperties(): JsonObject {
    this.merge("$set", this.personSet);
    this.merge("$set_once", this.personSetOnce);
    this.merge("$groups", this.groupKeys);
    deriveFromAddresses(this);
    return objectFrom(this.properties);
  }

  /** Adds to an object of the property bag, whose members win. */
  private merge(name: string, values: ReadonlyMap<string, Json>): void {
    if (values.size === 0) return;
    const own = this.properties.get(name);
    const present = isJsonObject(own) ? Object.entries(own) : [];
    this.properties.set(name, objectFrom([...values, ...present]));
  }
}

function addMissing(
  target: Map<string, Json>,
  values: Iterable<readonly [string, Json]> | Readonly<JsonObject>,
): void {
  const entries = Symbol.iterator in values ? values : Object.entries(values as JsonObject);
  for (const [name, value] of entries as Iterable<readonly [string, Json]>) {
    if (!isEmpty(value) && !target.has(name)) target.set(name, value);
  }
}

function isEqual(one: Json, other: Json): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
