/** Flags as they are evaluated, and their definitions for SDKs (contract: management-api 5.14 to 5.16). */

import {
  type ProjectCall,
  type ProjectOrSecretCall,
  projectOrSecretRoute,
  projectRoute,
} from "../../accounts/api/routes.ts";
import { pathOf } from "../../http/errors.ts";
import { isNotModified } from "../../http/etag.ts";
import { Reply, type Route } from "../../http/route.ts";
import { anyJson, bool, dictionary, int, list, named, object, optional, text } from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { parseExactJson } from "../../lib/exact-json.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import type { PeopleDb } from "../../people/open.ts";
import type { FlagSets } from "../store/flag-sets.ts";
import { evaluateStored } from "../subject/stored-subject.ts";
import { renderEvaluationReasons, renderMyFlags } from "./management-views.ts";

const tagName = "Flag evaluation";

const DefinitionBody = named(
  "FlagDefinition",
  object({
    id: int(),
    team_id: int(),
    name: text({ blank: true }),
    key: text(),
    filters: dictionary(),
    deleted: bool(),
    active: bool(),
    ensure_experience_continuity: bool(),
    has_encrypted_payloads: bool(),
    version: int(),
    evaluation_runtime: text(),
    bucketing_identifier: text(),
    evaluation_tags: list(text()),
    evaluation_contexts: list(text(), { description: "The same list as `evaluation_tags`." }),
    local_evaluation_issues: optional(
      list(text(), {
        description: "Why SDKs ask the server for this flag; empty: they evaluate it. Not in `my_flags`.",
      }),
    ),
  }),
);

const DefinitionsBody = named(
  "FlagDefinitions",
  object({
    flags: list(DefinitionBody),
    group_type_mapping: dictionary({ description: "Names of group types by index." }),
    cohorts: dictionary({
      description: "Definitions by id, by the negative id of everybody else; only with `send_cohorts`.",
    }),
    local_evaluation_issues: dictionary({
      description: "Of the flags that are left out: lists of reasons by the flag's key.",
    }),
  }),
);

const definition = {
  id: 12,
  team_id: 1,
  name: "",
  key: "one-click-pay",
  filters: { groups: [{ properties: [], rollout_percentage: 40 }] },
  deleted: false,
  active: true,
  ensure_experience_continuity: false,
  has_encrypted_payloads: false,
  version: 3,
  evaluation_runtime: "all",
  bucketing_identifier: "distinct_id",
  evaluation_tags: [],
  evaluation_contexts: [],
  local_evaluation_issues: [],
};
const exampleDefinitions = {
  flags: [definition],
  group_type_mapping: { "0": "company" },
  cohorts: {},
  local_evaluation_issues: {},
};
const reasons = {
  "one-click-pay": {
    value: true,
    evaluation: { reason: "condition_match", condition_index: 0, description: "Matched condition set 1" },
  },
};

const GroupsQuery = {
  groups: optional(text({ description: "JSON object: group key by group type." })),
  flag_keys: optional(text({ description: "JSON list of keys, or repeated: only these flags." })),
};

/** What the routes that evaluate for users of the API need. */
export interface EvaluationDeps {
  flagSets: FlagSets;
  people: PeopleDb;
}

