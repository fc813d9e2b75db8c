/** `--map`: gives the fields of a record other names, constants and fallbacks. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { getProperties } from "./lenient-json.ts";

/** A field of the event and the sources of its value: the first one with a value counts. */
export interface FieldRule {
  target: string;
  sources: readonly Source[];
}
type Source = { field: string } | { constant: string };

const eventFields = new Set(["event", "distinct_id", "timestamp", "uuid", "properties", "$set", "$set_once"]);
const inside = "properties.";
const isTarget = (name: string) => eventFields.has(name) || (name.startsWith(inside) && name !== inside);
const alternativeForm = /^(?:'([^']*)'|"([^"]*)"|([^'"|][^|]*))(?:\||$)/;

/**
 * Parses `event=event_name|'$pageview'`, a field of the event and its sources, or `old=new`, which renames a field. The
 * left side decides: a field of an event is a target.
 *
 * @returns undefined when it is neither.
 */
export function fieldRule(text: string): FieldRule | undefined {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) return undefined;
  const left = text.slice(0, at).trim();
  const right = text.slice(at + 1).trim();
  const isRename = !isTarget(left) && !/[|'"]/.test(right);
  if (isRename) return right === "" ? undefined : { target: right, sources: [{ field: left }] };
  const sources: Source[] = [];
  for (let rest = right; rest !== ""; ) {
    const match = alternativeForm.exec(rest);
    if (match === null) return undefined;
    const constant = match[1] ?? match[2];
    sources.push(constant === undefined ? { field: match[3]!.trim() } : { constant });
    rest = rest.slice(match[0].length);
  }
  return sources.length === 0 ? undefined : { target: left, sources };
}

/** A record with the rules applied; a used field loses its old name. Names in capitals become lower case. */
export function withFields(members: JsonObject, rules: readonly FieldRule[]): JsonObject {
  const record = withLowerNames(members);
  if (rules.length === 0) return record;
  const hasLowered = record !== members;
  const used = new Set<string>();
  const found: [string, Json][] = [];
  for (const { target, sources } of rules) {
    for (const source of sources) {
      const field = "constant" in source ? undefined : hasLowered ? source.field.toLowerCase() : source.field;
      const value = "constant" in source ? source.constant : valueAt(record, field!);
      if (value === undefined || value === null || value === "") continue;
      if (field !== undefined) used.add(field);
      found.push([target, value]);
      break;
    }
  }
  const targets = new Set(found.map(([target]) => target));
  const preserved = Object.entries(record).filter(([name]) => !used.has(name) && !targets.has(name));
  const result = objectFrom([...preserved, ...found.filter(([target]) => !target.startsWith(inside))]);
  const more = found
    .filter(([target]) => target.startsWith(inside))
    .map(([target, value]): [string, Json] => [target.slice(inside.length), value]);
  const properties = getProperties(result.properties);
  if (more.length > 0 && isJsonObject(properties)) result.properties = { ...properties, ...objectFrom(more) };
  return result;
}

/** A member with this name, else a nested one: `user.id`. */
function valueAt(record: JsonObject, field: string): Json | undefined {
  if (Object.hasOwn(record, field)) return record[field];
  let value: Json | undefined = record;
  for (const name of field.split(".")) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** Whether all names of a record are in capitals. */
function hasUpperNames(record: JsonObject): boolean {
  const names = Object.keys(record);
  const isUpper = (name: string) => name === name.toUpperCase();
  return names.every(isUpper) && names.some((name) => name !== name.toLowerCase());
}

/** The record with its names in lower case; unchanged if some are in lower case already. */
export function withLowerNames(record: JsonObject): JsonObject {
  if (!hasUpperNames(record)) return record;
  return objectFrom(Object.entries(record).map(([name, value]) => [name.toLowerCase(), value]));
}
