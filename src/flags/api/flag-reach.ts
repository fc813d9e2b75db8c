/** Whom a flag reaches: counting before a change, and keeping who it is on for (contract: management-api 5.11, 5.17; decision 18). */

import { projectRoute } from "../../accounts/api/routes.ts";
import { findUser } from "../../accounts/users.ts";
import { CohortBody, cohortBody, exampleCohort } from "../../cohorts/api/cohort-shapes.ts";
import { type FillingDeps, fillInBackground } from "../../cohorts/cohort-filling.ts";
import { createCohort, findCohort } from "../../cohorts/cohorts.ts";
import { unavailable } from "../../http/answers.ts";
import { Reply, type Route } from "../../http/route.ts";
import { bool, dictionary, int, named, nullable, object, optional, text } from "../../http/shapes.ts";
import { parseBlastRadius, type Reach, type ReachQuestion } from "../rules/blast-radius.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import { checkingAsSaving } from "../subject/draft.ts";
import { checkMayEdit, flagAnswers, getFlag } from "./feature-flags.ts";

const tagName = "Feature flags";

const ReachBody = named(
  "BlastRadius",
  object({
    users_affected: int(),
    total_users: int(),
    affected: int({ description: "Same as `users_affected`." }),
    total: int({ description: "Same as `total_users`." }),
  }),
);

/** Which persons or groups conditions of a flag would choose. */
export interface ReachCounter {
  /**
   * Counts without changing anything.
   *
   * @throws {InvalidField} the conditions cannot be evaluated.
   * Source: contract, management-api 5.17; decision 18.
   */
  reach(projectId: number, question: ReachQuestion): Promise<Reach>;
}

export function flagReachRoutes(deps: FlagWriting & FillingDeps & { personCounter: ReachCounter }): Route[] {
  return [
    projectRoute("POST", "/feature_flags/user_blast_radius", "feature_flag:write", {
      summary: "Count the persons a condition matches",
      description:
        "Changes nothing, and rejects what saving rejects. Takes the fields of a flag (all condition sets of `filters` together), or one `condition`.",
      tag: tagName,
      body: object({
        filters: optional(nullable(dictionary({ description: "As in a flag." }))),
        rollout_percentage: optional(
          nullable(int({ minimum: 0, maximum: 100 }), { description: "As in a flag." }),
        ),
        key: optional(
          text({ blank: true, max: 400, description: "The flag's key, with which rollouts are hashed." }),
        ),
        apply_rollout: optional(
          bool({ default: false, description: "Count only whom the rollout percentages take in." }),
        ),
        condition: optional(
          nullable(
            dictionary({ description: "`{properties: [...]}`; empty: everybody. Not with `filters`." }),
          ),
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
          schema: ReachBody,
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
        "The body is ignored. The cohort is filled in the background; later changes of the flag do not change it.",
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
        void fillInBackground(deps, id, () =>
          deps.cohortFiller.addPersonsWithFlag(call.project.id, id, flag.id),
        );
        const cohort = findCohort(deps.metadata.db, call.project.id, id)!;
        return new Reply(201, { cohort: cohortBody(cohort, findUser(deps.metadata.db, call.user.id)) });
      },
    }),
  ];
}
