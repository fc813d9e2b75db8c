/** The usage dashboard of a flag (contract: management-api 5.12, 5.13). The bodies of these requests are ignored. */

import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { bool, int, named, object, optional, string } from "../../http/schemas.ts";
import { enrichUsageDashboard, ensureUsageDashboard, type Outcome } from "../store/flag-usage.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import { checkMayEdit, flagAnswers, getFlag } from "./feature-flags.ts";

const tagName = "Feature flags";

const OutcomeBody = named(
  "Outcome",
  object({
    success: bool(),
    usage_dashboard: optional(int({ description: "ID of the enriched dashboard." })),
    error: optional(string()),
  }),
);

const answers = (example: object, error: string) => ({
  200: { description: "Done.", schema: OutcomeBody, example: { success: true, ...example } },
  400: { description: "The request failed.", schema: OutcomeBody, example: { success: false, error } },
});

export function flagDashboardRoutes(deps: FlagWriteDeps): Route[] {
  return [
    projectRoute("POST", "/feature_flags/:id/dashboard", "feature_flag:write", {
      summary: "Create the usage dashboard of a flag",
      description: "Keeps an existing dashboard unless it was deleted.",
      tag: tagName,
      answers: answers({}, "Unable to generate usage dashboard"),
      handle: (call) => {
        const flag = editable(deps, call);
        return reply(ensureUsageDashboard(deps.metadata, flag, call.user.id, call.now));
      },
    }),
    projectRoute("POST", "/feature_flags/:id/enrich_usage_dashboard", "feature_flag:write", {
      summary: "Add feature views and interactions to a flag's usage dashboard",
      description: "Requires `$feature_view` events of the flag. An enriched dashboard stays unchanged.",
      tag: tagName,
      answers: answers({ usage_dashboard: 7 }, "No enriched analytics available for this feature flag"),
      handle: (call) => {
        const flag = editable(deps, call);
        const outcome = enrichUsageDashboard(deps.metadata, flag, call.user.id, call.now);
        return reply(outcome, outcome.kind === "done" ? { usage_dashboard: outcome.dashboardId } : {});
      },
    }),
  ];
}

function editable(deps: FlagWriteDeps, call: ProjectCall<unknown>) {
  const flag = getFlag(deps, call);
  checkMayEdit(flagAnswers(deps, call), flag);
  return flag;
}

function reply(outcome: Outcome, more: { usage_dashboard?: number } = {}): RouteResponse {
  if (outcome.kind === "done") return new RouteResponse(200, { success: true, ...more });
  return new RouteResponse(400, { success: false, error: outcome.reason });
}
