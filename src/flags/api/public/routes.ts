/** All public routes of flag evaluation. */

import type { Route } from "../../../http/route.ts";
import { Computation } from "../../subject/computation.ts";
import { SubjectReader } from "../../subject/stored-subject.ts";
import { assetRoutes } from "./asset-routes.ts";
import { ClientConfigTexts } from "./client-config.ts";
import { flagRoutes } from "./flag-routes.ts";
import { FlagEvents } from "./ofrep-events.ts";
import { ofrepRoutes } from "./ofrep-routes.ts";
import type { EvaluationDependencies } from "./ports.ts";

/** `/flags`, `/decide`, OpenFeature and what client libraries need beside them. */
export function evaluationRoutes(deps: EvaluationDependencies): Route[] {
  const { onTrouble, overrides } = deps;
  const computation = new Computation({ subjects: new SubjectReader(deps.people), overrides, onTrouble });
  const events = new FlagEvents({
    projects: deps.projects,
    configurationOf: (projectId) => deps.flagSets.of(projectId).configuration,
    publicUrl: deps.publicUrl,
    stopping: deps.stopping,
  });
  const shared = { ...deps, events, computation, configs: new ClientConfigTexts() };
  return [...flagRoutes(shared), ...ofrepRoutes(shared), ...events.routes(), ...assetRoutes(deps)];
}
