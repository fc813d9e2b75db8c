/**
 * Blast radius of a flag: counts before a change, and a static cohort of the affected users (contract: management-api
 * 5.11, 5.17; decision 18).
 */

import { projectRoute } from "../../accounts/api/routes.ts";
import { findUser } from "../../accounts/users.ts";
import { CohortBody, cohortBody, exampleCohort } from "../../cohorts/api/cohort-schemas.ts";
import { type CalculationDeps, calculateInBackground } from "../../cohorts/cohort-calculation.ts";
import { createCohort, findCohort } from "../../cohorts/cohorts.ts";
import { unavailable } from "../../http/error-mapping.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { bool, int, named, nullable, object, optional, record, string } from "../../http/schemas.ts";
import { checkingAsSaving } from "../evaluation-context/draft.ts";
import { type BlastRadius, type BlastRadiusQuery, parseBlastRadius } from "../rules/blast-radius.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import { checkMayEdit, flagAnswers, getFlag } from "./feature-flags.ts";

const tagName = "Feature flags";

const BlastRadiusResponse = named(
  "BlastRadius",
  object({
    users_affected: int(),
    total_users: int(),
    affected: int({ description: "Same as `users_affected`." }),
    total: int({ description: "Same as `total_users`." }),
  }),
);

/** Counts the persons or groups that match a flag's conditions. */
export interface BlastRadiusCounter {
  /**
   * Counts without changing anything.
   *
   * @throws {InvalidFieldError} the conditions cannot be evaluated.
   * Source: contract, management-api 5.17; decision 18.
   */
  reach(projectId: number, question: BlastRadiusQuery): Promise<BlastRadius>;
}

export function blastRadiusRoutes(
  deps: FlagWriteDeps & CalculationDeps & { personCounter: BlastRadiusCounter },
): Route[] {
  return [
    projectRoute("POST", "/feature_flags/user_blast_radius", "feature_flag:write", {
      summary: "Count the persons a condition matches",
      description:
        "Changes nothing; validated like a save. Accepts the fields of a flag (all condition sets of `filters` in total), or one `condition`.",
      tag: tagName,
      body: object({
        filters: optional(nullable(record({ description: "Same as in a flag." }))),
        rollout_percentage: optional(
          nullable(int({ minimum: 0, maximum: 100 }), { description: "Same as in a flag." }),
        ),
        key: optional(string({ blank: true, max: 400, description: "Flag key, which is part of the hash." })),
        apply_rollout: optional(bool({ default: false, description: "Apply rollout percentages." })),
        condition: optional(
          nullable(record({ description: "`{properties: [...]}`; empty: everyone. Excludes `filters`." })),
        ),
        group_type_index: optional(
          nullable(int({ minimum: 0 }), { description: "Count groups of this type." }),
        ),
      }),
      bodyExample: {
        filters: {
          groups: [
            {
              properties: [{ key: "email", type: "person", operator: "icontains", value: "@example.com" }],
              rollout_percentage: 40,
            },
          ],
        },
        apply_rollout: true,
      },
      answers: {
        200: {
          description: "The counts.",
          schema: BlastRadiusResponse,
          example: { users_affected: 3, total_users: 10, affected: 3, total: 10 },
        },
        ...unavailable,
      },
      handle: async (call) => {
        const { total, matching, reached } = await deps.personCounter.reach(
          call.project.id,
          parseBlastRadius(call.body, checkingAsSaving(deps, call.project.id)),
        );
        const affected = call.body.apply_rollout === true ? reached : matching;
        return { users_affected: affected, total_users: total, affected, total };
      },
    }),
    projectRoute("POST", "/feature_flags/:id/create_static_cohort_for_flag", "feature_flag:write", {
      summary: "Create a static cohort from a flag",
      description:
        "The body is ignored. The cohort is calculated in the background and independent of later changes to the flag.",
      tag: tagName,
      answers: {
        201: {
          description: "The new cohort, still empty.",
          schema: object({ cohort: CohortBody }),
          example: { cohort: { ...exampleCohort, is_static: true, filters: { properties: {} } } },
        },
      },
      handle: (call) => {
        const flag = getFlag(deps, call);
        checkMayEdit(flagAnswers(deps, call), flag);
        const at = call.now.toISOString().slice(0, 19).replace("T", " ");
        const name = `Users with feature flag ${flag.key} enabled at ${at}`;
        const input = { projectId: call.project.id, by: call.user.id, fields: { name, isStatic: true } };
        const { id } = createCohort(deps.metadata, input, call.now);
        void calculateInBackground(deps, id, () =>
          deps.cohortFiller.addPersonsWithFlag(call.project.id, id, flag.id),
        );
        const cohort = findCohort(deps.metadata.db, call.project.id, id)!;
        return new RouteResponse(201, {
          cohort: cohortBody(cohort, findUser(deps.metadata.db, call.user.id)),
        });
      },
    }),
  ];
}