export function flagEvaluationRoutes(deps: EvaluationDeps): Route[] {
  return [
    projectRoute("GET", "/feature_flags/evaluation_reasons", "feature_flag:read", {
      summary: "List evaluation reasons for a person",
      tag: tagName,
      query: object({
        distinct_id: optional(
          text({ blank: true, description: "Your own distinct id when absent or empty." }),
        ),
        ...GroupsQuery,
      }),
      answers: {
        200: {
          description: "By flag key. Inactive flags have the reason `disabled`.",
          schema: dictionary(),
          example: reasons,
        },
      },
      handle: (call) => {
        const distinctId = call.query.get("distinct_id") || call.user.distinctId;
        const flagKeys = readFlagKeys(call.query);
        const { set } = deps.flagSets.of(call.project.id);
        const evaluation = evaluateFor(deps, call, distinctId, flagKeys);
        return renderEvaluationReasons(set, evaluation, flagKeys);
      },
    }),
    projectRoute("GET", "/feature_flags/my_flags", "feature_flag:read", {
      summary: "List all flags with their values for the current user",
      description: "Newest first, not in pages. Inactive flags are off.",
      tag: tagName,
      query: object(GroupsQuery),
      answers: {
        200: {
          description: "The flags.",
          schema: list(object({ feature_flag: DefinitionBody, value: anyJson() })),
          example: [{ feature_flag: definition, value: true }],
        },
      },
      handle: (call) => {
        const flagKeys = readFlagKeys(call.query);
        const { definitions } = deps.flagSets.of(call.project.id);
        const asked = flagKeys?.length
          ? definitions.filter(({ key }) => flagKeys.includes(key))
          : definitions;
        const evaluation = evaluateFor(deps, call, call.user.distinctId, flagKeys);
        return renderMyFlags(asked, evaluation, call.project.id);
      },
    }),
    projectOrSecretRoute("GET", "/feature_flags/local_evaluation", "feature_flag:read", {
      summary: "Get flag definitions for local evaluation",
      description:
        "Inactive flags are included; flags with secret payloads are not. `/flags/definitions` always has the cohorts. The project's secret key is accepted.",
      tag: tagName,
      bucket: "local_evaluation",
      aliases: ["/flags/definitions"],
      query: object({
        send_cohorts: optional(text({ blank: true, description: "With definitions of cohorts." })),
        token: optional(text({ description: "Public key of the project that is meant." })),
      }),
      answers: {
        200: {
          description: "The definitions, with an ETag.",
          schema: DefinitionsBody,
          example: exampleDefinitions,
        },
        304: { description: "Unchanged since the given `If-None-Match`." },
      },
      handle: (call) => answerDefinitions(deps, call),
    }),
  ];
}

function answerDefinitions(deps: EvaluationDeps, call: ProjectOrSecretCall<unknown>): Reply {
  const sent = call.query.get("send_cohorts");
  const isAsked = sent !== null && !["false", "0", "no"].includes(sent.toLowerCase());
  const sendCohorts = isAsked || pathOf(call.request.url).startsWith("/flags/definitions");
  const { text: body, etag } = deps.flagSets.of(call.project.id).definitionsFor({ sendCohorts });
  const headers = { ETag: etag, "Cache-Control": "private, must-revalidate" };
  if (isNotModified(call.request.headers.get("if-none-match"), etag)) {
    return new Reply(304, undefined, headers);
  }
  return Reply.json(body, headers);
}

function evaluateFor(
  deps: EvaluationDeps,
  call: ProjectCall<unknown>,
  distinctId: string,
  flagKeys: string[] | undefined,
) {
  return evaluateStored(deps.people, deps.flagSets.of(call.project.id).set, {
    projectId: call.project.id,
    timezone: call.project.timezone,
    distinctId,
    groups: readGroups(call.query),
    flagKeys,
    now: call.now,
  });
}

/** @throws {InvalidField} not JSON, or JSON of another kind. */
function readGroups(query: URLSearchParams): JsonObject {
  const given = query.get("groups");
  if (!given) return {};
  let groups: unknown;
  try {
    groups = parseExactJson(given);
  } catch {
    throw new InvalidField("groups", "invalid_input", "Invalid JSON in groups parameter");
  }
  if (isJsonObject(groups)) return groups;
  throw new InvalidField("groups", "invalid_input", "groups must be a JSON object");
}

/** Repeated parameters, or one that holds a JSON list. @throws {InvalidField} it begins like a list and is not one of keys. */
function readFlagKeys(query: URLSearchParams): string[] | undefined {
  const given = query.getAll("flag_keys").filter((key) => key !== "");
  if (given.length !== 1 || !given[0]!.startsWith("[")) return given.length > 0 ? given : undefined;
  let keys: unknown;
  try {
    keys = JSON.parse(given[0]!);
  } catch {
    keys = undefined;
  }
  if (Array.isArray(keys) && keys.every((key) => typeof key === "string")) return keys;
  throw new InvalidField("flag_keys", "invalid_input", "Send a JSON list of keys, or repeat the parameter.");
}
