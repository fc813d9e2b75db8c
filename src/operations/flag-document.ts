/**
 * Experiments, holdouts, saved metrics, early access features and surveys in a project's document of flags.
 *
 * They refer to flags by key, and to each other and to cohorts by name. Default values are omitted. Holdouts and surveys
 * have their IDs, because stored events contain them.
 */

import type { Reading } from "../accounts/db.ts";
import { readCohorts } from "../cohorts/cohorts.ts";
import { type Feature, getFeature, listFeatures } from "../early-access/features.ts";
import {
  type Experiment,
  findExperiment,
  findHoldout,
  type Holdout,
  listExperiments,
  listHoldouts,
  listSavedMetrics,
  type SavedMetric,
  savedMetricLinks,
  savedMetricsById,
} from "../experiments/store.ts";
import { getExcluded } from "../experiments/variants.ts";
import { webExperimentBody } from "../experiments/web-experiments.ts";
import type { Flag } from "../flags/fields.ts";
import { withNames } from "../flags/import-export/document.ts";
import { findFlag, readFlags } from "../flags/store/flag.ts";
import { once } from "../lib/concurrency.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { toApiTime, toApiTimeOrNull } from "../lib/time.ts";
import { getSurvey, listSurveys, type Survey } from "../surveys/surveys.ts";

/** Members of a document, in the order of an import. */
export const objectKinds = [
  { member: "holdouts", kind: "holdout" },
  { member: "saved_metrics", kind: "saved metric" },
  { member: "experiments", kind: "experiment" },
  { member: "early_access_features", kind: "early access feature" },
  { member: "surveys", kind: "survey" },
] as const;
export type ObjectMember = (typeof objectKinds)[number]["member"];
export type ObjectKind = (typeof objectKinds)[number]["kind"];
export type ObjectDocument = Record<ObjectMember, JsonObject[]>;

const common = { description: "", tags: [] };
/** Values that a document omits. */
export const objectDefaults: Record<ObjectMember, JsonObject> = {
  holdouts: { description: "" },
  saved_metrics: common,
  experiments: {
    ...common,
    type: "product",
    parameters: {},
    start_date: null,
    end_date: null,
    archived: false,
    metrics: [],
    metrics_secondary: [],
    saved_metrics: [],
    exposure_criteria: {},
    stats_config: {},
    only_count_matured_users: false,
    minimum_exposures: 100,
    excluded_variants: [],
    primary_metrics_ordered_uuids: null,
    secondary_metrics_ordered_uuids: null,
    running_time_calculation: {},
    holdout: null,
    conclusion: null,
    conclusion_comment: null,
    variants: null,
  },
  early_access_features: { description: "", documentation_url: "", payload: {} },
  surveys: {
    description: "",
    schedule: "once",
    conditions: {},
    appearance: {},
    linked_flag_key: null,
    targeting_flag_filters: null,
    start_date: null,
    end_date: null,
    archived: false,
    enable_partial_responses: false,
    responses_limit: null,
    iteration_count: null,
    iteration_frequency_days: null,
    translations: {},
  },
};

/** What the objects of a project refer to by ID. */
class Names {
  constructor(
    readonly db: Reading,
    readonly projectId: number,
  ) {}

  /** Read when the first filters need them: an import creates flags and cohorts before. */
  readonly filters = once((): Parameters<typeof withNames>[1] => ({
    cohorts: new Map(readCohorts(this.db, this.projectId).map(({ id, name }) => [id, name])),
    flags: new Map(readFlags(this.db, this.projectId).map(({ id, key }) => [id, key])),
  }));

  flag(id: number | null): Flag | undefined {
    return id === null ? undefined : findFlag(this.db, this.projectId, id);
  }
}

/** An object of a project with its item in a document. */
export interface StoredObject {
  id: number | string;
  item: JsonObject;
}

interface ObjectSource {
  /** Of two with the same identity the newer one is first. */
  all(): StoredObject[];
  /** @throws {NotFoundError} */
  one(id: StoredObject["id"]): StoredObject | undefined;
}

/** Reads the objects of a project as items; those of deleted flags are omitted. */
export function objectSources(db: Reading, projectId: number): Record<ObjectMember, ObjectSource> {
  const names = new Names(db, projectId);
  const everything = { limit: Number.MAX_SAFE_INTEGER, offset: 0 };
  return {
    holdouts: source(
      () => listHoldouts(db, projectId),
      (id) => findHoldout(db, projectId, Number(id)),
      holdoutItem,
    ),
    saved_metrics: source(
      () => listSavedMetrics(db, projectId),
      (id) => savedMetricsById(db, projectId, [Number(id)]).get(Number(id)),
      savedMetricItem,
    ),
    experiments: source(
      () => listExperiments(db, projectId, {}, everything, new Date()).experiments,
      (id) => findExperiment(db, projectId, Number(id)),
      (experiment) => experimentItem(names, experiment),
    ),
    early_access_features: source(
      () => listFeatures(db, projectId),
      (id) => getFeature(db, projectId, String(id)),
      (feature) => featureItem(names, feature),
    ),
    surveys: source(
      () => listSurveys(db, projectId),
      (id) => getSurvey(db, projectId, String(id)),
      (survey) => surveyItem(names, survey),
    ),
  };
}

