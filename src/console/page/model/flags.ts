/** Flags in API responses, and operations on them. */

import { queryString, type Refine, request } from "../lib/api.ts";
import type { FeatureFlag, FeatureFlagPage, User as ShortUser } from "../lib/api-types.ts";
import { decimal } from "../lib/format.ts";
import { inProject } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { cohortNames } from "./definitions.ts";

export interface Condition {
  key: string;
  type?: string;
  operator?: string;
  value?: unknown;
  group_type_index?: number | null;
  [more: string]: unknown;
}

export interface ConditionSet {
  properties?: Condition[];
  rollout_percentage?: number | null;
  variant?: string | null;
  aggregation_group_type_index?: number | null;
  [more: string]: unknown;
}

export interface Variant {
  key: string;
  name?: string;
  rollout_percentage: number;
}

export interface Filters {
  groups?: ConditionSet[];
  /** Clients may omit the variants. */
  multivariate?: { variants?: Variant[] | null } | null;
  payloads?: Record<string, unknown>;
  aggregation_group_type_index?: number | null;
  [more: string]: unknown;
}

export type { ShortUser };

export type Flag = Refine<FeatureFlag, { filters: Filters }>;

export type FlagPage = Refine<FeatureFlagPage, { results: Flag[] }>;

export function changeFlag(id: number, body: Record<string, unknown>): Promise<Flag> {
  return request<Flag>(inProject(`feature_flags/${id}/`), { method: "PATCH", body });
}

/** Restores a deleted flag; its key gets a number if another flag uses it. */
export const restoreFlag = (id: number): Promise<Flag> => changeFlag(id, { deleted: false });

/** Requests a change that another user has to approve. */
/** @param change the fields, or the change of the flag's activity to undo with all later ones */
export async function createChangeRequest(
  target: { flag_id: number } | { cohort_id: number },
  change: { changes: Record<string, unknown> } | { activity_id: string },
  note: string,
): Promise<void> {
  await request(inProject("change_requests/"), {
    method: "POST",
    body: { ...target, ...change, note: note.trim() },
  });
}

export function readFlags(
  filter: Record<string, string | number | undefined>,
  signal?: AbortSignal,
): Promise<FlagPage> {
  return request<FlagPage>(inProject(`feature_flags/${queryString(filter)}`), {
    ...(signal ? { signal } : {}),
  });
}

/** Summary of the release conditions in one short line. */
export function rolloutSummary(filters: Filters): string {
  const w = messages.flags.who;
  const sets = filters.groups ?? [];
  const variants = filters.multivariate?.variants?.length ?? 0;
  const first = sets[0];
  const parts: string[] = [];
  if (!first) return w.noPersons;
  const share = first.rollout_percentage ?? 100;
  const conditions = (first.properties ?? []).map(formatCondition).join(` ${messages.flag.and} `);
  if (sets.every((set) => set.rollout_percentage === 0)) return w.noPersons;
  if (conditions === "") parts.push(share === 100 ? w.everybody : w.percent(decimal(share)));
  else parts.push(share === 100 ? conditions : w.percentOf(decimal(share), conditions));
  if (sets.length > 1) parts.push(w.sets(sets.length - 1));
  if (variants > 0) parts.push(w.variants(variants));
  return parts.join(" · ");
}

/** The type of a flag in words. */
export function flagType({
  filters,
  is_remote_configuration: isRemote,
  experiment_set: experiments,
}: Flag): string {
  const { types } = messages.flags;
  if (Array.isArray(experiments) && experiments.length > 0) return types.experiment;
  if (isRemote) return types.remote_config;
  return filters.multivariate?.variants?.length ? types.multivariant : types.boolean;
}

const operatorSigns: Record<string, string> = {
  exact: "=",
  is_not: "≠",
  icontains: "∋",
  not_icontains: "∌",
  regex: "~",
  not_regex: "≁",
  gt: ">",
  gte: "≥",
  lt: "<",
  lte: "≤",
  is_set: "is set",
  is_not_set: "is not set",
  in: "in",
  not_in: "not in",
};

/** A condition in one short line. */
export function formatCondition(condition: Condition): string {
  const { key, operator = "exact", value, type } = condition;
  const sign = operatorSigns[operator] ?? operator.replaceAll("_", " ");
  if (type === "cohort") {
    const { who } = messages.flags;
    const name = condition.cohort_name ?? cohortNames.value?.get(formatValue(value));
    const isExternal = operator === "not_in";
    if (typeof name !== "string") return isExternal ? who.notInUnknownCohort : who.inUnknownCohort;
    return isExternal ? who.notInCohort(name) : who.inCohort(name);
  }
  if (operator === "is_set" || operator === "is_not_set") return `${key} ${sign}`;
  return `${key} ${sign} ${formatValue(value)}`;
}

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatValue).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

export function userName(user: ShortUser | { first_name: string; email: string | null } | null): string {
  if (user === null) return "–";
  const last = "last_name" in user ? user.last_name : "";
  return `${user.first_name} ${last}`.trim() || user.email || "–";
}
