/** Changes of a flag in addition to its update: reverts, and its usage dashboard (contract: management-api 5.12, 5.13). */

import type { Static } from "@sinclair/typebox";
import { getCreatorId } from "../accounts/activity.ts";
import { editByActor, flagTag as tag } from "../flags/api/feature-flags.ts";
import { revertedFields } from "../flags/api/flag-revert.ts";
import { FlagBody } from "../flags/api/flag-schemas.ts";
import { exampleFlag, type FlagAnswer } from "../flags/fields.ts";
import {
  enrichUsageDashboard,
  ensureUsageDashboard,
  type UsageDashboardResult,
} from "../flags/store/flag-usage.ts";
import { ApiFailure, bool, int, named, object, optional, string, uuid } from "../http/schemas.ts";
import { type FlagContext as Context, getEditableFlag, getFlagActor, getFlagById } from "./flag-actor.ts";
import { flagArgument } from "./flag-argument.ts";
import { byKey, keyArgument } from "./flag-tools.ts";
import { listAllFlags } from "./flags.ts";
import { getAuthor, operation } from "./operation.ts";

const revertFlag = operation({
  id: "flags.revert",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Revert a flag",
  description:
    "Reverts the change `activity_id` of the flag's activity and all later ones in one change. A revert across a change of `has_encrypted_payloads` returns 400, because earlier payloads are not stored.",
  http: {
    method: "POST",
    path: "/feature_flags/:id/revert",
    answer: "The flag.",
    errors: { 409: { description: "Another user changed the flag meanwhile.", schema: ApiFailure } },
  },
  cli: {
    name: "flags revert",
    description: "Revert a change of a flag and all later ones, in one change.",
    examples: ["flags revert new-checkout --activity-id 0193d1a2-7b1c-7c3e-9f60-ad1e2f3a4b5c"],
    arguments: [flagArgument("id")],
    options: { activity_id: { description: "id of the first change to revert, from the flag's activity" } },
    hasConfirm: true,
    done: ({ key, version }: FlagAnswer) => `Flag ${key} is reverted (version ${version}).`,
  },
  mcp: {
    name: "revert_flag",
    description: "Revert a change of a flag and all later ones. list_activity shows the ids of changes.",
    target: byKey(() => listAllFlags),
    arguments: { key: keyArgument, activity_id: uuid() },
  },
  input: object({ id: int(), activity_id: uuid() }),
  inputExample: { activity_id: "0193d1a2-7b1c-7c3e-9f60-ad1e2f3a4b5c" },
  output: FlagBody,
  example: exampleFlag,
  run: (context: Context, { id, activity_id: activityId }) => {
    const { stores, actor } = context;
    const flag = getFlagById(context, id);
    const sent = { ...revertedFields(stores, flag, activityId), version: flag.version };
    const skipsApproval = actor.kind === "operator" && actor.skipsApproval;
    return editByActor(
      stores,
      { ...getFlagActor(context), by: getAuthor(actor), skipsApproval },
      flag.id,
      sent,
    );
  },
});

const UsageDashboardBody = named(
  "Outcome",
  object({
    success: bool(),
    usage_dashboard: optional(int({ description: "ID of the enriched dashboard." })),
    error: optional(string()),
  }),
);

type UsageDashboardRecord = Static<typeof UsageDashboardBody>;

/** Responses of both operations of the dashboard. @param error an example */
const answers = (error: string) => ({
  answer: "Done.",
  status: ({ success }: UsageDashboardRecord) => (success ? 200 : 400),
  errors: {
    400: {
      description: "The request failed.",
      schema: UsageDashboardBody,
      example: { success: false, error },
    },
  },
});

const createUsageDashboard = operation({
  id: "flags.dashboard",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Create the usage dashboard of a flag",
  description: "Keeps an existing dashboard unless it was deleted.",
  http: {
    method: "POST",
    path: "/feature_flags/:id/dashboard",
    ...answers("Unable to generate usage dashboard"),
  },
  input: object({ id: int() }),
  output: UsageDashboardBody,
  example: { success: true },
  run: (context: Context, { id }) => {
    const { stores, actor, now } = context;
    const flag = getEditableFlag(context, id);
    return toBody(ensureUsageDashboard(stores.metadata, flag, getCreatorId(getAuthor(actor)), now));
  },
});

const enrichDashboard = operation({
  id: "flags.enrich_dashboard",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Add feature views and interactions to a flag's usage dashboard",
  description: "Requires `$feature_view` events of the flag. An enriched dashboard stays unchanged.",
  http: {
    method: "POST",
    path: "/feature_flags/:id/enrich_usage_dashboard",
    ...answers("No enriched analytics available for this feature flag"),
  },
  input: object({ id: int() }),
  output: UsageDashboardBody,
  example: { success: true, usage_dashboard: 7 },
  run: (context: Context, { id }) => {
    const { stores, actor, now } = context;
    const flag = getEditableFlag(context, id);
    const result = enrichUsageDashboard(stores.metadata, flag, getCreatorId(getAuthor(actor)), now);
    return toBody(result, result.kind === "done" ? { usage_dashboard: result.dashboardId } : {});
  },
});

function toBody(result: UsageDashboardResult, more: { usage_dashboard?: number } = {}): UsageDashboardRecord {
  return result.kind === "done" ? { success: true, ...more } : { success: false, error: result.reason };
}

/** In the order of the documentation. */
export const flagChangeOperations = [revertFlag, createUsageDashboard, enrichDashboard];
