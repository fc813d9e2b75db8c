/** Order in which flags with dependencies are evaluated. Source: contract, flag-evaluation 7 and 11. */

import type { Resolution } from "./model.ts";

export interface DependingFlag {
  id: number;
  active: boolean;
  /** Undefined for a reference that is not a flag ID. */
  dependencies: readonly (number | undefined)[];
}

/**
 * Orders active flags so that each follows its dependencies; flags with a cycle below them come last.
 *
 * An inactive flag is off: its dependencies do not matter. An unresolvable flag makes all flags that depend on it
 * unresolvable, because an unknown value must not count as off.
 */
export function orderByDependency<F extends DependingFlag>(
  flags: ReadonlyMap<number, F>,
): { ordered: F[]; resolutions: Map<number, Resolution> } {
  const active = [...flags.values()].filter((flag) => flag.active);
  const openCount = new Map<number, number>();
  const dependants = new Map<number, F[]>();
  for (const flag of active) {
    const needed = activeDependencies(flag, flags);
    openCount.set(flag.id, needed.length);
    for (const id of needed) {
      const above = dependants.get(id);
      if (above === undefined) dependants.set(id, [flag]);
      else above.push(flag);
    }
  }
  const resolutions = new Map<number, Resolution>();
  const ordered = active.filter((flag) => openCount.get(flag.id) === 0);
  // The list grows during iteration: a flag is added when its last dependency has been passed.
  for (const flag of ordered) {
    const isResolved = flag.dependencies.every(
      (id) => id !== undefined && flags.has(id) && (resolutions.get(id) ?? "ok") === "ok",
    );
    resolutions.set(flag.id, isResolved ? "ok" : "missing");
    for (const dependant of dependants.get(flag.id) ?? []) {
      const open = (openCount.get(dependant.id) ?? 0) - 1;
      openCount.set(dependant.id, open);
      if (open === 0) ordered.push(dependant);
    }
  }
  for (const flag of active) {
    if (resolutions.has(flag.id)) continue;
    resolutions.set(flag.id, "cycle");
    ordered.push(flag);
  }
  return { ordered, resolutions };
}

/** The IDs of all flags needed to compute some flags, themselves included. Unknown IDs are skipped. */
export function withDependencies(
  wanted: Iterable<number>,
  flags: ReadonlyMap<number, Pick<DependingFlag, "dependencies">>,
): Set<number> {
  const found = new Set<number>();
  const open = [...wanted];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const flag = flags.get(id);
    if (flag === undefined || found.has(id)) continue;
    found.add(id);
    for (const dependency of flag.dependencies) if (dependency !== undefined) open.push(dependency);
  }
  return found;
}

function activeDependencies(flag: DependingFlag, flags: ReadonlyMap<number, DependingFlag>): number[] {
  const needed = new Set<number>();
  for (const id of flag.dependencies) if (id !== undefined && flags.get(id)?.active) needed.add(id);
  return [...needed];
}
