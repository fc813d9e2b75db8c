/** Routes of experiments that are not operations: the activity log, and what is rejected on purpose. */

import { itemActivityRoutes } from "../../accounts/api/activity.ts";
import { projectRoute } from "../../accounts/api/routes.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { methodNotAllowed } from "../../http/http-error.ts";
import { readId } from "../../http/params.ts";
import type { Route } from "../../http/route.ts";
import { ApiFailure } from "../../http/schemas.ts";
import { getExperiment } from "../store.ts";

export function experimentRoutes(deps: { metadata: Metadata }): Route[] {
  return [
    ...itemActivityRoutes(deps, {
      path: "/experiments",
      scope: "Experiment",
      names: ["experiments", "an experiment"],
      find: ({ project, params }) => getExperiment(deps.metadata.db, project.id, readId(params, "id")).id,
    }),
    projectRoute("DELETE", "/experiments/:id", "experiment:write", {
      summary: "Not allowed: delete experiments with PATCH",
      description: 'Returns 405 for every id and changes nothing. Send `PATCH {"deleted": true}`.',
      tag: "Experiments",
      answers: { 405: { description: "Always.", schema: ApiFailure } },
      handle: () => {
        throw methodNotAllowed(
          "DELETE",
          ["GET", "PATCH", "HEAD", "OPTIONS"],
          'Hard delete of an experiment is not allowed. Send a PATCH with {"deleted": true} instead.',
        );
      },
    }),
  ];
}
