/**
 * Dependencies between flags for SDKs: by key, with the chain of flags to evaluate first.
 *
 * Source: contract, flag-evaluation 11, management-api 5.15.
 */

import { type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import { orderByDependency } from "../evaluate/dependency-order.ts";
import { mapProperties, withGroups } from "../rules/stored-filters.ts";
import { type FlagDefinition, getGroups, getProperties } from "../rules/types.ts";

interface Node {
  id: number;
  key: string;
  active: boolean;
  dependencies: (number | undefined)[];
}

/** Builds the function that rewrites the dependencies in the filters of any of these flags, none of them deleted. */
export function dependencyRenderer(flags: readonly FlagDefinition[]): (filters: JsonObject) => JsonObject {
  // By ID, so that chains, and with them the ETag, do not depend on the order in which flags are read.
  const byId = [...flags].sort((a, b) => a.id - b.id);
  const nodes = new Map(byId.map((flag) => [flag.id, getNode(flag)]));
  const { ordered, resolutions } = orderByDependency(nodes);
  const ranks = new Map(ordered.map(({ id }, rank) => [id, rank]));

  const getChain = (target: Node): string[] => {
    if (!target.active) return [target.key];
    if (resolutions.get(target.id) !== "ok") return [];
    return dependenciesFrom(target, nodes)
      .sort((a, b) => (ranks.get(a.id) ?? -1) - (ranks.get(b.id) ?? -1))
      .map(({ key }) => key);
  };

  return (filters) =>
    mapProperties(filters, "groups", (property) => {
      if (property.type !== "flag") return property;
      const id = wholeNumber(property.key);
      const target = id === undefined ? undefined : nodes.get(id);
      if (target === undefined) return { ...property, dependency_chain: [] };
      return { ...property, key: target.key, dependency_chain: getChain(target) };
    });
}

function getNode(flag: FlagDefinition): Node {
  const dependencies = getGroups(withGroups(flag.filters))
    .flatMap(getProperties)
    .filter(({ type, operator }) => type === "flag" && operator === "flag_evaluates_to")
    .map(({ key }) => wholeNumber(key));
  return { id: flag.id, key: flag.key, active: flag.active, dependencies };
}

/** A flag and everything it depends on. An inactive flag needs nothing: it is off whatever the others are. */
function dependenciesFrom(start: Node, nodes: ReadonlyMap<number, Node>): Node[] {
  const found = new Map<number, Node>();
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (found.has(node.id)) continue;
    found.set(node.id, node);
    if (!node.active) continue;
    for (const id of node.dependencies) {
      const needed = id === undefined ? undefined : nodes.get(id);
      if (needed !== undefined) open.push(needed);
    }
  }
  return [...found.values()];
}
