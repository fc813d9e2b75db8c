/** Ids and keys of many flags (contract: management-api 5.7). */

import { flagAnswers, flagTag as tag } from "../flags/api/feature-flags.ts";
import { FlagQuery, readFlagQuery } from "../flags/api/flag-query.ts";
import { flagKeysById } from "../flags/store/flag.ts";
import { listAllFlags } from "../flags/store/flag-list.ts";
import { canEdit } from "../flags/store/flag-permissions.ts";
import { ApiFailure, anyJson, int, list, object, optional, record, string, union } from "../http/schemas.ts";
import type { Json } from "../lib/json/value.ts";
import { type FlagContext as Context, getFlagActor } from "./flag-actor.ts";
import { operation } from "./operation.ts";

const idsMax = 10_000;
const invalidIds = { error: "Invalid flag IDs provided" };
const IdsAnswer = object({ error: string() });
const Keys = object({ keys: record(), warning: optional(string()) });

const listMatchingIds = operation({
  id: "flags.matching_ids",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List the ids of flags the current user can edit",
  description: "Accepts the filters of the list. Not paginated.",
  http: { method: "GET", path: "/feature_flags/matching_ids", answer: "The ids." },
  input: FlagQuery,
  output: object({ ids: list(int()), total: int() }),
  example: { ids: [12, 11], total: 2 },
  readQuery: (query) => ({ filter: readFlagQuery(query) }),
  run: (context: Context, { filter }) => {
    const { stores, project, now } = context;
    const { permissions } = flagAnswers(stores, getFlagActor(context));
    const ids = listAllFlags(stores.metadata.db, project.id, filter, now)
      .filter((flag) => canEdit(permissions, flag))
      .map(({ id }) => id);
    return { ids, total: ids.length };
  },
});

const listKeys = operation({
  id: "flags.bulk_keys",
  on: "project",
  scope: ["feature_flag:read", "feature_flag:write"],
  tag,
  summary: "List flag keys by id",
  http: {
    method: "POST",
    path: "/feature_flags/bulk_keys",
    answer: "Keys by id.",
    status: (output: object) => ("error" in output ? 400 : 200),
    errors: {
      400: {
        description: "The body is not a list of ids.",
        schema: union(IdsAnswer, ApiFailure),
        example: invalidIds,
      },
    },
  },
  input: object({ ids: optional(anyJson({ description: "List of ids." })) }),
  inputExample: { ids: [12] },
  output: Keys,
  example: { keys: { "12": "one-click-pay" } },
  run: ({ stores, project }: Context, input) => {
    const requestedIds = (input.ids ?? []) as Json;
    if (!Array.isArray(requestedIds)) return invalidIds as never;
    const valid = requestedIds
      .slice(0, idsMax)
      .map(getId)
      .filter((id) => id !== undefined);
    if (requestedIds.length > 0 && valid.length === 0) return invalidIds as never;
    const keys = flagKeysById(stores.metadata.db, project.id, valid);
    const invalidCount = requestedIds.length - valid.length;
    const warning = invalidCount > 0 ? { warning: `Invalid flag IDs ignored: ${invalidCount}` } : {};
    return { keys: Object.fromEntries(keys), ...warning };
  },
});

function getId(value: Json): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

/** In the order of the documentation. */
export const flagBulkOperations = [listMatchingIds, listKeys];
