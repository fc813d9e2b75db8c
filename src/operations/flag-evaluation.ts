/** Evaluated flags (contract: management-api 5.14 and 5.16). */

import {
  DefinitionBody,
  type EvaluationDeps,
  evaluateFor,
  exampleDefinition,
  exampleReasons,
  GroupsQuery,
  readEvaluationQuery,
} from "../flags/api/flag-evaluation.ts";
import { renderEvaluationReasons, renderMyFlags } from "../flags/api/management-views.ts";
import { anyJson, list, object, optional, record, string } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { jsonOptions } from "./experiment-list.ts";
import { operation, type ProjectContext } from "./operation.ts";

type Context = ProjectContext<EvaluationDeps>;
type Reasons = Record<string, { value: unknown; evaluation: { reason: string; description: string } }>;

const tag = "Flag evaluation";

const listReasons = operation({
  id: "flags.evaluation_reasons",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List evaluation reasons for a person",
  http: {
    method: "GET",
    path: "/feature_flags/evaluation_reasons",
    answer: "By flag key. Inactive flags have the reason `disabled`.",
  },
  cli: {
    name: "flags evaluate",
    description: "Show the values of all flags for a user, with the reasons.",
    examples: ['flags evaluate user-1 --groups \'{"company":"acme"}\''],
    arguments: [{ name: "distinct-id", description: "distinct id of the user", member: "distinct_id" }],
    options: {
      ...jsonOptions(["groups"]),
      flag_keys: { flags: "--flag-keys <json>", description: "only these flags: a JSON list of keys" },
    },
    done: (reasons: Reasons) =>
      Object.entries(reasons)
        .map(([key, { value, evaluation }]) => `${key}: ${value} (${evaluation.description})`)
        .join("\n"),
  },
  mcp: {
    name: "evaluate_flags",
    description: "Evaluate all flags for a user, with the reasons. Changes nothing.",
    arguments: {
      distinct_id: string({ max: 400 }),
      groups: optional(record({ description: "Group keys by type" })),
      flag_keys: optional(list(string(), { minItems: 1, description: "Only these flags" })),
    },
  },
  input: object({
    distinct_id: optional(string({ blank: true, description: "Default: your own distinct id." })),
    ...GroupsQuery,
  }),
  output: record(),
  example: exampleReasons,
  readQuery: (query) => ({ distinctId: query.get("distinct_id"), ...readEvaluationQuery(query) }),
  run: async (context: Context, { distinctId, groups, flagKeys }) => {
    const { stores, project } = context;
    const asked = { distinctId: distinctId || ownDistinctId(context), groups, flagKeys };
    const evaluation = await evaluateFor(stores, context, asked);
    return renderEvaluationReasons(stores.flagSets.get(project.id).set, evaluation, flagKeys);
  },
});

const listMyFlags = operation({
  id: "flags.mine",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List all flags with their values for the current user",
  description: "Newest first, not paginated. Inactive flags are off.",
  http: { method: "GET", path: "/feature_flags/my_flags", answer: "The flags." },
  input: object(GroupsQuery),
  output: list(object({ feature_flag: DefinitionBody, value: anyJson() })),
  example: [{ feature_flag: exampleDefinition, value: true }],
  readQuery: readEvaluationQuery,
  run: async (context: Context, input) => {
    const { stores, project } = context;
    const { groups, flagKeys } = input as unknown as ReturnType<typeof readEvaluationQuery>;
    const { definitions } = stores.flagSets.get(project.id);
    const requested = flagKeys?.length
      ? definitions.filter(({ key }) => flagKeys.includes(key))
      : definitions;
    const evaluation = await evaluateFor(stores, context, {
      distinctId: ownDistinctId(context),
      groups,
      flagKeys,
    });
    return renderMyFlags(requested, evaluation, project.id) as never;
  },
});

/** @throws {InvalidFieldError} the operator of a data directory is no user. */
function ownDistinctId({ actor }: Context): string {
  if (actor.kind === "user") return actor.user.distinctId;
  throw new InvalidFieldError("distinct_id", "required", "This field is required.");
}

/** In the order of the documentation. */
export const flagEvaluationOperations = [listReasons, listMyFlags];
