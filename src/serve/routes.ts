/** Every route under `/api` that this folder has, except those of events. */

import { activityRoutes } from "../accounts/api/activity.ts";
import { memberRoutes } from "../accounts/api/members.ts";
import { organizationRoutes } from "../accounts/api/organizations.ts";
import { personalKeyRoutes } from "../accounts/api/personal-keys.ts";
import { projectRoutes } from "../accounts/api/projects.ts";
import { roleRoutes } from "../accounts/api/roles.ts";
import { userRoutes } from "../accounts/api/users.ts";
import { sessionRoutes } from "../accounts/sessions/routes.ts";
import { cohortRoutes } from "../cohorts/cohorts-routes.ts";
import { dashboardRoutes } from "../dashboards/dashboards.ts";
import { insightRoutes } from "../dashboards/insights.ts";
import { featureFlagRoutes } from "../flags/api/feature-flags.ts";
import { flagBulkRoutes } from "../flags/api/flag-bulk.ts";
import { flagDashboardRoutes } from "../flags/api/flag-dashboards.ts";
import { flagEvaluationRoutes } from "../flags/api/flag-evaluation.ts";
import { flagReachRoutes } from "../flags/api/flag-reach.ts";
import { flagRemoteConfigRoutes } from "../flags/api/flag-remote-config.ts";
import { flagStatusRoutes } from "../flags/api/flag-status.ts";
import { roleAccessRoutes } from "../flags/api/role-access.ts";
import type { Route } from "../http/route.ts";
import { ingestionReportRoutes } from "../people/api/ingestion-reports.ts";
import { peopleRoutes } from "../people/api/people.ts";
import type { ManagementDeps } from "./deps.ts";

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
    ...flagBulkRoutes(deps),
    ...roleAccessRoutes(deps),
    ...projectRoutes(deps),
    ...organizationRoutes(deps),
    ...memberRoutes(deps),
    ...roleRoutes(deps),
    ...userRoutes(deps),
    ...personalKeyRoutes(deps),
    ...sessionRoutes(deps),
    ...cohortRoutes(deps),
    ...dashboardRoutes(deps),
    ...insightRoutes(deps),
    ...peopleRoutes(deps),
    ...ingestionReportRoutes(deps),
  ];
}
