/** Insights in answers. */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-shapes.ts";
import type { User } from "../../accounts/users.ts";
import {
  anyJson,
  bool,
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  prose,
  tag,
  text,
} from "../../http/shapes.ts";
import type { Json } from "../../lib/json.ts";
import { toWire, toWireOrNull } from "../../lib/wire-time.ts";
import type { Insight } from "../store.ts";

export const InsightBody = named(
  "Insight",
  object({
    id: int(),
    short_id: text(),
    name: text({ blank: true }),
    derived_name: nullable(text({ blank: true }), { description: "Kept as a client sent it." }),
    description: text({ blank: true }),
    query: dictionary(),
    filters: dictionary({ description: "Of an older generation; always empty." }),
    dashboards: list(int()),
    tags: list(text()),
    saved: bool(),
    favorited: bool(),
    deleted: bool(),
    created_by: nullable(UserBody),
    created_at: instant(),
    updated_at: instant(),
    last_refresh: nullable(instant(), { description: "When `result` was computed." }),
    is_cached: bool({ description: "It was computed for an earlier request." }),
    result: anyJson({ description: "As `results` of `POST …/query/`; null where it was not computed." }),
    columns: nullable(list(text({ blank: true })), { description: "Of SQL: the names of the columns." }),
    types: nullable(list(list(text({ blank: true }))), {
      description: "Of SQL: name and type of each column.",
    }),
    hasMore: nullable(bool(), { description: "Of SQL: whether rows are missing." }),
    query_status: nullable(object({ complete: bool(), error: bool(), error_message: text() }), {
      description: "Why there is no result, where the query cannot be computed.",
    }),
  }),
);

export const InsightInput = object({
  name: optional(text({ blank: true, max: 400 })),
  derived_name: optional(
    nullable(text({ blank: true, max: 400 }), { description: "What a client calls it by its query." }),
  ),
  description: optional(prose()),
  query: optional(dictionary()),
  dashboards: optional(list(int(), { description: "It stands on exactly these then." })),
  tags: optional(list(tag())),
  saved: optional(bool()),
  favorited: optional(bool({ description: "Kept; it changes no list." })),
  deleted: optional(bool()),
});

/** What was computed for an insight, and when; or why its query cannot be computed. */
export type Computed =
  | { result: Json; at: Date; isCached: boolean; table?: InsightTable }
  | { problem: string };

/** What the columns of a SQL insight are; see `QueryResult`. */
export interface InsightTable {
  columns: string[];
  types: [name: string, type: string][];
  hasMore: boolean;
}

/** The wire form of an insight. */
export function insightBody(
  insight: Insight,
  of: { creator: User | undefined; dashboards: number[]; tags: string[]; computed?: Computed },
): Static<typeof InsightBody> {
  const { computed } = of;
  const done = computed !== undefined && "result" in computed ? computed : undefined;
  return {
    id: insight.id,
    short_id: insight.shortId,
    name: insight.name,
    derived_name: insight.derivedName,
    description: insight.description,
    query: insight.query,
    filters: {},
    dashboards: of.dashboards,
    tags: of.tags,
    saved: insight.saved,
    favorited: insight.favorited,
    deleted: insight.deleted,
    created_by: of.creator ? userBody(of.creator) : null,
    created_at: toWire(insight.createdAt),
    updated_at: toWire(insight.updatedAt),
    last_refresh: toWireOrNull(done?.at ?? null),
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
