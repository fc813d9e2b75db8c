/** Whether a flag is in use (contract: management-api 5.9), what depends on it (5.7), and which flags a cohort serves. */

import { projectRoute } from "../../accounts/api/routes.ts";
import { readId } from "../../http/path.ts";
import { Reply, type Route } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  choice,
  dictionary,
  either,
  int,
  list,
  named,
  num,
  object,
  optional,
  text,
} from "../../http/shapes.ts";
import { flagsByCohort } from "../rules/dependents.ts";
import { rolloutSummaryOf, statusOf } from "../rules/status.ts";
import { findFlag } from "../store/flag.ts";
import { dependentFlags } from "../store/flag-dependencies.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import { getFlag } from "./feature-flags.ts";

const tagName = "Feature flags";

const StatusBody = named(
  "FlagStatus",
  object({
    status: choice(["active", "inactive", "stale", "deleted", "unknown", "archived"]),
    reason: text({ description: "For people." }),
    reason_states_rollout: optional(bool()),
    rollout: optional(
      object({
        effectively_full_rollout: bool(),
        has_targeting_conditions: bool(),
        max_rollout_percentage: num(),
        is_multivariate: bool(),
      }),
    ),
  }),
);

const exampleAnswer = {
  status: "stale",
  reason: 'This boolean flag will always evaluate to "true"',
  reason_states_rollout: true,
  rollout: {
    effectively_full_rollout: true,
    has_targeting_conditions: false,
    max_rollout_percentage: 100,
    is_multivariate: false,
  },
};
const unknown = { status: "unknown", reason: "Flag could not be found" };

/** Flags that are named for each cohort. */
const namedPerCohort = 100;

const NamedFlag = object({ id: int(), key: text(), name: text({ blank: true }) });

export function flagStatusRoutes(deps: FlagWriting & { flagSets: FlagSets }): Route[] {
  const { metadata, flagSets } = deps;
  return [
    projectRoute("GET", "/feature_flags/:id/status", "feature_flag:read", {
      summary: "Get flag status",
      description: "`stale`: nobody asks for it any more, or it has had one value for everybody for 30 days.",
      tag: tagName,
      answers: {
        200: { description: "The verdict.", schema: StatusBody, example: exampleAnswer },
        404: {
          description: "There is no such flag, or no such project.",
          schema: either(StatusBody, ApiFailure),
          example: unknown,
        },
      },
      handle: (call) => {
        const flag = findFlag(metadata.db, call.project.id, readId(call.params, "id"));
        if (!flag) return new Reply(404, unknown);
        const verdict = statusOf(flag, call.now);
        const rollout = rolloutSummaryOf(flag.filters);
        return {
          status: verdict.status,
          reason: verdict.reason,
          reason_states_rollout: verdict.reasonStatesRollout,
          rollout: {
            effectively_full_rollout: rollout.isFullRollout,
            has_targeting_conditions: rollout.hasTargetingConditions,
            max_rollout_percentage: rollout.maxRolloutPercentage,
            is_multivariate: rollout.isMultivariate,
          },
        };
      },
    }),
    projectRoute("GET", "/feature_flags/:id/dependent_flags", "feature_flag:read", {
      summary: "List the active flags that depend on a flag",
      tag: tagName,
      answers: {
        200: {
          description: "Not in pages.",
          schema: list(NamedFlag),
          example: [{ id: 17, key: "new-receipt", name: "" }],
        },
      },
      handle: (call) => dependentFlags(metadata.db, call.project.id, getFlag(deps, call).id),
    }),
    projectRoute("GET", "/feature_flags/by_cohort", "feature_flag:read", {
      summary: "List the flags that use each cohort",
      description: `Inactive flags too; also those that look at another cohort which is defined by this one. At most ${namedPerCohort} for each cohort.`,
      tag: tagName,
      answers: {
        200: {
          description: "By the id of the cohort. Cohorts that no flag looks at are left out.",
          schema: dictionary(),
          example: { "7": { count: 1, flags: [{ id: 17, key: "new-receipt", name: "" }] } },
        },
      },
      handle: ({ project }) => {
        const { definitions, cohorts } = flagSets.of(project.id);
        const uses = flagsByCohort(definitions, cohorts);
        return Object.fromEntries(
          [...uses].map(([id, flags]) => [
            id,
            {
              count: flags.length,
              flags: flags.slice(0, namedPerCohort).map(({ id, key, name }) => ({ id, key, name })),
            },
          ]),
        );
      },
    }),
  ];
}
