/** The cohort of the persons who were exposed to an experiment (contract: experiments 1). */

import { allows } from "../accounts/limits.ts";
import { findUser } from "../accounts/users.ts";
import { CohortBody, cohortBody, exampleCohort } from "../cohorts/api/cohort-schemas.ts";
import { type CalculationDeps, calculateInBackground } from "../cohorts/cohort-calculation.ts";
import { createCohort, findCohort } from "../cohorts/cohorts.ts";
import type { ComputeDeps } from "../experiments/compute.ts";
import { loadStatistics } from "../experiments/statistics.ts";
import { getExperiment } from "../experiments/store.ts";
import { int, object } from "../http/schemas.ts";
import { PermissionDeniedError } from "../lib/errors.ts";
import { experimentTag as tag } from "./experiment-list.ts";
import { getAuthor, operation, type ProjectContext } from "./operation.ts";

type Context = ProjectContext<ComputeDeps & CalculationDeps>;

export const createExposureCohort = operation({
  id: "experiments.exposure-cohort",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Create a static cohort from the exposures of an experiment",
  description:
    "Also requires the scope cohort:write. Everyone who was exposed until now, persons with several variants included. The members are added in the background.",
  http: {
    method: "POST",
    path: "/experiments/:id/create_exposure_cohort_for_experiment",
    status: 201,
    answer: "The new cohort, still empty.",
  },
  input: object({ id: int() }),
  output: object({ cohort: CohortBody }),
  example: { cohort: { ...exampleCohort, is_static: true, filters: { properties: {} } } },
  run: async ({ stores, project, actor, now }: Context, { id }) => {
    if (actor.kind === "user" && !allows(actor.limits.scopes, "cohort:write"))
      throw new PermissionDeniedError("API key missing required scope 'cohort:write'");
    const experiment = getExperiment(stores.metadata.db, project.id, id);
    const { exposureRequest } = await loadStatistics();
    const request = exposureRequest(stores, experiment, { project, now, refresh: "blocking" });
    const at = now.toISOString().slice(0, 19).replace("T", " ");
    const fields = {
      name: `Users exposed to experiment ${experiment.name} at ${at}`.slice(0, 400),
      isStatic: true,
    };
    const by = getAuthor(actor);
    const created = createCohort(stores.metadata, { projectId: project.id, by, fields }, now);
    void calculateInBackground(stores, created.id, () =>
      stores.cohortFiller.addExposedPersons(project.id, created.id, request),
    );
    const cohort = findCohort(stores.metadata.db, project.id, created.id)!;
    const user = actor.kind === "user" ? findUser(stores.metadata.db, actor.user.id) : undefined;
    return { cohort: cohortBody(cohort, user) };
  },
});
