/**
 * Whether a flag is active, stale, inactive or deleted.
 *
 * Source: contract, management-api 5.1 (STALE), 5.9.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { dayMs } from "../../lib/time.ts";
import { withGroups } from "./stored-filters.ts";
import { getGroups, getProperties, getVariants } from "./types.ts";

export interface StatusFacts {
  active: boolean;
  deleted: boolean;
  filters: JsonObject;
  createdAt: Date;
  /** When the flag was last called, by `$feature_flag_called` events; null when never. */
  lastCalledAt: Date | null;
}

export interface FlagStatus {
  status: "active" | "stale" | "deleted";
  /** A human-readable message; its wording is part of the contract. */
  reason: string;
  /** True when the reason describes the rollout. */
  reasonStatesRollout: boolean;
}

const staleAfterDays = 30;

/** The status of a flag. The `status` field of a flag is the same word in upper case. */
export function getStatus(flag: StatusFacts, now: Date): FlagStatus {
  const simply = (status: FlagStatus["status"], reason: string) => ({
    status,
    reason,
    reasonStatesRollout: false,
  });
  if (flag.deleted) return simply("deleted", "Flag has been deleted");
  if (!flag.active) return simply("active", "Flag is disabled (not evaluated for staleness)");
  if (flag.lastCalledAt !== null) {
    const age = now.getTime() - flag.lastCalledAt.getTime();
    const days = Math.max(0, Math.floor(age / dayMs));
    if (age > staleAfterDays * dayMs) return simply("stale", `Flag has not been called in ${days} days`);
    if (days === 0) return simply("active", "Flag was called today");
    return simply("active", `Flag was last called ${days} day${days === 1 ? "" : "s"} ago`);
  }
  const value = getConstantValue(flag.filters);
  if (value !== undefined && now.getTime() - flag.createdAt.getTime() > staleAfterDays * dayMs) {
    const reason =
      value === true
        ? 'This boolean flag will always evaluate to "true"'
        : `This flag will always use the variant "${value}"`;
    return { status: "stale", reason, reasonStatesRollout: true };
  }
  return simply("active", "Flag has no usage data yet");
}

/** The `status` field of a flag: `ACTIVE`, `STALE` or `DELETED`. */
export function getStatusField(flag: StatusFacts, now: Date): string {
  return getStatus(flag, now).status.toUpperCase();
}

/** Whether the list filter `active=STALE` shows a flag. */
export function isStale(flag: StatusFacts, now: Date): boolean {
  return getStatus(flag, now).status === "stale";
}

export interface RolloutSummary {
  isFullRollout: boolean;
  hasTargetingConditions: boolean;
  /** 0 to 100; of the condition set with the highest percentage, 0 without one. */
  maxRolloutPercentage: number;
  isMultivariate: boolean;
}

/** A short description of a flag's rollout. */
export function getRolloutSummary(stored: JsonObject): RolloutSummary {
  const filters = withGroups(stored);
  const groups = getGroups(filters);
  const percentages = groups.map(({ rollout_percentage: value }) =>
    typeof value === "number" ? value : 100,
  );
  return {
    isFullRollout: getConstantValue(stored) !== undefined,
    hasTargetingConditions: groups.some((group) => getProperties(group).length > 0),
    maxRolloutPercentage: Math.max(0, ...percentages),
    isMultivariate: getVariants(filters).length > 0,
  };
}

/**
 * The value that a fully rolled out flag always has, `true` or a variant's key; undefined for all other flags.
 *
 * Fully rolled out is a condition set without properties at exactly 100 percent.
 */
export function getConstantValue(stored: Json): true | string | undefined {
  const filters = isJsonObject(stored) ? stored : {};
  const variants = getVariants(filters);
  for (const group of getGroups(filters)) {
    if (group.rollout_percentage !== 100 || getProperties(group).length > 0) continue;
    if (variants.length === 0) return true;
    const only = group.variant || variants.find(({ rollout_percentage: share }) => share === 100)?.key;
    if (typeof only === "string") return only;
  }
  return undefined;
}
