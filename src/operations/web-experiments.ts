/** Web experiments (contract: experiments 1.6). */

import {
  createWebExperiment,
  deleteWebExperiment,
  getWebExperiment,
  listWebExperiments,
  updateWebExperiment,
  webExperimentBody,
} from "../experiments/web-experiments.ts";
import {
  bool,
  dateTime,
  int,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
} from "../http/schemas.ts";
import {
  type ExperimentContext as Context,
  getExperimentActor,
  experimentTag as tag,
} from "./experiment-list.ts";
import { listOperation, operation } from "./operation.ts";

const WebExperimentBody = named(
  "WebExperiment",
  object({
    id: int(),
    name: string(),
    created_at: dateTime(),
    feature_flag_key: string(),
    variants: record({ description: "By variant: `rollout_percentage`, `transforms`, `conditions`." }),
  }),
);
const variantsExample = {
  control: { rollout_percentage: 50 },
  test: { rollout_percentage: 50, transforms: [{ selector: "#buy", text: "Buy now" }] },
};
const example = {
  id: 7,
  name: "Buy now",
  created_at: "2026-03-02T08:15:30.120000Z",
  variants: variantsExample,
  feature_flag_key: "buy-now-web-experiment-feature-0123456789",
};
const name = string({ max: 400 });
const variants = record({ description: "By variant; `control` must be present." });

const list = listOperation({
  id: "web-experiments.list",
  on: "project",
  scope: "web_experiment:read",
  tag,
  summary: "List web experiments",
  http: { method: "GET", path: "/web_experiments", answer: "One page of web experiments." },
  input: object({}),
  output: pageOf("WebExperimentPage", WebExperimentBody),
  example,
  run: ({ stores, project }: Context, { limit, offset }) => {
    const { db } = stores.metadata;
    const all = listWebExperiments(db, project.id);
    return {
      count: all.length,
      results: all.slice(offset, offset + limit).map((variant) => webExperimentBody(db, variant)),
    };
  },
});

const create = operation({
  id: "web-experiments.create",
  on: "project",
  scope: "web_experiment:write",
  tag,
  summary: "Create a web experiment",
  description:
    "A draft, and its flag, which is off. posthog-js applies `text`, `html` and `css` of the variant of a visitor. HTML is sanitized; CSS must not load anything.",
  http: { method: "POST", path: "/web_experiments", status: 201, answer: "The new web experiment." },
  input: object({ name, variants }),
  inputExample: { name: "Buy now", variants: variantsExample },
  output: WebExperimentBody,
  example,
  run: (context: Context, input) =>
    webExperimentBody(
      context.stores.metadata.db,
      createWebExperiment(context.stores, getExperimentActor(context), input),
    ),
});

const get = operation({
  id: "web-experiments.get",
  on: "project",
  scope: "web_experiment:read",
  tag,
  summary: "Get a web experiment",
  http: { method: "GET", path: "/web_experiments/:id", answer: "The web experiment." },
  input: object({ id: int() }),
  output: WebExperimentBody,
  example,
  run: ({ stores, project }: Context, { id }) =>
    webExperimentBody(stores.metadata.db, getWebExperiment(stores.metadata.db, project.id, id)),
});

const update = operation({
  id: "web-experiments.update",
  on: "project",
  scope: "web_experiment:write",
  tag,
  summary: "Update a web experiment",
  description: "`start_date` launches it and `end_date` ends it.",
  http: { method: "PATCH", path: "/web_experiments/:id", answer: "The web experiment." },
  input: object({
    id: int(),
    name: optional(name),
    variants: optional(variants),
    archived: optional(bool()),
    start_date: optional(nullable(dateTime())),
    end_date: optional(nullable(dateTime())),
  }),
  inputExample: { start_date: "2026-03-02T09:00:00.000000Z" },
  output: WebExperimentBody,
  example,
  run: (context: Context, { id, ...input }) =>
    webExperimentBody(
      context.stores.metadata.db,
      updateWebExperiment(context.stores, getExperimentActor(context), id, input),
    ),
});

const remove = operation({
  id: "web-experiments.delete",
  on: "project",
  scope: "web_experiment:write",
  tag,
  summary: "Delete a web experiment",
  description: "Its flag stays.",
  http: { method: "DELETE", path: "/web_experiments/:id" },
  input: object({ id: int() }),
  run: (context: Context, { id }) => deleteWebExperiment(context.stores, getExperimentActor(context), id),
});

/** In the order of the documentation. */
export const webExperimentOperations = [list, create, get, update, remove];
