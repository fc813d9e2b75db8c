/** Evaluated flags, and their definitions for SDKs (contract: management-api 5.14 to 5.16). */

import { type ProjectOrSecretCall, projectOrSecretRoute } from "../../accounts/api/routes.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { getPath } from "../../http/error-mapping.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { isNotModified } from "../../http/route-response.ts";
import { bool, int, list, named, object, optional, record, string } from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { parseExactJson } from "../../lib/json/exact.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { evaluateStored } from "../evaluation-context/stored-context.ts";
import type { FlagSets } from "../store/flag-sets.ts";

const tagName = "Flag evaluation";

export const DefinitionBody = named(
  "FlagDefinition",
  object({
    id: int(),
    team_id: int(),
    name: string({ blank: true }),
    key: string(),
    filters: record(),
    deleted: bool(),
    active: bool(),
    ensure_experience_continuity: bool(),
    has_encrypted_payloads: bool(),
    version: int(),
    evaluation_runtime: string(),
    bucketing_identifier: string(),
    evaluation_tags: list(string()),
    evaluation_contexts: list(string(), { description: "The same list as `evaluation_tags`." }),
    local_evaluation_issues: optional(
      list(string(), {
        description:
          "Reasons why SDKs evaluate this flag on the server; empty: SDKs evaluate it locally. Not in `my_flags`.",
      }),
    ),
  }),
);

const DefinitionsBody = named(
  "FlagDefinitions",
  object({
    flags: list(DefinitionBody),
    group_type_mapping: record({ description: "Names of group types by index." }),
    cohorts: record({
      description: "Definitions by id, by the negative id for all other persons; only with `send_cohorts`.",
    }),
    local_evaluation_issues: record({
      description: "Reasons by flag key for excluded flags.",
    }),
  }),
);

export const exampleDefinition = {
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
  flags: [exampleDefinition],
  group_type_mapping: { "0": "company" },
  cohorts: {},
  local_evaluation_issues: {},
};
export const exampleReasons = {
  "one-click-pay": {
    value: true,
    evaluation: { reason: "condition_match", condition_index: 0, description: "Matched condition set 1" },
  },
};

export const GroupsQuery = {
  groups: optional(string({ description: "JSON object: group key by group type." })),
  flag_keys: optional(string({ description: "JSON list of keys, or repeated: only these flags." })),
};

export interface EvaluationDeps {
  flagSets: FlagSets;
  persons: PersonReader;
}

export function flagEvaluationRoutes(deps: EvaluationDeps): Route[] {
  return [
    projectOrSecretRoute("GET", "/feature_flags/local_evaluation", "feature_flag:read", {
      summary: "Get flag definitions for local evaluation",
      description:
        "Includes inactive flags, excludes flags with secret payloads. `/flags/definitions` always includes cohorts. The project's secret key is accepted.",
      tag: tagName,
      bucket: "local_evaluation",
      aliases: ["/flags/definitions"],
      query: object({
        send_cohorts: optional(string({ blank: true, description: "Include cohort definitions." })),
        token: optional(string({ description: "Public key of the project." })),
      }),
      answers: {
        200: {
          description: "The definitions, with an ETag.",
          schema: DefinitionsBody,
          example: exampleDefinitions,
        },
        304: { description: "Not modified since the given `If-None-Match`." },
      },
      handle: (call) => answerDefinitions(deps, call),
    }),
  ];
}

function answerDefinitions(deps: EvaluationDeps, call: ProjectOrSecretCall<unknown>): RouteResponse {
  const sent = call.query.get("send_cohorts");
  const isRequested = sent !== null && !["false", "0", "no"].includes(sent.toLowerCase());
  const sendCohorts = isRequested || getPath(call.request.url).startsWith("/flags/definitions");
  const { text: body, etag } = deps.flagSets.get(call.project.id).definitionsFor({ sendCohorts });
  const headers = { ETag: etag, "Cache-Control": "private, must-revalidate" };
  if (isNotModified(call.request.headers.get("if-none-match"), etag)) {
    return new RouteResponse(304, undefined, headers);
  }
  return RouteResponse.json(body, headers);
}

/** @throws {InvalidFieldError} */
export const readEvaluationQuery = (query: URLSearchParams) => ({
  groups: readGroups(query),
  flagKeys: readFlagKeys(query),
});

/** The values of the project's flags for a person. */
export function evaluateFor(
  deps: EvaluationDeps,
  { project, now }: { project: Project; now: Date },
  asked: { distinctId: string; groups: JsonObject; flagKeys: string[] | undefined },
) {
  return evaluateStored(deps.persons, deps.flagSets.get(project.id).set, {
    projectId: project.id,
    timezone: project.timezone,
    distinctId: asked.distinctId,
    groups: asked.groups,
    flagKeys: asked.flagKeys,
    now,
  });
}

/** @throws {InvalidFieldError} not a JSON object. */
function readGroups(query: URLSearchParams): JsonObject {
  const option = query.get("groups");
  if (!option) return {};
  let groups: unknown;
  try {
    groups = parseExactJson(option);
  } catch {
    throw new InvalidFieldError("groups", "invalid_input", "Invalid JSON in groups parameter");
  }
  if (isJsonObject(groups)) return groups;
  throw new InvalidFieldError("groups", "invalid_input", "groups must be a JSON object");
}

/**
 * Repeated parameters, or one with a JSON list. @throws {InvalidFieldError} it starts like a list, but is not a list of
 * keys.
 */
function readFlagKeys(query: URLSearchParams): string[] | undefined {
  const option = query.getAll("flag_keys").filter((key) => key !== "");
  if (option.length !== 1 || !option[0]!.startsWith("[")) return option.length > 0 ? option : undefined;
  let keys: unknown;
  try {
    keys = JSON.parse(option[0]!);
  } catch {
    keys = undefined;
  }
  if (Array.isArray(keys) && keys.every((key) => typeof key === "string")) return keys;
  throw new InvalidFieldError(
    "flag_keys",
    "invalid_input",
    "Send a JSON list of keys, or repeat the parameter.",
  );
}
