/** Every operation. Its route, documentation, command and tool are derived from this table. */

import { activityOperations } from "./activity.ts";
import { annotationOperations } from "./annotations.ts";
import { changeRequestOperations } from "./change-requests.ts";
import { cohortOperations } from "./cohorts.ts";
import { dashboardOperations } from "./dashboards.ts";
import { definitionOperations } from "./definitions.ts";
import { earlyAccessOperations, setStage } from "./early-access.ts";
import { holdoutOperations } from "./experiment-holdouts.ts";
import { planningOperations } from "./experiment-planning.ts";
import { savedMetricOperations } from "./experiment-saved-metrics.ts";
import { experimentOperations } from "./experiments.ts";
import { flagBulkOperations } from "./flag-bulk.ts";
import { flagChangeOperations } from "./flag-changes.ts";
import { flagEffectOperations } from "./flag-effects.ts";
import { flagEvaluationOperations } from "./flag-evaluation.ts";
import { flagExportOperations } from "./flag-export.ts";
import { flagStatusOperations } from "./flag-status.ts";
import { explainOperations, flagOperations } from "./flags.ts";
import { groupOperations } from "./groups.ts";
import { importOperations } from "./imports.ts";
import { ingestionOperations } from "./ingestion.ts";
import { insightOperations } from "./insights.ts";
import { memberOperations } from "./members.ts";
import type { Operation, ToolForm } from "./operation.ts";
import { organizationOperations } from "./organizations.ts";
import { personalKeyOperations } from "./personal-keys.ts";
import { personOperations } from "./persons.ts";
import { projectKeyOperations } from "./project-keys.ts";
import { projectOperations } from "./projects.ts";
import { roleAccessOperations } from "./role-access.ts";
import { roleOperations } from "./roles.ts";
import { scheduledOperations } from "./scheduled-changes.ts";
import { shareLinkOperations } from "./share-links.ts";
import { surveyResultOperations } from "./survey-results.ts";
import { surveyOperations } from "./surveys.ts";
import { userOperations } from "./users.ts";
import { webExperimentOperations } from "./web-experiments.ts";
import { webhookOperations } from "./webhooks.ts";

export const operations: readonly Operation[] = [
  ...flagOperations,
  ...explainOperations,
  ...flagStatusOperations,
  ...flagEvaluationOperations,
  ...flagEffectOperations,
  ...flagChangeOperations,
  ...flagBulkOperations,
  ...flagExportOperations,
  ...roleAccessOperations,
  ...scheduledOperations,
  ...changeRequestOperations,
  ...projectOperations,
  ...projectKeyOperations,
  ...organizationOperations,
  ...memberOperations,
  ...roleOperations,
  ...userOperations,
  ...personalKeyOperations,
  ...cohortOperations,
  ...personOperations,
  ...groupOperations,
  ...webhookOperations,
  ...experimentOperations,
  ...earlyAccessOperations,
  ...surveyOperations,
  ...surveyResultOperations,
  ...holdoutOperations,
  ...savedMetricOperations,
  ...planningOperations,
  ...webExperimentOperations,
  ...dashboardOperations,
  ...insightOperations,
  ...shareLinkOperations,
  ...annotationOperations,
  ...activityOperations,
  ...definitionOperations,
  ...ingestionOperations,
  ...importOperations,
];

/** The tools of MCP, with the operations that they call. */
export const tools: readonly { operation: Operation; form: ToolForm }[] = [...operations, setStage].flatMap(
  (operation) => [operation.mcp ?? []].flat().map((form) => ({ operation, form })),
);
