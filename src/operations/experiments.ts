/** Experiments (contract: experiments 1). */

import type { Static } from "@sinclair/typebox";
import { createExperiment, updateExperiment } from "../experiments/actions.ts";
import {
  ExperimentBody,
  ExperimentEdit,
  type ExperimentRecord,
  exampleExperiment as example,
  NewExperimentInput,
} from "../experiments/api/schemas.ts";
import { getExperiment } from "../experiments/store.ts";
import { getExcluded } from "../experiments/variants.ts";
import { copyWebVariants } from "../experiments/web-experiments.ts";
import { findFlag } from "../flags/store/flag.ts";
import { parseFields } from "../http/fields.ts";
import { ApiFailure, int, object, optional, string } from "../http/schemas.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { createExposureCohort } from "./experiment-cohort.ts";
import {
  body,
  type ExperimentContext as Context,
  experimentArgument,
  getExperimentActor,
  jsonOptions,
  listAllExperiments,
  experimentTag as tag,
} from "./experiment-list.ts";
import { experimentResultOperations } from "./experiment-results.ts";
import { experimentTransitions } from "./experiment-transitions.ts";
import { operation } from "./operation.ts";

const createNewExperiment = operation({
  id: "experiments.create",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Create an experiment",
  description:
    "A draft. `feature_flag_key` links an existing flag with 2 to 20 variants; otherwise a flag is created from `feature_flag` or `parameters.feature_flag_variants`, by default with `control` and `test`.",
  mcp: { name: "create_experiment" },
  http: { method: "POST", path: "/experiments", status: 201, answer: "The new experiment." },
  cli: {
    name: "experiments create",
    description: "Create an experiment, as a draft unless it has a start date.",
    examples: [
      "experiments create 'One-click payment' --feature-flag-key one-click-pay",
      "experiments create -f experiment.yaml",
    ],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    options: {
      start_date: { description: "launch the experiment, at this time" },
      end_date: { description: "end of the experiment" },
      holdout_id: { description: "holdout id" },
      ...jsonOptions(
        [
          "parameters",
          "metrics",
          "metrics_secondary",
          "saved_metrics_ids",
          "exposure_criteria",
          "stats_config",
          "running_time_calculation",
          "feature_flag",
        ],
        {
          // `--metrics` is a setting.
          metrics: "primary-metrics",
          metrics_secondary: "secondary-metrics",
        },
      ),
    },
    hasCreator: true,
    hasFile: true,
    done: ({ name, id, feature_flag_key: key, status }: ExperimentRecord) =>
      `Experiment ${name} (${id}) created with the flag ${key}; ${status === "draft" ? `launch it with: flagkeep experiments launch ${id}` : `it is ${status}.`}`,
  },
  input: NewExperimentInput,
  inputExample: { name: "One-click payment", feature_flag_key: "one-click-pay" },
  output: ExperimentBody,
  example,
  run: (context: Context, input) =>
    body(context, createExperiment(context.stores, getExperimentActor(context), input)),
});

const getOneExperiment = operation({
  id: "experiments.get",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "Get an experiment",
  mcp: { name: "get_experiment" },
  http: { method: "GET", path: "/experiments/:id", answer: "The experiment." },
  cli: {
    name: "experiments show",
    description: "Show an experiment.",
    examples: ["experiments show 7 --json"],
    arguments: [experimentArgument],
    done: (experiment: ExperimentRecord) =>
      [
        `${experiment.name} (${experiment.id}): ${experiment.status}, flag ${experiment.feature_flag_key}`,
        `Variants: ${(experiment.parameters.feature_flag_variants as { key: string }[]).map(({ key }) => key).join(", ")}`,
        `Metrics: ${[...experiment.metrics, ...experiment.metrics_secondary].map(({ name, uuid }) => String(name ?? uuid)).join(", ") || "none"}`,
      ].join("\n"),
  },
  input: object({ id: int() }),
  output: ExperimentBody,
  example,
  run: (context: Context, { id }) =>
    body(context, getExperiment(context.stores.metadata.db, context.project.id, id)),
});

