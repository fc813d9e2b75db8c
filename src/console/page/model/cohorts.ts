/** Cohorts in API responses: their conditions, and changes of them in words. Pure. */

import type { Cohort } from "../lib/api-types.ts";
import { messages } from "../messages/index.ts";
import { lazyMessages } from "../messages/later.ts";
import { isSame } from "./filter-differences.ts";
import { type Condition, formatCondition } from "./flags.ts";

const w = lazyMessages.cohorts;

export type { Cohort };

interface CohortFilters {
  properties?: { type?: string; values?: ConditionGroup[] };
}

interface ConditionGroup {
  type: string;
  values: (Condition | ConditionGroup)[];
}

/** Groups of plain conditions, as the editor shows them; undefined for other forms. */
export function plainGroups({ properties: top }: CohortFilters): Condition[][] | undefined {
  const groups = top?.values ?? [];
  // One group without a list around it.
  if (top?.type === "AND" && groups.some((group) => !("values" in group)))
    return plainGroups({ properties: { type: "OR", values: [top as ConditionGroup] } });
  if (top?.type === "AND" && groups.length > 1) return undefined;
  const plain: Condition[][] = [];
  for (const group of groups) {
    const values = (group as ConditionGroup).values;
    if (!Array.isArray(values) || (group.type === "OR" && values.length > 1)) return undefined;
    const isPlain = values.every(
      (value) =>
        !("values" in value) && ["person", "cohort"].includes(String((value as Condition).type ?? "person")),
    );
    if (!isPlain) return undefined;
    plain.push(values as Condition[]);
  }
  return plain.length === 0 ? [[]] : plain;
}

/** A change of a cohort, one line each. @param changes body of a PATCH. */
export function cohortDifferences(cohort: Cohort, changes: Record<string, unknown>): string[] {
  const d = w.diff;
  const lines: string[] = [];
  if (changes.deleted === true) lines.push(d.deleted);
  if (changes.deleted === false) lines.push(d.restored);
  for (const name of ["name", "description"] as const) {
    const value = changes[name];
    if (typeof value === "string" && value !== cohort[name]) lines.push(d[name](cohort[name], value));
  }
  if (typeof changes.is_static === "boolean" && changes.is_static !== cohort.is_static)
    lines.push(d.kind(changes.is_static ? w.static : w.dynamic));
  if (changes.filters !== undefined && !isSame(changes.filters, cohort.filters)) {
    const [before, after] = [cohort.filters, changes.filters as CohortFilters].map(formatFilters);
    lines.push(before === undefined || after === undefined ? d.otherConditions : d.conditions(before, after));
  }
  if (typeof changes.csv === "string") lines.push(d.members(changes.csv.trim().split("\n").length));
  for (const name of ["groups", "query"]) if (changes[name] !== undefined) lines.push(d.other(name));
  return lines;
}

function formatFilters(filters: CohortFilters): string | undefined {
  const groups = plainGroups(filters)?.filter((conditions) => conditions.length > 0);
  if (groups === undefined) return undefined;
  const sets = groups.map((conditions) => conditions.map(formatCondition).join(` ${messages.flag.and} `));
  return sets.join(` ${w.or} `) || messages.flag.everyone;
}
