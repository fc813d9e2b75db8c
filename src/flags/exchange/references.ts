/**
 * From the names in a document to the ids in a project, and in which order things have to be made. Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { DocumentUnusable } from "./read-document.ts";

/** The ids that names stand for; undefined when there is nothing of this name. */
export interface Ids {
  cohort(name: string): number | undefined;
  flag(key: string): number | undefined;
}

/**
 * A copy in which filters give ids again.
 *
 * @param where what is being read, for the message.
 * @throws {DocumentUnusable} a name stands for nothing, neither in the document nor in the project.
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
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withIds(member, ids, where)]),
  );
}

function found(id: number | undefined, what: string, where: string): number {
  if (id !== undefined) return id;
  throw new DocumentUnusable(`${where} refers to ${what}, which is neither in the file nor in the project.`);
}

/** The names that a part refers to: keys of flags or names of cohorts. */
function namesIn(value: Json, kind: "cohort" | "flag"): Set<string> {
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
 * The items in an order in which each comes after those it refers to.
 *
 * @throws {DocumentUnusable} items refer to each other in a circle.
 */
export function inOrder<Item extends JsonObject>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
  kind: "cohort" | "flag",
): Item[] {
  const byName = new Map(items.map((item) => [nameOf(item), item]));
  const ordered: Item[] = [];
  const states = new Map<Item, "open" | "done">();
  const visit = (item: Item) => {
    if (states.get(item) === "done") return;
    if (states.get(item) === "open") {
      throw new DocumentUnusable(`The ${kind} "${nameOf(item)}" refers to itself through others.`);
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
