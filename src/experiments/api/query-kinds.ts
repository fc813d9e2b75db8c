/** `ExperimentQuery` and `ExperimentExposureQuery`, with the shapes of PostHog (contract: experiments 1). */

import type { QueryKinds } from "../../events/api/query.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { ComputeDeps } from "../compute.ts";
import { readMetric } from "../metrics.ts";
import { loadStatistics } from "../statistics.ts";
import { type Experiment, findExperiment } from "../store.ts";

export function experimentQueries(deps: ComputeDeps): QueryKinds {
  return {
    ExperimentQuery: async (query, context) => {
      const experiment = named(deps, context.project.id, query);
      const metric = readMetric(query.metric, "query");
      const { computeMetric } = await loadStatistics();
      const result = await computeMetric(deps, experiment, { metric, role: "primary" }, context);
      return { kind: "ExperimentQuery", metric, stats_version: 2, ...result } as unknown as JsonObject;
    },
    ExperimentExposureQuery: async (query, context) => {
      const experiment = named(deps, context.project.id, query);
      const { computeExposures } = await loadStatistics();
      return await computeExposures(deps, experiment, context);
    },
  };
}

/** @throws {InvalidFieldError} */
function named({ metadata }: ComputeDeps, projectId: number, { experiment_id: id }: JsonObject): Experiment {
  const found = Number.isSafeInteger(id) ? findExperiment(metadata.db, projectId, id as number) : undefined;
  if (found === undefined)
    throw new InvalidFieldError(
      "query",
      "does_not_exist",
      "`experiment_id` must be the id of an experiment.",
    );
  if (found.startDate === null)
    throw new InvalidFieldError("query", "invalid_input", "The experiment has not been launched.");
  return found;
}
