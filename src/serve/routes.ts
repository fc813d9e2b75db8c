/** Every route under `/api`, except those of events. */

import { activityRoutes } from "../accounts/api/activity.ts";
import { memberRoutes } from "../accounts/api/members.ts";
import { organizationRoutes } from "../accounts/api/organizations.ts";
import { personalKeyRoutes } from "../accounts/api/personal-keys.ts";
import { projectRoutes } from "../accounts/api/projects.ts";
import { roleRoutes } from "../accounts/api/roles.ts";
import { sessionRoutes } from "../accounts/api/sessions.ts";
import { userRoutes } from "../accounts/api/users.ts";
import { type CohortDeps, cohortRoutes } from "../cohorts/api/cohorts.ts";
import { findCohort, membership } from "../cohorts/cohorts.ts";
import { dashboardRoutes } from "../dashboards/api/dashboards.ts";
import { type InsightDeps, insightRoutes } from "../dashboards/api/insights.ts";
import { featureFlagRoutes } from "../flags/api/feature-flags.ts";
import { flagBulkRoutes } from "../flags/api/flag-bulk.ts";
import { flagChangeRoutes } from "../flags/api/flag-changes.ts";
import { flagDashboardRoutes } from "../flags/api/flag-dashboards.ts";
import { flagDraftRoutes } from "../flags/api/flag-drafts.ts";
import { type EvaluationDeps, flagEvaluationRoutes } from "../flags/api/flag-evaluation.ts";
import { flagReachRoutes, type ReachCounter } from "../flags/api/flag-reach.ts";
import { flagRemoteConfigRoutes } from "../flags/api/flag-remote-config.ts";
import { flagRevertRoutes } from "../flags/api/flag-revert.ts";
import { flagStatusRoutes } from "../flags/api/flag-status.ts";
import { type FlagCallCounter, flagUsageRoutes } from "../flags/api/flag-usage.ts";
import { roleAccessRoutes } from "../flags/api/role-access.ts";
import type { FlagWriting } from "../flags/store/flag-writes.ts";
import { assertCohortNeedsNoApproval } from "../flags/store/protected-flags.ts";
import type { Route } from "../http/route.ts";
import { ingestionReportRoutes } from "../people/api/ingestion-reports.ts";
import { nameRoutes } from "../people/api/names.ts";
import { groupTypeBody, type PeopleDeps, type PersonFinder, peopleRoutes } from "../people/api/people.ts";
import { listGroupTypes } from "../people/groups.ts";

/** What the routes under `/api` need; each takes of it what it names. */
export interface ManagementDeps extends FlagWriting, EvaluationDeps, CohortDeps, InsightDeps, PeopleDeps {
  personCounter: PersonFinder & ReachCounter & FlagCallCounter;
  /** How many servers share the users and their sessions; left out: this one has them alone. */
  fronts?: () => number;
}

/** The routes of the management API. */
export function managementRoutes(deps: ManagementDeps): Route[] {
  return [
    ...featureFlagRoutes(deps),
    ...activityRoutes(deps),
    ...flagStatusRoutes(deps),
    ...flagEvaluationRoutes(deps),
    ...flagRemoteConfigRoutes(deps),
    ...flagDashboardRoutes(deps),
    ...flagReachRoutes(deps),
    ...flagDraftRoutes(deps),
    ...flagChangeRoutes(deps),
    ...flagRevertRoutes(deps),
    ...flagUsageRoutes(deps),
    ...flagBulkRoutes(deps),
    ...roleAccessRoutes(deps),
    ...projectRoutes({
      metadata: deps.metadata,
      groupTypesOf: (projectId) => listGroupTypes(deps.people, projectId).map(groupTypeBody),
    }),
    ...organizationRoutes(deps),
    ...memberRoutes(deps),
    ...roleRoutes(deps),
    ...userRoutes(deps),
    ...personalKeyRoutes(deps),
    ...sessionRoutes(deps),
    ...cohortRoutes(deps, (cohort) => assertCohortNeedsNoApproval(deps, cohort)),
    ...dashboardRoutes(deps),
    ...insightRoutes(deps),
    ...peopleRoutes(deps, (projectId, id) =>
      findCohort(deps.metadata.db, projectId, id)?.deleted === false ? membership(id) : undefined,
    ),
    ...nameRoutes(deps),
    ...ingestionReportRoutes(deps),
  ];
}
