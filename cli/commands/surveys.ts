import { surveyResultOperations } from "../../src/operations/survey-results.ts";
import { startSurvey, stopSurvey, surveyOperations } from "../../src/operations/surveys.ts";
import { operationGroup } from "../operations/command.ts";
import { FlagStores } from "../operations/flag-stores.ts";

export const surveys = operationGroup(
  "surveys",
  "Manage surveys, which posthog-js shows on pages, and show their results.",
  ["surveys list", "surveys start Satisfaction"],
  [...surveyOperations, startSurvey, stopSurvey, ...surveyResultOperations],
  (metadata, options) => new FlagStores(metadata, options),
);
