/** The usage dashboard of a flag (contract: management-api 5.12, 5.13). The bodies of these requests are ignored. */

import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { Reply, type Route } from "../../http/route.ts";
import { bool, named, object, optional, text } from "../../http/shapes.ts";
import { enrichUsageDashboard, ensureUsageDashboard, type Outcome } from "../store/flag-usage.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import { checkMayEdit, flagAnswers, getFlag } from "./feature-flags.ts";

const tagName = "Feature flags";

const OutcomeBody = named("Outcome", object({ success: bool(), error: optional(text()) }));

const answers = (error: string) => ({
  200: { description: "Done.", schema: OutcomeBody, example: { success: true } },
  400: { description: "Not done.", schema: OutcomeBody, example: { success: false, error } },
});

export function flagDashboardRoutes(deps: FlagWriting): Route[] {
  return [
    projectRoute("POST", "/feature_flags/:id/dashboard", "feature_flag:write", {
      summary: "Create the usage dashboard of a flag",
      description: "Keeps the one the flag has, unless that was deleted.",
      tag: tagName,
      answers: answers("Unable to generate usage dashboard"),
      handle: (call) => {
        const flag = editable(deps, call);
        return reply(ensureUsageDashboard(deps.metadata, flag, call.user.id, call.now));
      },
    }),
    projectRoute("POST", "/feature_flags/:id/enrich_usage_dashboard", "feature_flag:write", {
      summary: "Add feature views and interactions to a flag's usage dashboard",
      description:
        "Possible once `$feature_view` events about the flag have arrived. A dashboard that has them already stays as it is.",
      tag: tagName,
      answers: answers("No enriched analytics available for this feature flag"),
      handle: (call) => {
        const flag = editable(deps, call);
        return reply(enrichUsageDashboard(deps.metadata, flag, call.user.id, call.now));
      },
    }),
  ];
}

function editable(deps: FlagWriting, call: ProjectCall<unknown>) {
  const flag = getFlag(deps, call);
  checkMayEdit(flagAnswers(deps, call), flag);
  return flag;
}

function reply(outcome: Outcome): Reply {
  if (outcome.kind === "done") return new Reply(200, { success: true });
  return new Reply(400, { success: false, error: outcome.reason });
}
