/** A flag being edited: its changes in words, and validation errors by field. Pure. */

import { decimal } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
import { filterDifferences, isSame } from "./filter-differences.ts";
import type { Filters, Flag } from "./flags.ts";

const w = messages.flag;

export type ValueKind = "boolean" | "variants" | "remote";

export interface Draft {
  key: string;
  name: string;
  tags: string[];
  filters: Filters;
  isRemote: boolean;
  persistsAcrossLogin: boolean;
  bucketing: string;
  runtime: string;
}

/** The editable part of a flag. */
export function toDraft(flag: Flag): Draft {
  return {
    key: flag.key,
    name: flag.name,
    tags: [...flag.tags],
    filters: structuredClone(flag.filters),
    isRemote: flag.is_remote_configuration === true,
    persistsAcrossLogin: flag.ensure_experience_continuity === true,
    bucketing: flag.bucketing_identifier ?? "distinct_id",
    runtime: flag.evaluation_runtime ?? "all",
  };
}

/** Which of the three kinds of value a flag has. */
export function getKind({ isRemote, filters }: Draft): ValueKind {
  if (isRemote) return "remote";
  return filters.multivariate?.variants?.length ? "variants" : "boolean";
}

/** The fields that differ, by their API names. */
export function changedFields(flag: Flag, draft: Draft): Record<string, unknown> {
  const before = toDraft(flag);
  const all: readonly (readonly [string, keyof Draft])[] = [
    ["key", "key"],
    ["name", "name"],
    ["tags", "tags"],
    ["filters", "filters"],
    ["is_remote_configuration", "isRemote"],
    ["ensure_experience_continuity", "persistsAcrossLogin"],
    ["bucketing_identifier", "bucketing"],
    ["evaluation_runtime", "runtime"],
  ];
  return Object.fromEntries(
    all
      .filter(([, field]) => !isSame(before[field], draft[field]))
      .map(([name, field]) => [name, draft[field]]),
  );
}

/** One line of text per change between two drafts. */
export function differences(before: Draft, after: Draft): string[] {
  const d = w.diff;
  const lines: string[] = [];
  if (before.key !== after.key) lines.push(d.key(before.key, after.key));
  if (before.name !== after.name) lines.push(d.description(before.name, after.name));
  for (const tag of after.tags) if (!before.tags.includes(tag)) lines.push(d.tagAdded(tag));
  for (const tag of before.tags) if (!after.tags.includes(tag)) lines.push(d.tagRemoved(tag));
  const kinds = [getKind(before), getKind(after)] as const;
  if (kinds[0] !== kinds[1]) lines.push(d.kind(w.kinds[kinds[0]], w.kinds[kinds[1]]));
  if (before.bucketing !== after.bucketing) {
    lines.push(d.bucketing(named(w.bucketings, before.bucketing), named(w.bucketings, after.bucketing)));
  }
  if (before.runtime !== after.runtime) {
    lines.push(d.runtime(named(w.runtimes, before.runtime), named(w.runtimes, after.runtime)));
  }
  if (before.persistsAcrossLogin !== after.persistsAcrossLogin) lines.push(d.keep(after.persistsAcrossLogin));
  lines.push(...filterDifferences(before.filters, after.filters));
  return lines;
}

/** Validation errors that prevent saving, by field. */
export function getProblems(draft: Draft): Map<string, string> {
  const problems = new Map<string, string>();
  const variants = draft.filters.multivariate?.variants ?? [];
  if (variants.length > 0) {
    const sum = variants.reduce((total, { rollout_percentage: share }) => total + share, 0);
    if (Number.isNaN(sum)) problems.set("variants", w.shareWrong);
    else if (Math.abs(sum - 100) > 0.001) problems.set("variants", w.sumWrong(decimal(sum)));
  }
  for (const [key, payload] of Object.entries(draft.filters.payloads ?? {})) {
    if (typeof payload === "string" && payload !== "" && !isJson(payload)) {
      problems.set(`payload ${key}`, w.payloadWrong);
    }
  }
  for (const [setPosition, set] of (draft.filters.groups ?? []).entries()) {
    if (Number.isNaN(set.rollout_percentage)) problems.set(`set ${setPosition}`, w.shareWrong);
    for (const [index, condition] of (set.properties ?? []).entries()) {
      const problem = conditionProblem(condition);
      if (problem !== undefined) problems.set(`condition ${setPosition} ${index}`, problem);
    }
  }
  return problems;
}

const valueless = new Set(["is_set", "is_not_set"]);
const numeric = new Set(["gt", "gte", "lt", "lte"]);

/** Validation error of a condition, as far as the page can check; the server checks the rest. */
export function conditionProblem(condition: {
  key: string;
  type?: string;
  operator?: string;
  value?: unknown;
}): string | undefined {
  const c = w.condition;
  const { key, type, operator = "exact", value } = condition;
  if (type !== "cohort" && key === "") return c.keyMissing;
  if (valueless.has(operator)) return undefined;
  const isEmpty =
    value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
  if (isEmpty) return c.valueMissing;
  if (numeric.has(operator) && typeof value === "string" && Number.isNaN(Number(value))) return c.numberWrong;
  if (operator === "regex" || operator === "not_regex") {
    try {
      new RegExp(String(value), "u");
    } catch {
      // The server uses RE2, which supports a few more forms.
      if (!/\(\?[imsU-]+[):]|\(\?P</.test(String(value))) return c.regexWrong;
    }
  }
  return undefined;
}

/** Renames a variant in filters wherever it is referenced; undefined removes it. */
export function renameVariant(filters: Filters, before: string, after: string | undefined): Filters {
  const { [before]: payload, ...payloads } = filters.payloads ?? {};
  const variants = filters.multivariate?.variants ?? [];
  return {
    ...filters,
    multivariate: {
      ...filters.multivariate,
      variants: variants.flatMap((variant) =>
        variant.key !== before ? variant : after === undefined ? [] : { ...variant, key: after },
      ),
    },
    payloads: after === undefined || payload === undefined ? payloads : { ...payloads, [after]: payload },
    groups: (filters.groups ?? []).map((set) =>
      set.variant === before ? { ...set, variant: after ?? null } : set,
    ),
  };
}

/** Percentages of n variants that add up to exactly 100. */
export function evenShares(count: number): number[] {
  const share = Math.floor(100 / count);
  return Array.from({ length: count }, (_, index) => (index < 100 - share * count ? share + 1 : share));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function named(names: Record<string, string>, name: string): string {
  return names[name] ?? name;
}
