/** Many flags at once (contract: management-api 5.7). */

import { FlagInvalid } from "../flags/definition/flag-invalid.ts";
import { constantValueOf, rolloutSummaryOf } from "../flags/status.ts";
import { failureOf } from "../http/errors.ts";
import { type ProjectCall, projectRoute, Reply, type Route } from "../http/route.ts";
import {
  ApiFailure,
  anyJson,
  choice,
  dictionary,
  either,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  text,
} from "../http/shapes.ts";
import { InvalidField } from "../metadata/errors.ts";
import { type Flag, findFlag } from "../metadata/flag.ts";
import { listAllFlags } from "../metadata/flag-list.ts";
import { canEdit } from "../metadata/flag-permissions.ts";
import { updateFlag } from "../metadata/flag-writes.ts";
import type { Json, JsonObject } from "../metadata/schema.ts";
import { type ManagementDeps, writingOf } from "./deps.ts";
import { flagAnswers } from "./feature-flags.ts";
import type { FlagAnswers } from "./flag-answers.ts";
import { FlagQuery, readFlagQuery } from "./flag-query.ts";

const TAG = "Feature flags";
const IDS_MAX = 10_000;
const INVALID_IDS = { error: "Invalid flag IDs provided" };
const IdsAnswer = object({ error: text() });

const DeletedBody = named(
  "BulkDeleted",
  object({
    deleted: list(
      object({
        id: int(),
        key: text(),
        rollout_state: choice(["fully_rolled_out", "not_rolled_out", "partial"]),
        active_variant: nullable(text()),
      }),
    ),
    errors: list(object({ id: anyJson(), key: optional(text()), reason: text() })),
  }),
);

export function flagBulkRoutes(deps: ManagementDeps): Route[] {
  const { metadata } = deps;
  return [
    projectRoute("GET", "/feature_flags/matching_ids", "feature_flag:read", {
      summary: "List the ids of flags you may change",
      description: "Takes the filters of the list. Not in pages.",
      tag: TAG,
      query: FlagQuery,
      answers: {
        200: {
          description: "The ids.",
          schema: object({ ids: list(int()), total: int() }),
          example: { ids: [12, 11], total: 2 },
        },
      },
      handle: (call) => {
        const { permissions } = flagAnswers(deps, call);
        const ids = listAllFlags(metadata.db, call.project.id, readFlagQuery(call.query), call.now)
          .filter((flag) => canEdit(permissions, flag))
          .map(({ id }) => id);
        return { ids, total: ids.length };
      },
    }),
    projectRoute("POST", "/feature_flags/bulk_keys", ["feature_flag:read", "feature_flag:write"], {
      summary: "Find the keys of flags by id",
      tag: TAG,
      body: object({ ids: optional(anyJson({ description: "List of ids." })) }),
      bodyExample: { ids: [12] },
      answers: {
        200: {
          description: "Keys by id.",
          schema: object({ keys: dictionary(), warning: optional(text()) }),
          example: { keys: { "12": "one-click-pay" } },
        },
        400: { description: "No list of ids.", schema: either(IdsAnswer, ApiFailure), example: INVALID_IDS },
      },
      handle: (call) => {
        const given = call.body.ids ?? [];
        if (!Array.isArray(given)) return new Reply(400, INVALID_IDS);
        const ids = given.slice(0, IDS_MAX).map(idOf);
        const valid = ids.filter((id) => id !== undefined);
        if (given.length > 0 && valid.length === 0) return new Reply(400, INVALID_IDS);
        const flags = valid.map((id) => findFlag(metadata.db, call.project.id, id));
        const keys = flags.filter((flag) => flag !== undefined).map((flag) => [String(flag.id), flag.key]);
        const invalidCount = given.length - valid.length;
        const warning = invalidCount > 0 ? { warning: `Invalid flag IDs ignored: ${invalidCount}` } : {};
        return { keys: Object.fromEntries(keys), ...warning };
      },
    }),
    projectRoute("POST", "/feature_flags/bulk_delete", "feature_flag:write", {
      summary: "Delete flags by ids or by the filters of the list",
      description: "As PATCH with `deleted: true` on each; one refusal does not stop the others.",
      tag: TAG,
      body: object({
        ids: optional(anyJson({ description: "List of ids." })),
        filters: optional(nullable(dictionary({ description: "Query parameters of the list." }))),
      }),
      bodyExample: { ids: [12] },
      answers: {
        200: {
          description: "What was deleted and what was not.",
          schema: DeletedBody,
          example: {
            deleted: [{ id: 12, key: "one-click-pay", rollout_state: "partial", active_variant: null }],
            errors: [{ id: 13, reason: "Flag not found" }],
          },
        },
        400: {
          description: "Neither ids nor filters.",
          schema: either(IdsAnswer, ApiFailure),
          example: INVALID_IDS,
        },
      },
      handle: (call) => {
        const wanted = chosenIds(deps, call);
        if (!wanted) return new Reply(400, INVALID_IDS);
        const answers = flagAnswers(deps, call);
        const outcomes = wanted.map((given) => deleteOne(deps, call, answers, given));
        return {
          deleted: outcomes.flatMap((outcome) => ("deleted" in outcome ? [outcome.deleted] : [])),
          errors: outcomes.flatMap((outcome) => ("error" in outcome ? [outcome.error] : [])),
        };
      },
    }),
  ];
}

/** Undefined when the body names no flags. */
function chosenIds(
  { metadata }: ManagementDeps,
  call: ProjectCall<{ ids?: Json; filters?: JsonObject | null }>,
): Json[] | undefined {
  const { ids, filters } = call.body;
  if (Array.isArray(ids) && ids.length > 0 && ids.length <= IDS_MAX) return ids;
  if (ids !== undefined && ids !== null) return undefined;
  if (!filters || Object.keys(filters).length === 0) return undefined;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    query.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return listAllFlags(metadata.db, call.project.id, readFlagQuery(query), call.now).map(({ id }) => id);
}

function deleteOne(deps: ManagementDeps, call: ProjectCall<unknown>, answers: FlagAnswers, given: Json) {
  const id = idOf(given);
  if (id === undefined) return { error: { id: given, reason: "Invalid flag ID" } };
  const flag = findFlag(deps.metadata.db, call.project.id, id);
  if (!flag || flag.deleted) return { error: { id, reason: "Flag not found" } };
  if (!canEdit(answers.permissions, flag)) {
    const reason = "You don't have edit permissions for this feature flag.";
    return { error: { id, key: flag.key, reason } };
  }
  try {
    const fields = { deleted: true };
    const edit = { projectId: flag.projectId, id, by: call.user.id, fields, sent: fields, now: call.now };
    updateFlag(writingOf(deps), edit);
    return { deleted: { id, key: flag.key, ...rolloutOf(flag) } };
  } catch (error) {
    if (!(error instanceof FlagInvalid) && !(error instanceof InvalidField)) throw error;
    return { error: { id, key: flag.key, reason: failureOf(error).message } };
  }
}

function rolloutOf(flag: Flag) {
  const value = constantValueOf(flag.filters);
  const { maxRolloutPercentage } = rolloutSummaryOf(flag.filters);
  const isOff = !flag.active || maxRolloutPercentage === 0;
  const state = isOff ? "not_rolled_out" : value === undefined ? "partial" : "fully_rolled_out";
  return { rollout_state: state, active_variant: !isOff && typeof value === "string" ? value : null };
}

function idOf(value: Json): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}
