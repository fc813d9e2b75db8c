/** Operations on many flags (contract: management-api 5.7). */

import { projectRoute } from "../../accounts/api/routes.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import {
  ApiFailure,
  anyJson,
  int,
  list,
  object,
  optional,
  record,
  string,
  union,
} from "../../http/schemas.ts";
import type { Json } from "../../lib/json.ts";
import { flagKeysById } from "../store/flag.ts";
import { listAllFlags } from "../store/flag-list.ts";
import { canEdit } from "../store/flag-permissions.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import { flagAnswers } from "./feature-flags.ts";
import { FlagQuery, readFlagQuery } from "./flag-query.ts";

const tagName = "Feature flags";
const idsMax = 10_000;
const invalidIds = { error: "Invalid flag IDs provided" };
const IdsAnswer = object({ error: string() });

export function flagBulkRoutes(deps: FlagWriteDeps): Route[] {
  const { metadata } = deps;
  return [
    projectRoute("GET", "/feature_flags/matching_ids", "feature_flag:read", {
      summary: "List the ids of flags the current user can edit",
      description: "Accepts the filters of the list. Not paginated.",
      tag: tagName,
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
      summary: "List flag keys by id",
      tag: tagName,
      body: object({ ids: optional(anyJson({ description: "List of ids." })) }),
      bodyExample: { ids: [12] },
      answers: {
        200: {
          description: "Keys by id.",
          schema: object({ keys: record(), warning: optional(string()) }),
          example: { keys: { "12": "one-click-pay" } },
        },
        400: {
          description: "The body is not a list of ids.",
          schema: union(IdsAnswer, ApiFailure),
          example: invalidIds,
        },
      },
      handle: (call) => {
        const requestedIds = call.body.ids ?? [];
        if (!Array.isArray(requestedIds)) return new RouteResponse(400, invalidIds);
        const ids = requestedIds.slice(0, idsMax).map(getId);
        const valid = ids.filter((id) => id !== undefined);
        if (requestedIds.length > 0 && valid.length === 0) return new RouteResponse(400, invalidIds);
        const keys = flagKeysById(metadata.db, call.project.id, valid);
        const invalidCount = requestedIds.length - valid.length;
        const warning = invalidCount > 0 ? { warning: `Invalid flag IDs ignored: ${invalidCount}` } : {};
        return { keys: Object.fromEntries(keys), ...warning };
      },
    }),
  ];
}

function getId(value: Json): number | undefined {
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}