function source<Row extends { id: StoredObject["id"] }>(
  all: () => Row[],
  one: (id: StoredObject["id"]) => Row | undefined,
  toItem: (row: Row) => JsonObject | undefined,
): ObjectSource {
  const toObjects = (row: Row): StoredObject[] => {
    const item = toItem(row);
    return item === undefined ? [] : [{ id: row.id, item }];
  };
  return {
    all: () => all().flatMap(toObjects),
    one: (id) => {
      const row = one(id);
      return row === undefined ? undefined : toObjects(row)[0];
    },
  };
}

/** The objects of a project; those of deleted flags are omitted. */
export function readObjects(db: Reading, projectId: number): ObjectDocument {
  const sources = objectSources(db, projectId);
  const read = objectKinds.map(({ member }) => [
    member,
    sources[member]
      .all()
      .map(({ item }) => ({ item, identity: getIdentity(item) }))
      .sort((a, b) => (a.identity < b.identity ? -1 : a.identity > b.identity ? 1 : 0))
      .map(({ item }) => item),
  ]);
  return Object.fromEntries(read) as ObjectDocument;
}

/** What an item is matched by: experiments may share a name. */
export const getIdentity = ({ name, feature_flag_key: key }: JsonObject): string =>
  JSON.stringify([name ?? "", key ?? ""]);

/** The members of a document that have items. */
export const withObjects = <Document extends object>(
  document: Document,
  objects: ObjectDocument,
): Document => ({
  ...document,
  ...Object.fromEntries(Object.entries(objects).filter(([, items]) => items.length > 0)),
});

/** An item without its default values. */
function item(member: ObjectMember, values: JsonObject): JsonObject {
  const defaults = objectDefaults[member];
  const changed = Object.entries(values).filter(
    ([name, value]) => !(name in defaults && Bun.deepEquals(value, defaults[name])),
  );
  return Object.fromEntries(changed) as JsonObject;
}

function holdoutItem({ id, name, description, filters: [set = {}] }: Holdout): JsonObject {
  const { variant: _, ...filters } = set;
  return item("holdouts", { name, id, description, filters: [filters] });
}

const savedMetricItem = ({ name, description, query, tags }: SavedMetric) =>
  item("saved_metrics", { name, description, query, tags });

function experimentItem(names: Names, experiment: Experiment): JsonObject | undefined {
  const flag = names.flag(experiment.flagId);
  if (flag === undefined || flag.deleted) return undefined;
  const holdout =
    experiment.holdoutId === null
      ? undefined
      : findHoldout(names.db, experiment.projectId, experiment.holdoutId);
  const links = savedMetricLinks(experiment);
  const saved = savedMetricsById(
    names.db,
    experiment.projectId,
    links.map(({ id }) => id),
  );
  const values = {
    name: experiment.name,
    feature_flag_key: flag.key,
    description: experiment.description,
    type: experiment.type,
    tags: experiment.tags,
    parameters: experiment.parameters,
    start_date: toApiTimeOrNull(experiment.startDate),
    end_date: toApiTimeOrNull(experiment.endDate),
    archived: experiment.archived,
    metrics: experiment.metrics,
    metrics_secondary: experiment.metricsSecondary,
    saved_metrics: links.flatMap(({ id, metadata }): Json[] => {
      const metric = saved.get(id);
      return metric === undefined ? [] : [{ name: metric.name, metadata }];
    }),
    exposure_criteria: experiment.exposureCriteria,
    stats_config: experiment.statsConfig,
    only_count_matured_users: experiment.onlyCountMaturedUsers,
    minimum_exposures: experiment.minimumExposures,
    excluded_variants: getExcluded(experiment, flag.filters),
    primary_metrics_ordered_uuids: experiment.primaryMetricsOrder,
    secondary_metrics_ordered_uuids: experiment.secondaryMetricsOrder,
    running_time_calculation: experiment.runningTimeCalculation,
    holdout: holdout?.name ?? null,
    conclusion: experiment.conclusion,
    conclusion_comment: experiment.conclusionComment,
    variants: experiment.webVariants === null ? null : webExperimentBody(names.db, experiment).variants,
  };
  return item("experiments", values);
}

function featureItem(names: Names, feature: Feature): JsonObject | undefined {
  const flag = names.flag(feature.flagId);
  if (flag === undefined || flag.deleted) return undefined;
  return item("early_access_features", {
    name: feature.name,
    feature_flag_key: flag.key,
    stage: feature.stage,
    description: feature.description,
    documentation_url: feature.documentationUrl,
    payload: feature.payload,
  });
}

function surveyItem(names: Names, survey: Survey): JsonObject {
  const targeting = names.flag(survey.targetingFlagId);
  return item("surveys", {
    name: survey.name,
    id: survey.id,
    type: survey.type,
    questions: survey.questions,
    description: survey.description,
    schedule: survey.schedule,
    conditions: survey.conditions,
    appearance: survey.appearance,
    linked_flag_key: names.flag(survey.linkedFlagId)?.key ?? null,
    targeting_flag_filters: targeting === undefined ? null : withNames(targeting.filters, names.filters()),
    start_date: survey.startDate === null ? null : toApiTime(survey.startDate),
    end_date: survey.endDate === null ? null : toApiTime(survey.endDate),
    archived: survey.archived,
    enable_partial_responses: survey.enablePartialResponses,
    responses_limit: survey.responsesLimit,
    iteration_count: survey.iterationCount,
    iteration_frequency_days: survey.iterationFrequencyDays,
    translations: survey.translations,
  });
}
