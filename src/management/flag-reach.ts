/** Whom a flag reaches: counting before a change, and keeping who it is on for (contract: management-api 5.11, 5.17). */

import { parseBlastRadius } from "../flags/definition/blast-radius.ts";
import { UNAVAILABLE } from "../http/answers.ts";
import { projectRoute, Reply, type Route } from "../http/route.ts";
import { dictionary, int, named, nullable, object, optional } from "../http/shapes.ts";
import { createCohort, findCohort } from "../metadata/cohorts.ts";
import { findUser } from "../metadata/users.ts";
import { fillInBackground } from "./cohort-filling.ts";
import { CohortBody, cohortBody, EXAMPLE_COHORT } from "./cohort-shapes.ts";
import type { ManagementDeps } from "./deps.ts";
import { checkMayEdit, flagAnswers, getFlag } from "./feature-flags.ts";

const TAG = "Feature flags";

const ReachBody = named(
  "BlastRadius",
  object({
    users_affected: int(),
    total_users: int(),
    affected: int({ description: "Same as `users_affected`." }),
    total: int({ description: "Same as `total_users`." }),
  }),
);

export function flagReachRoutes(deps: ManagementDeps): Route[] {
  return [
    projectRoute("POST", "/feature_flags/user_blast_radius", ["feature_flag:read", "feature_flag:write"], {
      summary: "Count whom a condition would choose",
      description: "Changes nothing. Rollout percentages are left out of account.",
      tag: TAG,
      body: object({
        condition: optional(
          nullable(dictionary({ description: "`{properties: [...]}`; empty: everybody." })),
        ),
        group_type_index: optional(
          nullable(int({ minimum: 0 }), { description: "Count groups of this type." }),
        ),
      }),
      bodyExample: {
        condition: {
          properties: [{ key: "email", type: "person", operator: "icontains", value: "@example.com" }],
        },
      },
      answers: {
        200: {
          description: "The counts.",
          schema: ReachBody,
          example: { users_affected: 3, total_users: 10, affected: 3, total: 10 },
        },
        ...UNAVAILABLE,
      },
      handle: async (call) => {
        const { filters, groupTypeIndex } = parseBlastRadius(call.body);
        const { affected, total } = await deps.personCounter.count(
          call.project.id,
          { properties: filters },
          groupTypeIndex,
        );
        const bounded = Math.min(affected, total);
        return { users_affected: bounded, total_users: total, affected: bounded, total };
      },
    }),
    projectRoute("POST", "/feature_flags/:id/create_static_cohort_for_flag", "feature_flag:write", {
      summary: "Keep whom a flag is on for as a static cohort",
      description:
        "The body is ignored. The cohort is filled in the background; later changes of the flag do not change it.",
      tag: TAG,
      answers: {
        201: {
          description: "The new cohort, still empty.",
          schema: object({ cohort: CohortBody }),
          example: { cohort: { ...EXAMPLE_COHORT, is_static: true, filters: { properties: {} } } },
        },
      },
      handle: (call) => {
        const flag = getFlag(deps, call);
        checkMayEdit(flagAnswers(deps, call), flag);
        const at = call.now.toISOString().slice(0, 19).replace("T", " ");
        const name = `Users with feature flag ${flag.key} enabled at ${at}`;
        const input = { projectId: call.project.id, by: call.user.id, fields: { name, isStatic: true } };
        const { id } = createCohort(deps.metadata, input, call.now);
        void fillInBackground(deps, id, () =>
          deps.cohortFiller.addPersonsWithFlag(call.project.id, id, flag.id),
        );
        const cohort = findCohort(deps.metadata.db, call.project.id, id)!;
        return new Reply(201, { cohort: cohortBody(cohort, findUser(deps.metadata.db, call.user.id)) });
      },
    }),
  ];
}
