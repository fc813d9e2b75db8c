/** Experiments, surveys and the like as PostHog's API returns them, as items of a document. */

import { readMetric } from "../experiments/metrics.ts";
import { withNames } from "../flags/import-export/document.ts";
import { AppError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { type ObjectDocument, type ObjectMember, objectDefaults } from "../operations/flag-document.ts";
import { getTitle } from "./read-objects.ts";

/** Lists of PostHog's API by the last part of their path. */
export const posthogLists = [
  "experiment_holdouts",
  "experiment_saved_metrics",
  "experiments",
  "web_experiments",
  "early_access_feature",
  "surveys",
] as const;
export type PostHogObjects = Record<(typeof posthogLists)[number], JsonObject[]>;

/** @param cohorts of the project, for their names @returns also messages about parts that have no counterpart */
export function posthogObjects(
  lists: PostHogObjects,
  cohorts: readonly JsonObject[],
): { objects: ObjectDocument; remarks: string[] } {
  const remarks: string[] = [];
  const names = {
    cohorts: new Map(cohorts.map(({ id, name }) => [Number(id), String(name)])),
    flags: new Map<number, string>(),
  };
  const webVariants = new Map(lists.web_experiments.map(({ id, variants }) => [id, variants]));
  const objects: ObjectDocument = {
    holdouts: lists.experiment_holdouts.map((holdout) =>
      pick("holdouts", holdout, ["name", "id", "filters"]),
    ),
    saved_metrics: lists.experiment_saved_metrics.flatMap((metric) => {
      const query = readable(metric.query, (reason) =>
        remarks.push(`${getTitle("saved metric", getName(metric))}: ${reason}`),
      );
      return query === undefined ? [] : [{ ...pick("saved_metrics", metric, ["name"]), query }];
    }),
    experiments: lists.experiments
      .filter(({ deleted }) => deleted !== true)
      .map((experiment) => experimentItem(experiment, webVariants.get(experiment.id), remarks)),
    early_access_features: lists.early_access_feature.map((feature) => ({
      ...pick("early_access_features", feature, ["name", "stage"]),
      feature_flag_key: isJsonObject(feature.feature_flag) ? (feature.feature_flag.key ?? null) : null,
    })),
    surveys: lists.surveys.map((survey) => {
      const { linked_flag: linked, targeting_flag: targeting } = survey;
      return {
        ...pick("surveys", survey, ["name", "id", "type", "questions"]),
        ...(isJsonObject(linked) ? { linked_flag_key: linked.key ?? null } : {}),
        ...(isJsonObject(targeting) && isJsonObject(targeting.filters)
          ? { targeting_flag_filters: withNames(targeting.filters, names) }
          : {}),
      };
    }),
  };
  return { objects, remarks };
}

const getName = ({ name }: JsonObject) => String(name);

/** The members that a document has, without null ones. */
function pick(member: ObjectMember, item: JsonObject, more: readonly string[]): JsonObject {
  const known = [...more, ...Object.keys(objectDefaults[member])];
  return Object.fromEntries(
    known.flatMap((name) => (item[name] === undefined || item[name] === null ? [] : [[name, item[name]]])),
  ) as JsonObject;
}

function experimentItem(item: JsonObject, variants: Json | undefined, remarks: string[]): JsonObject {
  const name = getName(item);
  const reportObstacle = (what: string) => (reason: string) =>
    remarks.push(`${getTitle("experiment", name)}: ${what} is not imported: ${reason}`);
  const metrics = (list: Json | undefined) =>
    (Array.isArray(list) ? list : []).flatMap(
      (metric, at) => readable(metric, reportObstacle(`metric ${at + 1}`)) ?? [],
    );
  const {
    feature_flag_variants: served,
    excluded_variants: formerly,
    ...parameters
  } = isJsonObject(item.parameters) ? item.parameters : {};
  const { holdout, saved_metrics: saved } = item;
  return {
    ...pick("experiments", item, ["name", "feature_flag_key"]),
    parameters,
    excluded_variants: excludedVariants([item.excluded_variants, formerly], served),
    metrics: metrics(item.metrics),
    metrics_secondary: metrics(item.metrics_secondary),
    saved_metrics: (Array.isArray(saved) ? saved : []).filter(isJsonObject).flatMap((item): JsonObject[] => {
      if (readable(item.query, reportObstacle(`saved metric "${getName(item)}"`)) === undefined) return [];
      return [{ name: item.name ?? null, metadata: item.metadata ?? null }];
    }),
    exposure_criteria: criteria(item.exposure_criteria, reportObstacle("an exposure criterion")),
    ...(isJsonObject(holdout) ? { holdout: holdout.name ?? null } : {}),
    ...(isJsonObject(variants) ? { variants } : {}),
  };
}

/** Older servers have them in the parameters. A variant that was removed from the flag has no effect there. */
function excludedVariants(sent: readonly (Json | undefined)[], served: Json | undefined): Json[] {
  const keys = (Array.isArray(served) ? served : []).filter(isJsonObject).map(({ key }) => key);
  const lists = sent.filter((list): list is Json[] => Array.isArray(list));
  return (lists.find(({ length }) => length > 0) ?? []).filter((key) => keys.includes(key));
}

/** Exposures by actions have no counterpart. */
function criteria(sent: Json | undefined, onProblem: (reason: string) => void): JsonObject {
  if (!isJsonObject(sent)) return {};
  const retained = Object.entries(sent).filter(([, config]) => {
    if (!isJsonObject(config) || typeof config.event === "string") return true;
    onProblem("it is not an event.");
    return false;
  });
  return Object.fromEntries(retained) as JsonObject;
}

/** A metric that experiments can compute here. */
function readable(metric: Json | undefined, onProblem: (reason: string) => void): JsonObject | undefined {
  try {
    readMetric(metric, "metrics");
    return metric as JsonObject;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    onProblem(error.message);
    return undefined;
  }
}
