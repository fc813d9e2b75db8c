/** Every route under `/api`, except those of events. */

import { sessionRoutes } from "../accounts/api/sessions.ts";
import { type CohortDeps, cohortRoutes } from "../cohorts/api/cohorts.ts";
import type { InsightDeps } from "../dashboards/api/compute-insight.ts";
import { experimentRoutes } from "../experiments/api/routes.ts";
import type { ComputeDeps } from "../experiments/compute.ts";
import type { BlastRadiusCounter } from "../flags/api/blast-radius.ts";
import { featureFlagRoutes } from "../flags/api/feature-flags.ts";
import { type EvaluationDeps, flagEvaluationRoutes } from "../flags/api/flag-evaluation.ts";
import { flagRemoteConfigRoutes } from "../flags/api/flag-remote-config.ts";
import type { FlagCallCounter } from "../flags/api/flag-usage.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import type { Route } from "../http/route.ts";
import { activityOperations } from "../operations/activity.ts";
import { annotationOperations } from "../operations/annotations.ts";
import { changeRequestOperations } from "../operations/change-requests.ts";
import { cohortOperations } from "../operations/cohorts.ts";
import { dashboardOperations } from "../operations/dashboards.ts";
import { definitionOperations } from "../operations/definitions.ts";
import { type EnrollmentDeps, earlyAccessOperations } from "../operations/early-access.ts";
import { holdoutOperations } from "../operations/experiment-holdouts.ts";
import { planningOperations } from "../operations/experiment-planning.ts";
import { savedMetricOperations } from "../operations/experiment-saved-metrics.ts";
import { experimentOperations } from "../operations/experiments.ts";
import { flagBulkOperations } from "../operations/flag-bulk.ts";
import { flagChangeOperations } from "../operations/flag-changes.ts";
import { flagEffectOperations } from "../operations/flag-effects.ts";
import { flagEvaluationOperations } from "../operations/flag-evaluation.ts";
import { flagExportOperations } from "../operations/flag-export.ts";
import { flagStatusOperations } from "../operations/flag-status.ts";
import { flagOperations } from "../operations/flags.ts";
import { groupOperations } from "../operations/groups.ts";
import { ingestionOperations } from "../operations/ingestion.ts";
import { insightOperations } from "../operations/insights.ts";
import { memberOperations } from "../operations/members.ts";
import { organizationOperations } from "../operations/organizations.ts";
import { personalKeyOperations } from "../operations/personal-keys.ts";
import { type PersonDeps, personOperations } from "../operations/persons.ts";
import { projectKeyOperations } from "../operations/project-keys.ts";
import { projectOperations } from "../operations/projects.ts";
import { roleAccessOperations } from "../operations/role-access.ts";
import { roleOperations } from "../operations/roles.ts";
import { operationRoutes } from "../operations/routes.ts";
import { scheduledOperations } from "../operations/scheduled-changes.ts";
import { shareLinkOperations } from "../operations/share-links.ts";
import { surveyResultOperations } from "../operations/survey-results.ts";
import { surveyOperations } from "../operations/surveys.ts";
import { userOperations } from "../operations/users.ts";
import { webExperimentOperations } from "../operations/web-experiments.ts";
import type { WebhookStores } from "../operations/webhook-schemas.ts";
import { webhookOperations } from "../operations/webhooks.ts";
import type { PersonFinder } from "../persons/api/person-pages.ts";
import type { IngestionReader } from "../persons/ingestion-reader.ts";
import { surveyRoutes } from "../surveys/activity-routes.ts";
import type { SurveyResultDeps } from "../surveys/results.ts";

/** Dependencies of all routes under `/api`. */
export interface ManagementDeps
  extends FlagWriteDeps,
    EvaluationDeps,
    CohortDeps,
    InsightDeps,
    PersonDeps,
    WebhookStores,
    Pick<ComputeDeps, "experiments">,
    EnrollmentDeps,
    SurveyResultDeps {
  ingestion: IngestionReader;
  personCounter: PersonFinder & BlastRadiusCounter & FlagCallCounter;
  /** Number of nodes that share the users and their sessions; absent: single node. */
  nodeCount?: () => number;
}

export function managementRoutes(deps: ManagementDeps): Route[] {
  return [
    ...operationRoutes(flagOperations, deps),
    ...featureFlagRoutes(deps),
    ...operationRoutes(activityOperations, deps),
    ...flagEvaluationRoutes(deps),
    ...flagRemoteConfigRoutes(deps),
    ...operationRoutes([...flagStatusOperations, ...flagEvaluationOperations, ...flagEffectOperations], deps),
    ...operationRoutes([...flagChangeOperations, ...flagBulkOperations, ...flagExportOperations], deps),
    ...operationRoutes([...roleAccessOperations, ...scheduledOperations, ...changeRequestOperations], deps),
    ...operationRoutes([...projectOperations, ...projectKeyOperations], deps),
    ...operationRoutes([...organizationOperations, ...memberOperations], deps),
    ...operationRoutes(roleOperations, deps),
    ...operationRoutes(userOperations, deps),
    ...operationRoutes(personalKeyOperations, deps),
    ...sessionRoutes(deps),
    ...operationRoutes(webhookOperations, deps),
    ...operationRoutes(cohortOperations, deps),
    ...cohortRoutes(),
    ...operationRoutes(experimentOperations, deps),
    ...operationRoutes([...holdoutOperations, ...savedMetricOperations, ...planningOperations], deps),
    ...experimentRoutes(deps),
    ...operationRoutes(webExperimentOperations, deps),
    ...operationRoutes(earlyAccessOperations, deps),
    ...surveyRoutes(deps),
    ...operationRoutes([...surveyOperations, ...surveyResultOperations], deps),
    ...operationRoutes([...dashboardOperations, ...insightOperations], deps),
    ...operationRoutes(annotationOperations, deps),
    ...operationRoutes(shareLinkOperations, deps),
    ...operationRoutes([...personOperations, ...groupOperations], deps),
    ...operationRoutes([...definitionOperations, ...ingestionOperations], deps),
  ];
}
