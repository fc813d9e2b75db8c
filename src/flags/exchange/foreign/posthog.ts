/**
 * PostHog's own JSON: lists of its API, one flag, and the definitions that its libraries poll. Bucketing is the same here, so
 * that everybody keeps their values. Pure.
 */

import { unusableCondition } from "../../../cohorts/cohort-filters.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import { type ExchangeDocument, writeDocument } from "../document.ts";
import { withoutDangling } from "../references.ts";
import { asText, entries, name, object, objects } from "./values.ts";

/** Flags and cohorts as PostHog's API answers them. */
export interface PostHogContent {
  flags: readonly JsonObject[];
  cohorts: readonly JsonObject[];
  groupTypes: readonly { index: number; name: string }[];
}

export function isPostHog(root: Json): boolean {
  const [first] = flagsIn(root);
  if (first === undefined || !isJsonObject(first.filters)) return false;
  return name(first.key) !== undefined && (Array.isArray(first.filters.groups) || "active" in first);
}

/** @returns also sentences about what of the file is not in the document. */
export function readPostHog(root: Json): { document: ExchangeDocument; remarks: string[] } {
  const file = object(root);
  const { document, renamed } = posthogDocument({
    flags: flagsIn(root).filter(({ key }) => name(key) !== undefined),
    // Beside definitions there are the filters of cohorts by id, without their names.
    cohorts: entries(file.cohorts).map(([id, properties]) => ({ id: Number(id), filters: { properties } })),
    groupTypes: Object.entries(object(file.group_type_mapping)).map(([index, type]) => ({
      index: Number(index),
      name: asText(type),
    })),
  });
  const isOnePage = typeof file.next === "string";
  const more = isOnePage ? ["The file is one page of several: the flags of the others are not in it."] : [];
  return { document, remarks: [...more, ...renamed] };
}

function flagsIn(root: Json): JsonObject[] {
  if (!isJsonObject(root)) return objects(root);
  if (root.flagkeep_flags !== undefined) return [];
  return isJsonObject(root.filters) ? [root] : objects(root.results ?? root.flags);
}

/**
 * Writes a project of PostHog down, without what was deleted.
 *
 * @returns also sentences about cohorts that have another name in it.
 */
export function posthogDocument({ flags, cohorts, groupTypes }: PostHogContent): {
  document: ExchangeDocument;
  renamed: string[];
} {
  const kept = cohorts.filter(isKept);
  const { names, renamed } = namesApart(kept);
  const document = writeDocument({
    flags: flags.filter(isKept).map((flag) => ({ id: Number(flag.id), key: String(flag.key), fields: flag })),
    cohorts: kept.map((cohort) => ({
      id: Number(cohort.id),
      name: names.get(Number(cohort.id))!,
      description: String(cohort.description ?? ""),
      isStatic: cohort.is_static === true,
      filters: object(cohort.filters),
    })),
    groupTypes,
  });
  return { document, renamed };
}

/**
 * PostHog knows more kinds of conditions, and lets flags refer to cohorts that were deleted: what has
 * such a thing must not stop all others.
 *
 * @returns also why each was left out, as sentences.
 */
export function withoutUncomputable(document: ExchangeDocument): {
  document: ExchangeDocument;
  leftOut: string[];
} {
  const uncomputable: string[] = [];
  const cohorts = document.cohorts.filter(({ name: cohort, filters }) => {
    const reason = unusableCondition(filters ?? null);
    if (reason !== undefined) uncomputable.push(`Cohort "${cohort}" is left out: ${reason}`);
    return reason === undefined;
  });
  const { document: whole, leftOut } = withoutDangling({ ...document, cohorts });
  return { document: whole, leftOut: [...uncomputable, ...leftOut] };
}

/** Here cohorts are known by their names: there some have none, and several the same. */
function namesApart(cohorts: readonly JsonObject[]) {
  const names = new Map<number, string>();
  const taken = new Set<string>();
  const renamed: string[] = [];
  const byAge = cohorts.toSorted((one, other) => Number(one.id) - Number(other.id));
  for (const { id, name: written } of byAge) {
    const given = String(written ?? "").trim() || `Cohort ${id}`;
    let own = given;
    for (let number = 2; taken.has(own); number++) own = `${given} (${number})`;
    if (own !== given) renamed.push(`There are several cohorts "${given}": one is called "${own}" here.`);
    taken.add(own);
    names.set(Number(id), own);
  }
  return { names, renamed };
}

const isKept = ({ deleted }: JsonObject) => deleted !== true;
