/** Filters of flags in words, and how two versions of them differ. Pure. */

import { decimal, formatValue } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
import { type ConditionSet, type Filters, formatCondition, rolloutSummary } from "./flags.ts";

const w = messages.flag;

/** A flag's filters, one line per condition set, variant and payload. */
export function describeFilters({ groups = [], multivariate, payloads = {} }: Filters): string[] {
  return [
    ...groups.map((set, index) => {
      const variant = set.variant ? ` · ${w.variantOfSet} ${set.variant}` : "";
      return `${w.set(index + 1)}: ${rolloutSummary({ groups: [set] })}${variant}`;
    }),
    ...(multivariate?.variants ?? []).map(
      ({ key, rollout_percentage: share }) => `${w.variantOfSet} ${key}: ${decimal(share)}%`,
    ),
    ...Object.entries(payloads).map(([key, payload]) => `${w.payload(key)}: ${formatValue(payload)}`),
  ];
}

const describedFilters = new Set(["groups", "multivariate", "payloads"]);

/** One line of text per change between two versions of `filters`. */
export function filterDifferences(before: Filters, after: Filters): string[] {
  const d = w.diff;
  const lines: string[] = [];
  const old = before.groups ?? [];
  const now = after.groups ?? [];
  for (let position = 0; position < Math.max(old.length, now.length); position++) {
    lines.push(...setDifferences(position + 1, old[position], now[position]));
  }
  const shares = (filters: Filters) =>
    new Map((filters.multivariate?.variants ?? []).map(({ key, rollout_percentage: share }) => [key, share]));
  const oldShares = shares(before);
  const newShares = shares(after);
  for (const [key, share] of newShares) {
    const was = oldShares.get(key);
    if (was === undefined) lines.push(d.variantAdded(key, decimal(share)));
    else if (was !== share) lines.push(d.share(key, decimal(was), decimal(share)));
  }
  for (const key of oldShares.keys()) if (!newShares.has(key)) lines.push(d.variantRemoved(key));
  const oldPayloads = before.payloads ?? {};
  const newPayloads = after.payloads ?? {};
  for (const key of new Set([...Object.keys(oldPayloads), ...Object.keys(newPayloads)])) {
    if (!isSame(oldPayloads[key], newPayloads[key])) lines.push(d.payload(key));
  }
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!describedFilters.has(name) && !isSame(before[name], after[name])) lines.push(d.other(name));
  }
  return lines;
}

function setDifferences(
  index: number,
  before: ConditionSet | undefined,
  after: ConditionSet | undefined,
): string[] {
  const d = w.diff;
  if (before === undefined)
    return after === undefined ? [] : [d.setAdded(index, rolloutSummary({ groups: [after] }))];
  if (after === undefined) return [d.setRemoved(index, rolloutSummary({ groups: [before] }))];
  const lines: string[] = [];
  const was = before.rollout_percentage ?? 100;
  const is = after.rollout_percentage ?? 100;
  if (was !== is) lines.push(d.rollout(index, decimal(was), decimal(is)));
  if ((before.variant ?? null) !== (after.variant ?? null)) {
    lines.push(d.setVariant(index, before.variant ?? w.byShare, after.variant ?? w.byShare));
  }
  const [oldText, newText] = [before, after].map(
    (set) => (set.properties ?? []).map(formatCondition).join(` ${w.and} `) || w.everyone,
  );
  if (!isSame(before.properties ?? [], after.properties ?? []))
    lines.push(d.conditions(index, oldText!, newText!));
  if ((before.aggregation_group_type_index ?? null) !== (after.aggregation_group_type_index ?? null)) {
    lines.push(d.aggregation(index));
  }
  return lines;
}

/** Whether two values are equal as JSON, ignoring member order. */
export function isSame(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
