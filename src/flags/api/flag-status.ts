/** Flag status (contract: management-api 5.9), dependent flags (5.7), and the flags that use a cohort. */

import { projectRoute } from "../../accounts/api/routes.ts";
import { readId } from "../../http/params.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  enumeration,
  int,
  list,
  named,
  num,
  object,
  optional,
  record,
  string,
  union,
} from "../../http/schemas.ts";
import { flagsByCohort } from "../rules/dependents.ts";
import { getRolloutSummary, getStatus } from "../rules/status.ts";
import { findFlag } from "../store/flag.ts";
import { dependentFlags } from "../store/flag-dependencies.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import { criticalByCohort } from "../store/protected-flags.ts";
import { getFlag } from "./feature-flags.ts";

const tagName = "Feature flags";

const StatusBody = named(
  "FlagStatus",
  object({
    status: enumeration(["active", "inactive", "stale", "deleted", "unknown", "archived"]),
    reason: string({ description: "For people." }),
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

/** Flags listed per cohort. */
const namedPerCohort = 100;

const NamedFlag = object({ id: int(), key: string(), name: string({ blank: true }) });

export function flagStatusRoutes(deps: FlagWriteDeps & { flagSets: FlagSets }): Route[] {
  const { metadata, flagSets } = deps;
  return [
    projectRoute("GET", "/feature_flags/:id/status", "feature_flag:read", {
      summary: "Get flag status",
      description: "`stale`: not evaluated for 30 days, or the same value for everyone for 30 days.",
      tag: tagName,
      answers: {
        200: { description: "The status.", schema: StatusBody, example: exampleAnswer },
        404: {
          description: "The flag or project does not exist.",
          schema: union(StatusBody, ApiFailure),
          example: unknown,
        },
      },
      handle: (call) => {
        const flag = findFlag(metadata.db, call.project.id, readId(call.params, "id"));
        if (!flag) return new RouteResponse(404, unknown);
        const verdict = getStatus(flag, call.now);
        const rollout = getRolloutSummary(flag.filters);
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
          description: "Not paginated.",
          schema: list(NamedFlag),
          example: [{ id: 17, key: "new-receipt", name: "" }],
        },
      },
      handle: (call) => dependentFlags(metadata.db, call.project.id, getFlag(deps, call).id),
    }),
    projectRoute("GET", "/feature_flags/by_cohort", "feature_flag:read", {
      summary: "List the flags that use each cohort",
      description: `Includes inactive flags and indirect use through other cohorts. At most ${namedPerCohort} per cohort. \`critical_flags\`: keys of the flags tagged \`critical\` that a change of the cohort affects, also through other flags.`,
      tag: tagName,
      answers: {
        200: {
          description: "Flags by cohort id, without unused cohorts.",
          schema: record(),
          example: {
            "7": { count: 1, flags: [{ id: 17, key: "new-receipt", name: "" }], critical_flags: [] },
          },
        },
      },
      handle: ({ project }) => {
        const { definitions, cohorts } = flagSets.of(project.id);
        const uses = flagsByCohort(definitions, cohorts);
        const critical = criticalByCohort(metadata.db, project.id, uses.keys());
        return Object.fromEntries(
          [...uses].map(([id, flags]) => [
            id,
            {
              count: flags.length,
              flags: flags.slice(0, namedPerCohort).map(({ id, key, name }) => ({ id, key, name })),
              critical_flags: critical.get(id) ?? [],
            },
          ]),
        );
      },
    }),
  ];
}
