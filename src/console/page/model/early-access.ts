/** Early access features in API responses. */

import { request } from "../lib/api.ts";
import type { EarlyAccessFeature as Feature } from "../lib/api-types.ts";
import { inProject } from "../lib/session.ts";
import type { lazyMessages } from "../messages/later.ts";

export type Stage = keyof typeof lazyMessages.earlyAccess.stages;

export type { Feature };

export interface Enrollment {
  enrolled: number;
  opted_out: number;
  is_truncated: boolean;
  persons: { uuid: string; distinct_id: string }[];
}

export const featurePath = (id: string, rest = "") =>
  inProject(`early_access_feature/${encodeURIComponent(id)}/${rest}`);

export const changeFeature = (id: string, body: Record<string, unknown>): Promise<Feature> =>
  request(featurePath(id), { method: "PATCH", body });

export const createFeature = (body: object): Promise<Feature> =>
  request(inProject("early_access_feature/"), { method: "POST", body });

/** Deletes a feature. @returns restores it; its flag and the enrollment of people are kept */
export async function deleteFeature(feature: Feature): Promise<() => Promise<Feature>> {
  await request(featurePath(feature.id), { method: "DELETE" });
  const { name, description, stage, documentation_url, payload, feature_flag: flag } = feature;
  return () =>
    createFeature({ name, description, stage, documentation_url, payload, feature_flag_id: flag.id });
}

/** Enrollments and withdrawals by day, as a query. */
export const enrollmentQuery = (flagKey: string) => ({
  kind: "TrendsQuery",
  series: [true, false].map((isEnrolled) => ({
    kind: "EventsNode",
    event: "$feature_enrollment_update",
    math: "dau",
    properties: [
      { key: "$feature_flag", type: "event", operator: "exact", value: [flagKey] },
      { key: "$feature_enrollment", type: "event", operator: "exact", value: [String(isEnrolled)] },
    ],
  })),
  interval: "day",
  dateRange: { date_from: "-30d" },
  trendsFilter: { display: "ActionsBar" },
});
