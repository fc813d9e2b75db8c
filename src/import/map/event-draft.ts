/** An event while its record is mapped: the customer's values take precedence, and losses are reported. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { deriveCountryName, deriveFromAddresses } from "./common-fields.ts";
import type { Members } from "./members.ts";
import { isEmpty } from "./members.ts";

/** Members of a record and the properties that they become. */
export type FieldNames = Readonly<Record<string, string>>;

/** Group types of one event, as in `src/scan/assembly/records.ts`; further ones become properties (contract, import O5). */
const groupTypesMax = 5;

/** The groups of an event and those beyond the limit; undefined when it has few. */
export function limitedGroups(
  groups: Json | undefined,
): { groups: JsonObject; others: [type: string, key: Json][] } | undefined {
  if (!isJsonObject(groups)) return undefined;
  const entries = Object.entries(groups);
  if (entries.length <= groupTypesMax) return undefined;
  return { groups: objectFrom(entries.slice(0, groupTypesMax)), others: entries.slice(groupTypesMax) };
}

export class EventDraft {
  private readonly properties: Map<string, Json>;
  private readonly personSet = new Map<string, Json>();
  private readonly personSetOnce = new Map<string, Json>();
  private readonly groupKeys = new Map<string, Json>();
  /** Members that no event carries. */
  readonly omitted: Set<string>;

  /**
   * @param format prefixes names that are in use.
   * @param own    the source's property bag: derived values only fill its gaps (contract, import P1).
   */
  constructor(
    private readonly format: string,
    own: Readonly<JsonObject> | Iterable<readonly [string, Json]> = {},
    omitted: Iterable<string> = [],
  ) {
    const entries = Symbol.iterator in own ? own : Object.entries(own as JsonObject);
    this.properties = new Map(entries as Iterable<readonly [string, Json]>);
    this.omitted = new Set(omitted);
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

  /** Adds a property; if it has another value, the value is kept under the member's own name. */
  use(property: string, name: string, value: Json | undefined): void {
    if (!this.fill(property, value)) this.keep(name, value!);
  }

  /**
   * Uses members under other names. If the property has another value, the member is kept under its own name.
   *
   * @param label name for keeping a nested member: `context_os_name`.
   */
  fillFrom(members: Members, names: FieldNames, label = (name: string) => name): void {
    for (const [name, property] of Object.entries(names)) {
      this.use(property, label(name), members.take(name));
    }
  }

  /** Adds a property under this name, else under `<format>_<name>` (contract, import L1). */
  keep(name: string, value: Json): void {
    if (this.fill(name, value)) return;
    const prefixed = `${this.format.replaceAll("-", "_")}_${name}`;
    if (!this.fill(prefixed, value)) this.omitted.add(name);
  }

  /** Keeps every unused member. */
  keepRest(members: Members, label = (name: string) => name): void {
    for (const [name, value] of members.takeRest()) this.keep(label(name), value);
  }

  /** Reports members that the event does not carry. */
  omit(members: Members, names: Iterable<string>, label = (name: string) => name): void {
    for (const name of names) {
      if (members.take(name) !== undefined) this.omitted.add(label(name));
    }
  }

  /** Person properties of the record; the first value of a name counts. */
  set(values: Iterable<readonly [string, Json]> | Readonly<JsonObject>): void {
    addMissing(this.personSet, values);
  }

  /** Ensures that `$set` exists, even if empty: the event is about the person. */
  ensureSet(): void {
    if (isEmpty(this.properties.get("$set"))) this.properties.set("$set", {});
  }

  /** Person properties that do not replace a value; the first value of a name counts. */
  setOnce(values: Iterable<readonly [string, Json]> | Readonly<JsonObject>): void {
    addMissing(this.personSetOnce, values);
  }

  group(type: string, key: Json): void {
    if (!this.groupKeys.has(type)) this.groupKeys.set(type, key);
  }

  /** Fills gaps from URLs, before fields of the device or the visit do (contract, import P2). */
  deriveFromAddresses(): void {
    deriveFromAddresses(this);
  }

  /** The properties with everything derived from URLs and codes. */
  toProperties(): JsonObject {
    this.merge("$set", this.personSet);
    this.merge("$set_once", this.personSetOnce);
    this.merge("$groups", this.groupKeys);
    this.limitGroups();
    deriveFromAddresses(this);
    deriveCountryName(this);
    return objectFrom(this.properties);
  }

  private limitGroups(): void {
    const limited = limitedGroups(this.properties.get("$groups"));
    if (limited === undefined) return;
    this.properties.set("$groups", limited.groups);
    for (const [type, key] of limited.others) {
      this.keep(`$group_${type}`, key);
      this.omitted.add(`$groups.${type}`);
    }
  }

  /** Adds to an object of the property bag, whose members take precedence. */
  private merge(name: string, values: ReadonlyMap<string, Json>): void {
    if (values.size === 0) return;
    const own = this.properties.get(name);
    const present = isJsonObject(own) ? Object.entries(own) : [];
    const merged = new Map([
      ...present,
      ...[...values].filter(([each]) => !isJsonObject(own) || isEmpty(own[each])),
    ]);
    for (const [each, value] of values)
      if (!isEqual(merged.get(each)!, value)) this.omitted.add(`${name}.${each}`);
    this.properties.set(name, objectFrom(merged));
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

function isEqual(a: Json, b: Json): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
