/** All public routes of flag evaluation. */

import type { Route } from "../../http/route.ts";
import { FlagEvaluation } from "../evaluation-context/flag-evaluation.ts";
import { ContextReader } from "../evaluation-context/stored-context.ts";
import { assetRoutes } from "./asset-routes.ts";
import { ClientConfigStrings } from "./client-config.ts";
import { flagRoutes } from "./flag-routes.ts";
import { FlagEvents } from "./ofrep-events.ts";
import { ofrepRoutes } from "./ofrep-routes.ts";
import type { EvaluationDeps } from "./ports.ts";

/** `/flags`, `/decide`, OpenFeature and the other files of client libraries. */
export function evaluationRoutes(deps: EvaluationDeps): Route[] {
  const shared = withComputation(deps);
  return [...getValueRoutes(shared), ...shared.events.routes(), ...assetRoutes(deps)];
}

/** The routes that evaluate flags: without streams and files. */
export function valueRoutes(deps: EvaluationDeps): Route[] {
  return getValueRoutes(withComputation(deps));
}

type ComputationDeps = ReturnType<typeof withComputation>;

function getValueRoutes(shared: ComputationDeps): Route[] {
  return [...flagRoutes(shared), ...ofrepRoutes(shared)];
}

function withComputation(deps: EvaluationDeps) {
  const { onError: onProblem, overrides } = deps;
  const computation = new FlagEvaluation({
    subjects: new ContextReader(deps.persons),
    overrides,
    onError: onProblem,
  });
  const events = new FlagEvents({
    projects: deps.projects,
    configurationOf: (projectId) => deps.flagSets.get(projectId).configuration,
    publicUrl: deps.publicUrl,
    stopping: deps.stopping,
  });
  return { ...deps, events, computation, configs: new ClientConfigStrings() };
}
