/** Feature flags (contract: management-api 5.1 to 5.5). */

import type { Static } from "@sinclair/typebox";
import {
  type ExplainDeps,
  ExplainQuery,
  ExplanationSchema,
  exampleExplanation,
  explainNamedFlag,
  readExplainQuery,
} from "../flags/api/explain-route.ts";
import { editByActor, flagAnswers, flagTag as tag } from "../flags/api/feature-flags.ts";
import { FlagQuery, readFlagQuery } from "../flags/api/flag-query.ts";
import { FlagBody, FlagEditInput, FlagPage, NewFlagInput } from "../flags/api/flag-schemas.ts";
import { exampleFlag as example, flagFields } from "../flags/fields.ts";
import { listFlags } from "../flags/store/flag-list.ts";
import { createFlag } from "../flags/store/flag-writes.ts";
import { ApiFailure, int, object, string } from "../http/schemas.ts";
import { type FlagContext as Context, getFlagActor, getFlagById } from "./flag-actor.ts";
import { changeFlagTools, createFlagTool, explainFlagTool, listFlagsTool } from "./flag-tools.ts";
import { getAuthor, listOperation, operation, type ProjectContext } from "./operation.ts";

export const listAllFlags = listOperation({
  id: "flags.list",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List feature flags",
  description:
    "The stored definitions, newest first, without deleted flags. Use `/flags` to evaluate flags for a person.",
  http: { method: "GET", path: "/feature_flags", answer: "One page of flags." },
  mcp: listFlagsTool,
  input: FlagQuery,
  output: FlagPage,
  example,
  readQuery: readFlagQuery,
  run: (context: Context, { limit, offset, ...filter }) => {
    const { stores, project, now } = context;
    const { flags, count } = listFlags(stores.metadata.db, project.id, filter, { limit, offset }, now);
    return { count, results: flagAnswers(stores, getFlagActor(context)).many(flags) };
  },
});

export const createNewFlag = operation({
  id: "flags.create",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Create a feature flag",
  description:
    "Without `filters` the flag is off for everyone until it has a condition set; `rollout_percentage` creates one. A remote configuration is always on. A usage dashboard is created too.",
  http: { method: "POST", path: "/feature_flags", status: 201, answer: "The new flag." },
  mcp: createFlagTool,
  input: NewFlagInput,
  inputExample: {
    key: "one-click-pay",
    name: "Lets people pay with one click",
    filters: { groups: [{ properties: [], rollout_percentage: 40 }] },
    tags: ["payments"],
  },
  output: FlagBody,
  example,
  run: (context: Context, input) => {
    const { stores, project, actor, now } = context;
    const created = createFlag(stores, {
      projectId: project.id,
      by: getAuthor(actor),
      now,
      fields: { ...flagFields(input), key: input.key },
      createsUsageDashboard: input._should_create_usage_dashboard ?? true,
    });
    return flagAnswers(stores, getFlagActor(context)).one(created);
  },
});

const getFlag = operation({
  id: "flags.get",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Get a feature flag",
  description: "Also works for deleted flags.",
  http: { method: "GET", path: "/feature_flags/:id", answer: "The flag." },
  input: object({ id: int() }),
  output: FlagBody,
  example,
  run: (context: Context, { id }) => {
    const { stores } = context;
    return flagAnswers(stores, getFlagActor(context)).one(getFlagById(context, id));
  },
});

export const updateOneFlag = operation({
  id: "flags.update",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Update a feature flag",
  description:
    "`deleted: true` deletes the flag, `deleted: false` restores it. Members of `filters` replace the stored ones, null clears one; `rollout_percentage` changes the rollout of the only condition set. With `version` and `original_flag`, a concurrent change of the same fields is rejected with 409. `note` is stored in the activity log.",
  http: {
    method: "PATCH",
    path: "/feature_flags/:id",
    answer: "The flag.",
    takesRawBody: true,
    errors: { 409: { description: "Another user changed the flag.", schema: ApiFailure } },
  },
  mcp: changeFlagTools(() => listAllFlags),
  input: object({ id: int(), ...FlagEditInput.properties }),
  inputExample: { active: false },
  output: FlagBody,
  example,
  run: (context: Context, { id, body }) => {
    const { stores, actor } = context;
    const skipsApproval = actor.kind === "operator" && actor.skipsApproval;
    return editByActor(stores, { ...getFlagActor(context), by: getAuthor(actor), skipsApproval }, id, body);
  },
});

export const explainOneFlag = operation({
  id: "flags.explain",
  on: "project",
  scope: "feature_flag:read",
  tag: "Flag evaluation",
  summary: "Explain a flag's value for a person",
  description:
    "By id or key. Returns every condition set with its property comparisons, hash position and result. Changes nothing.",
  http: {
    method: "GET",
    path: "/feature_flags/:id/explain",
    answer: "The steps.",
    errors: {
      400: { description: "No `distinct_id`, or a parameter that is not a JSON object." },
      404: { description: "The flag does not exist." },
    },
  },
  mcp: explainFlagTool,
  input: object({ id: string(), ...ExplainQuery.properties }),
  output: ExplanationSchema,
  example: exampleExplanation,
  readQuery: readExplainQuery,
  run: async ({ stores, project, now }: ProjectContext<ExplainDeps>, { id, ...requested }) => {
    const { distinctId, groups, personProperties, groupProperties, deviceId } = requested;
    const question = { distinctId, groups, personProperties, groupProperties, deviceId, now };
    return (await explainNamedFlag(stores, project, id, question)) as Static<typeof ExplanationSchema>;
  },
});

/** Separate because these use other stores than the flags' own operations. */
export const explainOperations = [explainOneFlag];

export const flagOperations = [listAllFlags, createNewFlag, getFlag, updateOneFlag];
