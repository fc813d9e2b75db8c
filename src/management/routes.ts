/** Every route under `/api` that this folder has, except those of events. */

import type { Route } from "../http/route.ts";
import { activityRoutes } from "./activity.ts";
import { cohortRoutes } from "./cohorts.ts";
import { dashboardRoutes } from "./dashboards.ts";
import type { ManagementDeps } from "./deps.ts";
import { featureFlagRoutes } from "./feature-flags.ts";
import { flagBulkRoutes } from "./flag-bulk.ts";
import { flagDashboardRoutes } from "./flag-dashboards.ts";
import { flagEvaluationRoutes } from "./flag-evaluation.ts";
import { flagReachRoutes } from "./flag-reach.ts";
import { flagRemoteConfigRoutes } from "./flag-remote-config.ts";
import { flagStatusRoutes } from "./flag-status.ts";
import { ingestionReportRoutes } from "./ingestion-reports.ts";
import { insightRoutes } from "./insights.ts";
import { organizationRoutes } from "./organizations.ts";
import { peopleRoutes } from "./people.ts";
import { personalKeyRoutes } from "./personal-keys.ts";
import { projectRoutes } from "./projects.ts";
import { roleAccessRoutes } from "./role-access.ts";
import { roleRoutes } from "./roles.ts";
import { userRoutes } from "./users.ts";

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
    ...roleRoutes(deps),
    ...userRoutes(deps),
    ...personalKeyRoutes(deps),
    ...cohortRoutes(deps),
    ...dashboardRoutes(deps),
    ...insightRoutes(deps),
    ...peopleRoutes(deps),
    ...ingestionReportRoutes(deps),
  ];
}
