/**
 * PostHog's own JSON: lists of its API, a single flag, and the definitions that its libraries poll. Bucketing is
 * identical, so every user keeps the same values. Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { type FlagDocument, nestingIssue, writeDocument } from "../document.ts";
import type { NotMapped } from "./flag-items.ts";
import { entries, list, name, object, stringify } from "./values.ts";

/** Flags and cohorts as in responses of PostHog's API. */
export interface PostHogContent {
  flags: readonly JsonObject[];
  cohorts: readonly JsonObject[];
  groupTypes: readonly { index: number; name: string }[];
}

export function isPostHog(root: Json): boolean {
  return flagsIn(root)
    .filter(isJsonObject)
    .some(
      ({ key, active, filters }) =>
        name(key) !== undefined &&
        isJsonObject(filters) &&
        (Array.isArray(filters.groups) || active !== undefined),
    );
}

/** @returns also the flags that could not be read, and messages about parts of the file that are not in the document. */
export function readPostHog(root: Json): {
  document: FlagDocument;
  notMapped: NotMapped[];
  unread: number;
  remarks: string[];
} {
  const file = object(root);
  const { flags, notMapped } = readable(flagsIn(root));
  const { document, renamed } = posthogDocument({
    flags,
    // Definitions contain the filters of cohorts by ID, without their names.
    cohorts: entries(file.cohorts).map(([id, properties]) => ({ id: Number(id), filters: { properties } })),
    groupTypes: Object.entries(object(file.group_type_mapping)).map(([index, type]) => ({
      index: Number(index),
      name: stringify(type),
    })),
  });
  const isOnePage = typeof file.next === "string";
  const more = isOnePage
    ? ["The file is one page of several and does not contain the flags of the others."]
    : [];
  return { document, notMapped, unread: notMapped.length, remarks: [...more, ...renamed] };
}

/** The flags that have the form of a flag; each of the others is reported. */
function readable(listed: readonly Json[]): { flags: JsonObject[]; notMapped: NotMapped[] } {
  const flags: JsonObject[] = [];
  const notMapped: NotMapped[] = [];
  const keys = new Set<string>();
  for (const [index, flag] of listed.entries()) {
    if (isJsonObject(flag) && !isRetained(flag)) continue;
    const key = isJsonObject(flag) ? name(flag.key) : undefined;
    const reason = getProblem(flag, key, keys);
    if (reason !== undefined)
      notMapped.push({ flag: key ?? `${index + 1} of the file`, part: "the flag", reason });
    else flags.push(flag as JsonObject);
    if (key !== undefined) keys.add(key);
  }
  return { flags, notMapped };
}

function getProblem(flag: Json, key: string | undefined, known: ReadonlySet<string>): string | undefined {
  if (!isJsonObject(flag)) return "is not an object";
  if (key === undefined) return "has no key";
  if (known.has(key)) return "is in the file twice; the first is imported";
  const { filters = null } = flag;
  const hasFilters = filters === null || isJsonObject(filters);
  return nestingIssue(flag) ?? (hasFilters ? undefined : "its filters are not an object");
}

function flagsIn(root: Json): readonly Json[] {
  if (!isJsonObject(root)) return list(root);
  if (root.flagkeep_flags !== undefined) return [];
  return isJsonObject(root.filters) ? [root] : list(root.results ?? root.flags);
}

/**
 * Converts a PostHog project to a document, without deleted items.
 *
 * @returns also messages about cohorts that are renamed in it.
 */
export function posthogDocument({ flags, cohorts, groupTypes }: PostHogContent): {
  document: FlagDocument;
  renamed: string[];
} {
  const preserved = cohorts.filter(isRetained);
  const { names, renamed } = uniqueNames(preserved);
  const document = writeDocument({
    flags: flags
      .filter(isRetained)
      .map((flag) => ({ id: Number(flag.id), key: String(flag.key), fields: flag })),
    cohorts: preserved.map((cohort) => ({
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

/** Here cohorts are identified by name: in PostHog some have none, and several the same. */
function uniqueNames(cohorts: readonly JsonObject[]) {
  const names = new Map<number, string>();
  const used = new Set<string>();
  const renamed: string[] = [];
  const byAge = cohorts.toSorted((a, b) => Number(a.id) - Number(b.id));
  for (const { id, name: written } of byAge) {
    const sent = String(written ?? "").trim() || `Cohort ${id}`;
    let own = sent;
    for (let number = 2; used.has(own); number++) own = `${sent} (${number})`;
    if (own !== sent) renamed.push(`Several cohorts are named "${sent}": one is imported as "${own}".`);
    used.add(own);
    names.set(Number(id), own);
  }
  return { names, renamed };
}

const isRetained = ({ deleted }: JsonObject) => deleted !== true;
