/** Saved metrics of experiments (contract: experiments 1). */

import { getCreatorId } from "../accounts/activity.ts";
import { userFinder } from "../accounts/users.ts";
import { exampleSavedMetric, SavedMetricBody, savedMetricBody } from "../experiments/api/schemas.ts";
import { changeSavedGuardrail } from "../experiments/guardrail-access.ts";
import { readMetric } from "../experiments/metrics.ts";
import {
  deleteSavedMetric,
  insertSavedMetric,
  listSavedMetrics,
  type SavedMetric,
  savedMetricsById,
  writeSavedMetric,
} from "../experiments/store.ts";
import { normalizeTags } from "../flags/rules/key.ts";
import {
  int,
  list,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
  tag as tagName,
} from "../http/schemas.ts";
import { NotFoundError, trimmedString } from "../lib/errors.ts";
import {
  type ExperimentContext as Context,
  getExperimentActor,
  experimentTag as tag,
} from "./experiment-list.ts";
import { getAuthor, listOperation, operation, slicePage } from "./operation.ts";

const Texts = { description: optional(nullable(string({ blank: true, max: 3_000 }))) };
const users = ({ stores }: Context) => userFinder(stores.metadata.db);

function savedMetricIn({ stores, project }: Context, id: number): SavedMetric {
  const found = savedMetricsById(stores.metadata.db, project.id, [id]).get(id);
  if (found === undefined) throw new NotFoundError();
  return found;
}

const listAllSavedMetrics = listOperation({
  id: "experiments.metrics.list",
  on: "project",
  scope: "experiment_saved_metric:read",
  tag,
  summary: "List saved metrics",
  http: { method: "GET", path: "/experiment_saved_metrics", answer: "One page of saved metrics." },
  input: object({ search: optional(string({ blank: true, description: "Part of the name." })) }),
  output: pageOf("ExperimentSavedMetricPage", SavedMetricBody),
  example: exampleSavedMetric,
  readQuery: (query) => ({ search: query.get("search") ?? undefined }),
  run: (context: Context, { limit, offset, search = "" }) => {
    const wanted = search.trim().toLowerCase();
    const all = listSavedMetrics(context.stores.metadata.db, context.project.id).filter((savedMetric) =>
      savedMetric.name.toLowerCase().includes(wanted),
    );
    return slicePage(all, { limit, offset }, (metric) => savedMetricBody(metric, users(context)));
  },
});

export const createSavedMetric = operation({
  id: "experiments.metrics.create",
  on: "project",
  scope: "experiment_saved_metric:write",
  tag,
  summary: "Create a saved metric",
  http: { method: "POST", path: "/experiment_saved_metrics", status: 201, answer: "The new metric." },
  input: object({
    name: string({ max: 400 }),
    ...Texts,
    query: record({ description: "A metric of kind `ExperimentMetric`." }),
    tags: optional(nullable(list(tagName()))),
  }),
  inputExample: { name: exampleSavedMetric.name, query: exampleSavedMetric.query },
  output: SavedMetricBody,
  example: exampleSavedMetric,
  run: (context: Context, { name, description, query, tags }) => {
    const { stores, project, now } = context;
    const created = stores.metadata.change((t) =>
      insertSavedMetric(t, {
        projectId: project.id,
        name: trimmedString("name", name, 400),
        description: description ?? "",
        query: readMetric(query, "query"),
        tags: normalizeTags(tags ?? [], "tags") ?? [],
        createdById: getCreatorId(getAuthor(context.actor)),
        createdAt: now,
        updatedAt: now,
      }),
    );
    return savedMetricBody(created, users(context));
  },
});

const getSavedMetric = operation({
  id: "experiments.metrics.get",
  on: "project",
  scope: "experiment_saved_metric:read",
  tag,
  summary: "Get a saved metric",
  http: { method: "GET", path: "/experiment_saved_metrics/:id", answer: "The metric." },
  input: object({ id: int() }),
  output: SavedMetricBody,
  example: exampleSavedMetric,
  run: (context: Context, { id }) => savedMetricBody(savedMetricIn(context, id), users(context)),
});

const updateSavedMetric = operation({
  id: "experiments.metrics.update",
  on: "project",
  scope: "experiment_saved_metric:write",
  tag,
  summary: "Update a saved metric",
  http: { method: "PATCH", path: "/experiment_saved_metrics/:id", answer: "The metric." },
  input: object({
    id: int(),
    name: optional(string({ max: 400 })),
    ...Texts,
    query: optional(record()),
    tags: optional(nullable(list(tagName()))),
  }),
  inputExample: { name: "Paid orders" },
  output: SavedMetricBody,
  example: exampleSavedMetric,
  run: (context: Context, { id, name, description, query, tags }) => {
    const { stores, now } = context;
    savedMetricIn(context, id);
    const fields = {
      ...(name === undefined ? {} : { name: trimmedString("name", name, 400) }),
      ...(description === undefined ? {} : { description: description ?? "" }),
      ...(query === undefined ? {} : { query: readMetric(query, "query") }),
      ...(tags === undefined ? {} : { tags: normalizeTags(tags ?? [], "tags") ?? [] }),
    };
    const actor = getExperimentActor(context);
    const changed = stores.metadata.change((t) =>
      changeSavedGuardrail(stores, t, actor, id, () => writeSavedMetric(t, id, fields, now)),
    );
    return savedMetricBody(changed, users(context));
  },
});

const removeSavedMetric = operation({
  id: "experiments.metrics.delete",
  on: "project",
  scope: "experiment_saved_metric:write",
  tag,
  summary: "Delete a saved metric",
  description: "Experiments that use it lose it.",
  http: { method: "DELETE", path: "/experiment_saved_metrics/:id" },
  input: object({ id: int() }),
  run: (context: Context, { id }) => {
    const savedMetric = savedMetricIn(context, id);
    context.stores.metadata.change((t) => deleteSavedMetric(t, savedMetric));
  },
});

export const savedMetricOperations = [
  listAllSavedMetrics,
  createSavedMetric,
  getSavedMetric,
  updateSavedMetric,
  removeSavedMetric,
];
