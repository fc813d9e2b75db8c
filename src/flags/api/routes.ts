/** All public routes of flag evaluation as one plugin. */

import { Elysia } from "elysia";
import { SlowBodies } from "../../http/decode/slow-bodies.ts";
import { Computation } from "../subject/computation.ts";
import { OverrideWriter } from "../subject/override-writer.ts";
import { SubjectReader } from "../subject/stored-subject.ts";
import { assetRoutes } from "./asset-routes.ts";
import { ClientConfigTexts } from "./client-config.ts";
import { flagAnswers } from "./flag-routes.ts";
import { FlagEvents } from "./ofrep-events.ts";
import { ofrepRoutes } from "./ofrep-routes.ts";
import type { EvaluationDependencies } from "./ports.ts";

/** How long a body may go without progress worth the name, as on the capture routes. */
const slowBodyMs = 10_000;

/** `/flags`, `/decide` and what client libraries need beside them. */
export function evaluationRoutes(deps: EvaluationDependencies) {
  const { onTrouble } = deps;
  const overrides = new OverrideWriter({
    store: deps.storeOverrides,
    positions: deps.positions,
    onGivenUp: onTrouble,
  });
  const computation = new Computation({ subjects: new SubjectReader(deps.people), overrides, onTrouble });
  const events = new FlagEvents({
    projects: deps.projects,
    configurationOf: (projectId) => deps.flagSets.of(projectId).configuration,
    publicUrl: deps.settings.publicUrl,
    stopping: deps.stopping,
  });
  const shared = {
    ...deps,
    events,
    computation,
    configs: new ClientConfigTexts(),
    reading: { limitBytes: deps.settings.bodyLimitBytes, slowBodies: new SlowBodies(slowBodyMs) },
  };
  const app = new Elysia({ name: "evaluation" });
  for (const endpoint of ["flags", "decide"] as const) {
    const answer = flagAnswers(endpoint, shared);
    for (const path of [`/${endpoint}`, `/${endpoint}/`]) {
      app.all(path, ({ request }) => answer(request), { parse: "none", detail: { hide: true } });
    }
  }
  return app.use(ofrepRoutes(shared)).use(events.routes()).use(assetRoutes(deps));
}
