/**
 * What usage does to flags: the time of the last call, whether views are reported, the usage dashboard.
 *
 * None of it is a change by a person: version, `updated_at` and the activity log stay as they are
 * (contract: management-api 3.8).
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

/** Done, or the reason why not, in the contract's words. */
export type Outcome = { kind: "done" } | { kind: "refused"; reason: string };

/** When a flag was asked for. */
export interface FlagCall {
  key: string;
  at: Date;
}

/** Remembers when flags were last asked for; older times than the known one change nothing. */
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

/** Remembers that views of flags are reported, and adds them to the usage dashboards there are. */
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

/** Makes a usage dashboard unless the flag has one. */
export function ensureUsageDashboard(metadata: Metadata, of: Flag, by: number, now: Date): Outcome {
  if (of.deleted) {
    return {
      kind: "refused",
      reason: "This feature flag has been deleted. Restore it before generating a usage dashboard.",
    };
  }
  return metadata.change((t) => {
    const known = liveUsageDashboard(t, of);
    if (known === undefined) createUsageDashboard(t, of, by, now);
    else if (of.hasEnrichedAnalytics && !hasEnrichedInsights(t, known)) {
      addEnrichedInsights(t, of, known, by, now);
    }
    return { kind: "done" };
  });
}

/** Adds views and interactions to a usage dashboard; one that has them stays as it is (contract, management-api 5.13). */
export function enrichUsageDashboard(metadata: Metadata, of: Flag, by: number, now: Date): Outcome {
  return metadata.change((t) => {
    const known = liveUsageDashboard(t, of);
    if (known === undefined) return { kind: "refused", reason: "Usage dashboard not found" };
    if (hasEnrichedInsights(t, known)) return { kind: "done" };
    if (!of.hasEnrichedAnalytics) {
      return { kind: "refused", reason: "No enriched analytics available for this feature flag" };
    }
    addEnrichedInsights(t, of, known, by, now);
    return { kind: "done" };
  });
}