const updateOneExperiment = operation({
  id: "experiments.update",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Update or delete an experiment",
  description:
    "`deleted: true` deletes it, and `false` restores it; its flag stays. With `version`, a concurrent change is rejected with 409. Dates launch and end it.",
  http: {
    method: "PATCH",
    path: "/experiments/:id",
    answer: "The experiment.",
    takesRawBody: true,
    errors: { 409: { description: "Another user changed the experiment.", schema: ApiFailure } },
  },
  input: object({ id: int(), ...ExperimentEdit.properties }),
  inputExample: { description: "If people pay with one click, more orders are paid." },
  output: ExperimentBody,
  example,
  run: (context: Context, { id, body: sent }) => {
    const input = parseFields(ExperimentEdit, sent, { partial: true }) as Static<typeof ExperimentEdit>;
    return body(context, updateExperiment(context.stores, getExperimentActor(context), id, input));
  },
});

const duplicateExperiment = operation({
  id: "experiments.duplicate",
  on: "project",
  scope: "experiment:write",
  tag,
  summary: "Duplicate an experiment",
  description:
    "As a draft with the same metrics and settings. With `feature_flag_key` it uses or creates that flag, otherwise the same one.",
  http: { method: "POST", path: "/experiments/:id/duplicate", status: 201, answer: "The new draft." },
  input: object({
    id: int(),
    name: optional(string({ max: 400 })),
    feature_flag_key: optional(string({ max: 400 })),
  }),
  inputExample: { name: "One-click payment, second try" },
  output: ExperimentBody,
  example,
  run: (context: Context, { id, name, feature_flag_key: key }) => {
    const { stores, project } = context;
    const experiment = getExperiment(stores.metadata.db, project.id, id);
    const flag = findFlag(stores.metadata.db, project.id, experiment.flagId)!;
    const isNew = key !== undefined && key !== flag.key;
    const newIds = new Map<string, string>();
    const withNewId = (metric: JsonObject): JsonObject => {
      const uuid = Bun.randomUUIDv7();
      newIds.set(String(metric.uuid), uuid);
      return { ...metric, uuid };
    };
    // Saved metrics have the same UUID in every experiment.
    const withNewIds = (order: readonly string[] | null) =>
      order?.map((uuid) => newIds.get(uuid) ?? uuid) ?? null;
    const actor = getExperimentActor(context);
    const copy = stores.metadata.change((t) => {
      const created = createExperiment(stores, actor, {
        name: name ?? `${experiment.name} (Copy)`.slice(0, 400),
        description: experiment.description,
        type: experiment.type,
        tags: experiment.tags,
        feature_flag_key: key ?? flag.key,
        ...(isNew
          ? { parameters: { ...experiment.parameters, feature_flag_variants: getVariants(flag.filters) } }
          : { parameters: experiment.parameters }),
        metrics: experiment.metrics.map(withNewId),
        metrics_secondary: experiment.metricsSecondary.map(withNewId),
        primary_metrics_ordered_uuids: withNewIds(experiment.primaryMetricsOrder),
        secondary_metrics_ordered_uuids: withNewIds(experiment.secondaryMetricsOrder),
        saved_metrics_ids: experiment.savedMetrics as { id: number; metadata: JsonObject }[],
        exposure_criteria: experiment.exposureCriteria as never,
        stats_config: experiment.statsConfig as never,
        only_count_matured_users: experiment.onlyCountMaturedUsers,
        minimum_exposures: experiment.minimumExposures,
        excluded_variants: getExcluded(experiment, flag.filters),
        running_time_calculation: experiment.runningTimeCalculation,
        holdout_id: experiment.holdoutId,
      });
      return copyWebVariants(t, actor, experiment, created);
    });
    return body(context, copy);
  },
});

const getVariants = (filters: JsonObject) => (filters.multivariate as JsonObject).variants!;

/** In the order of the documentation. */
export const experimentOperations = [
  listAllExperiments,
  createNewExperiment,
  getOneExperiment,
  updateOneExperiment,
  ...experimentTransitions,
  duplicateExperiment,
  ...experimentResultOperations,
  createExposureCohort,
];
