/** Insights in responses. */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-schemas.ts";
import type { User } from "../../accounts/users.ts";
import {
  anyJson,
  bool,
  dateTime,
  int,
  list,
  longString,
  named,
  nullable,
  object,
  optional,
  record,
  string,
  tag,
} from "../../http/schemas.ts";
import type { Json } from "../../lib/json/value.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import type { Insight } from "../store.ts";

export const InsightBody = named(
  "Insight",
  object({
    id: int(),
    short_id: string(),
    name: string({ blank: true }),
    derived_name: nullable(string({ blank: true }), { description: "Stored as sent by the client." }),
    description: string({ blank: true }),
    query: record(),
    filters: record({ description: "Legacy; always empty." }),
    dashboards: list(int()),
    tags: list(string()),
    saved: bool(),
    favorited: bool(),
    deleted: bool(),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    updated_at: dateTime(),
    last_refresh: nullable(dateTime(), { description: "Time at which `result` was computed." }),
    is_cached: bool({ description: "The result comes from the cache." }),
    result: anyJson({ description: "Same as `results` of `POST …/query/`; null if not computed." }),
    columns: nullable(list(string({ blank: true })), { description: "SQL only: column names." }),
    types: nullable(list(list(string({ blank: true }))), {
      description: "SQL only: name and type of each column.",
    }),
    hasMore: nullable(bool(), { description: "SQL only: true if rows are missing." }),
    query_status: nullable(object({ complete: bool(), error: bool(), error_message: string() }), {
      description: "Error if the query cannot be computed.",
    }),
  }),
);

export const InsightInput = object({
  name: optional(string({ blank: true, max: 400 })),
  derived_name: optional(
    nullable(string({ blank: true, max: 400 }), {
      description: "Name derived from the query by the client.",
    }),
  ),
  description: optional(longString()),
  query: optional(record()),
  dashboards: optional(list(int(), { description: "Dashboards of the insight; replaces all." })),
  tags: optional(list(tag())),
  saved: optional(bool()),
  favorited: optional(bool({ description: "Stored without effect on lists." })),
  deleted: optional(bool()),
});

/** Results of an insight and their time, or why its query cannot be computed. */
export type Computed =
  | { result: Json; at: Date; isCached: boolean; table?: InsightTable }
  | { problem: string };

/** Columns of a SQL insight; see `QueryResult`. */
export interface InsightTable {
  columns: string[];
  types: [name: string, type: string][];
  hasMore: boolean;
}

export function insightBody(
  insight: Insight,
  details: { creator: User | undefined; dashboards: number[]; tags: string[]; computed?: Computed },
): Static<typeof InsightBody> {
  const { computed } = details;
  const done = computed !== undefined && "result" in computed ? computed : undefined;
  return {
    id: insight.id,
    short_id: insight.shortId,
    name: insight.name,
    derived_name: insight.derivedName,
    description: insight.description,
    query: insight.query,
    filters: {},
    dashboards: details.dashboards,
    tags: details.tags,
    saved: insight.saved,
    favorited: insight.favorited,
    deleted: insight.deleted,
    created_by: details.creator ? userBody(details.creator) : null,
    created_at: toApiTime(insight.createdAt),
    updated_at: toApiTime(insight.updatedAt),
    last_refresh: toApiTimeOrNull(done?.at ?? null),
    is_cached: done?.isCached ?? false,
    result: done?.result ?? null,
    columns: done?.table?.columns ?? null,
    types: done?.table?.types ?? null,
    hasMore: done?.table?.hasMore ?? null,
    query_status:
      computed !== undefined && "problem" in computed
        ? { complete: true, error: true, error_message: computed.problem }
        : null,
  };
}

export const exampleInsight = {
  id: 61,
  short_id: "aB3dE5fG",
  name: "Orders per day",
  derived_name: null,
  description: "",
  query: {
    kind: "InsightVizNode",
    source: { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "order paid", math: "total" }] },
  },
  filters: {},
  dashboards: [31],
  tags: ["payments"],
  saved: true,
  favorited: false,
  deleted: false,
  created_by: exampleUser,
  created_at: "2026-03-02T08:15:30.120000Z",
  updated_at: "2026-03-02T08:15:30.120000Z",
  last_refresh: "2026-03-04T16:00:01.007000Z",
  is_cached: false,
  result: [{ label: "order paid", count: 3, days: ["2026-03-03", "2026-03-04"], data: [1, 2] }],
  columns: null,
  types: null,
  hasMore: null,
  query_status: null,
};
