/** Resolves names in a document to IDs of a project, and orders the items for creation. Pure. */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import { InvalidDocumentError } from "./read-document.ts";

/** The IDs for names; undefined for unknown names. */
export interface Ids {
  cohort(name: string): number | undefined;
  flag(key: string): number | undefined;
}

/**
 * A copy in which filters contain IDs again.
 *
 * @param where location for the message.
 * @throws {InvalidDocumentError} a name is neither in the document nor in the project, or only an ID of another project
 * is given.
 */
export function withIds(value: Json, ids: Ids, where: string): Json {
  if (Array.isArray(value)) return value.map((item) => withIds(item, ids, where));
  if (!isJsonObject(value)) return value;
  if (value.type === "cohort" && typeof value.cohort === "string") {
    const { cohort: name, ...others } = value;
    return { key: "id", ...others, value: found(ids.cohort(name as string), `a cohort "${name}"`, where) };
  }
  if (value.type === "flag" && typeof value.flag === "string") {
    const { flag: key, ...others } = value;
    return { ...others, key: String(found(ids.flag(key as string), `a flag "${key}"`, where)) };
  }
  rejectNumbers(value, where);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withIds(member, ids, where)]),
  );
}

/** An export contains the ID of a deleted item; in this project another one may have it. */
function rejectNumbers({ type, value, key }: JsonObject, where: string): void {
  const number = type === "cohort" ? wholeNumber(value) : type === "flag" ? wholeNumber(key) : undefined;
  if (number === undefined) return;
  throw new InvalidDocumentError(
    `${where} references a ${type} by the ID ${number}, which is only valid in its project. Use its "${type}" name, or remove the condition.`,
  );
}

function found(id: number | undefined, what: string, where: string): number {
  if (id !== undefined) return id;
  throw new InvalidDocumentError(
    `${where} refers to ${what}, which is neither in the file nor in the project.`,
  );
}

/** A flag by its key or a cohort by its name. */
export interface NamedItem {
  kind: "cohort" | "flag";
  name: string;
}

/** Keys of flags or names of cohorts that a value refers to. */
export function namesIn(value: Json, kind: "cohort" | "flag"): Set<string> {
  const names = new Set<string>();
  const open: Json[] = [value];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) open.push(...node);
    if (!isJsonObject(node)) continue;
    const name = node.type === kind ? node[kind] : undefined;
    if (typeof name === "string") names.add(name);
    open.push(...Object.values(node));
  }
  return names;
}

/**
 * The items ordered so that each follows those it refers to.
 *
 * @param toleratesCircles the reference that closes a cycle is ignored.
 * @throws {InvalidDocumentError} items refer to each other in a cycle.
 */
export function inOrder<Item extends JsonObject>(
  items: readonly Item[],
  getName: (item: Item) => string,
  kind: "cohort" | "flag",
  toleratesCircles = false,
): Item[] {
  const byName = new Map(items.map((item) => [getName(item), item]));
  const ordered: Item[] = [];
  const states = new Map<Item, "open" | "done">();
  const visit = (item: Item) => {
    if (states.get(item) === "done") return;
    if (states.get(item) === "open") {
      if (toleratesCircles) return;
      throw new InvalidDocumentError(`The ${kind} "${getName(item)}" has a circular reference.`);
    }
    states.set(item, "open");
    for (const name of namesIn(item.filters ?? null, kind)) {
      const needed = byName.get(name);
      if (needed !== undefined) visit(needed);
    }
    states.set(item, "done");
    ordered.push(item);
  };
  for (const item of items) visit(item);
  return ordered;
}
