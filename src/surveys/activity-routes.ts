/** The activity log of surveys. */

import { itemActivityRoutes } from "../accounts/api/activity.ts";
import type { Metadata } from "../accounts/metadata.ts";
import type { Route } from "../http/route.ts";
import { getSurvey } from "./surveys.ts";

export function surveyRoutes(deps: { metadata: Metadata }): Route[] {
  return itemActivityRoutes(deps, {
    path: "/surveys",
    scope: "Survey",
    names: ["surveys", "a survey"],
    find: ({ project, params }) => getSurvey(deps.metadata.db, project.id, params.id ?? "").id,
  });
}
