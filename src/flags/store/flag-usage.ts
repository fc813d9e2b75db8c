/**
 * Effects of usage on flags: time of the last call, whether views are reported, the usage dashboard.
 *
 * None of them is a user's change: version, `updated_at` and the activity log stay unchanged (contract: management-api
 * 3.8).
 */

import { and, eq, inArray, isNull, lt, or } from "drizzle-orm";
import type { Metadata } from "../../accounts/metadata.ts";
import { flag } from "../../accounts/schema.ts";
import type { Flag } from "../fields.ts";
import { findFlagByKey } from "./flag.ts";
import {
  addEnrichedInsights,
  createUsageDashboard,
  hasEnrichedInsights,
  liveUsageDashboard,
} from "./flag-usage-dashboard.ts";

/** The dashboard, or the reason why not, in the contract's words. */
export type UsageDashboardResult =
  | { kind: "done"; dashboardId: number }
  | { kind: "refused"; reason: string };

/** When a flag was called. */
export interface FlagCall {
  key: string;
  at: Date;
}

/** Records when flags were last called; times older than the known one are ignored. */
export function recordFlagCalls(metadata: Metadata, projectId: number, calls: readonly FlagCall[]): void {
  if (calls.length === 0) return;
  metadata.change((t) => {
    for (const { key, at } of calls) {
      t.update(flag)
        .set({ lastCalledAt: at })
        .where(
          and(
            eq(flag.projectId, projectId),
            eq(flag.key, key),
            or(isNull(flag.lastCalledAt), lt(flag.lastCalledAt, at)),
          ),
        )
        .run();
    }
  });
}

/** Records that views of flags are reported, and adds them to existing usage dashboards. */
export function recordFeatureViews(
  metadata: Metadata,
  projectId: number,
  keys: readonly string[],
  now = new Date(),
): void {
  const unknown = metadata.db
    .select({ key: flag.key })
    .from(flag)
    .where(
      and(
        eq(flag.projectId, projectId),
        inArray(flag.key, [...new Set(keys)]),
        eq(flag.deleted, false),
        or(isNull(flag.hasEnrichedAnalytics), eq(flag.hasEnrichedAnalytics, false)),
      ),
    )
    .all();
  if (unknown.length === 0) return;
  metadata.change((t) => {
    for (const { key } of unknown) {
      const found = findFlagByKey(t, projectId, key);
      if (!found) continue;
      t.update(flag).set({ hasEnrichedAnalytics: true }).where(eq(flag.id, found.id)).run();
      const dashboardId = liveUsageDashboard(t, found);
      if (dashboardId !== undefined && !hasEnrichedInsights(t, dashboardId)) {
        addEnrichedInsights(t, found, dashboardId, null, now);
      }
    }
  });
}

/** Creates a usage dashboard unless the flag has one. */
export function ensureUsageDashboard(
  metadata: Metadata,
  flag: Flag,
  by: number | null,
  now: Date,
): UsageDashboardResult {
  if (flag.deleted) {
    return {
      kind: "refused",
      reason: "This feature flag has been deleted. Restore it before generating a usage dashboard.",
    };
  }
  return metadata.change((t) => {
    const known = liveUsageDashboard(t, flag);
    if (known === undefined) return { kind: "done", dashboardId: createUsageDashboard(t, flag, by, now) };
    if (flag.hasEnrichedAnalytics && !hasEnrichedInsights(t, known)) {
      addEnrichedInsights(t, flag, known, by, now);
    }
    return { kind: "done", dashboardId: known };
  });
}

/**
 * Adds views and interactions to a usage dashboard; one that has them stays unchanged (contract, management-api 5.13).
 */
export function enrichUsageDashboard(
  metadata: Metadata,
  flag: Flag,
  by: number | null,
  now: Date,
): UsageDashboardResult {
  return metadata.change((t) => {
    const known = liveUsageDashboard(t, flag);
    if (known === undefined) return { kind: "refused", reason: "Usage dashboard not found" };
    if (hasEnrichedInsights(t, known)) return { kind: "done", dashboardId: known };
    if (!flag.hasEnrichedAnalytics) {
      return { kind: "refused", reason: "No enriched analytics available for this feature flag" };
    }
    addEnrichedInsights(t, flag, known, by, now);
    return { kind: "done", dashboardId: known };
  });
}
